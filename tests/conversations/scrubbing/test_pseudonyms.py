import ipaddress

import pytest

from compression_eval.conversations.scrubbing import Pseudonyms
from compression_eval.conversations.scrubbing.pseudonyms import KINDS, is_pseudonym

VALUES = {
    "secret": "Zz9-qwerty-77",
    "user": "mmuster",
    "person": "Jane Qvist",
    "email": "jane@vendor.io",
    "host": "db01.prod.corp",
    "ipv4": "10.20.30.40",
    "ipv6": "2a02:8108::7",
    "mac": "A4-83-E7-12-9C-0B",
    "phone": "(415) 223-4477",
    "mention": "U04ABCDEFGH",
    "number": "583231",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stand_in_follows_from_value_and_key_alone(kind: str) -> None:
    value = VALUES[kind]
    assert Pseudonyms().of(kind, value) == Pseudonyms().of(kind, value) != value
    assert Pseudonyms(b"other").of(kind, value) != Pseudonyms().of(kind, value)


@pytest.mark.parametrize("kind", ["secret", "user", "person", "email", "host", "mention"])
def test_a_stand_in_is_told_from_a_value_of_its_form(kind: str) -> None:
    made = Pseudonyms(b"any key").of(kind, VALUES[kind])
    assert is_pseudonym(kind, made)
    assert not is_pseudonym(kind, VALUES[kind])
    place = next(i for i in range(len(made) // 2, len(made)) if made[i].isalpha())
    changed = made[:place] + ("b" if made[place].lower() != "b" else "c") + made[place + 1 :]
    assert not is_pseudonym(kind, changed.upper() if kind == "mention" else changed)


def test_the_form_of_a_value_is_kept() -> None:
    made = {kind: Pseudonyms().of(kind, value) for kind, value in VALUES.items()}
    assert ipaddress.ip_address(made["ipv4"]) in ipaddress.ip_network("198.18.0.0/15")
    assert ipaddress.ip_address(made["ipv6"]) in ipaddress.ip_network("2001:db8::/32")
    assert made["mac"].startswith("02-00-5E-")
    assert made["phone"].startswith("(415) 555-01")
    assert made["host"].endswith(".corp")
    assert made["email"].endswith(".example")
    assert len(made["person"].split()) == 2
