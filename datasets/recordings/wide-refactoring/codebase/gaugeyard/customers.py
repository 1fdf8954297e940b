"""Customers: addresses and what they want on a certificate."""

from dataclasses import dataclass

from gaugeyard.common import DATA, LookupFailed, parse_date, read_rows, slug


@dataclass
class Customer:
    """A customer; `since` is None if nobody knows."""

    key: str
    name: str
    mail: str
    since: object
    language: str = "en"


def load():
    """Return the customers by key (`slug` of the name)."""
    found = {}
    for row in read_rows(DATA / "customers.csv"):
        key = slug(row["name"])
        found[key] = Customer(key, row["name"], row["mail"], parse_date(row["since"]), row["language"])
    return found


def get(name):
    """Return a customer; LookupFailed if there is none."""
    try:
        return load()[slug(name)]
    except KeyError as error:
        raise LookupFailed(name) from error


def mail_of(name):
    """Return the address of a customer, "" if there is none."""
    try:
        return get(name).mail
    except LookupFailed:
        return ""
