"""Pass ``addresses``: IPv4, IPv6 and MAC addresses.

Versions, times, module paths (``a::b``), fingerprints, net masks and the addresses that everybody
uses (loopback, unspecified, multicast, documentation, public resolvers) stay.
"""

import ipaddress
import re
from collections.abc import Iterator
from functools import partial

from compression_eval.conversations.scrubbing.hits import Hit
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary
from compression_eval.conversations.scrubbing.words import words

_ascii = partial(re.compile, flags=re.ASCII)
NAME = "addresses"

_IPV4 = _ascii(
    r"(?:(?<![\w.])|(?<=\\[nrt])|(?<=[a-z]_))(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d|\.[A-Za-z]{2,4}\b|-[A-Za-z])"
)
_IPV6 = _ascii(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){3,7}(?![\w:])")
_MAC = _ascii(
    r"(?:(?<![\w:-])|(?<=\\[nrt]))[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])"
)
_VERSION_BEFORE = _ascii(r"(?i:version|release|[=~<>^]=?|@|ver\.?|/v|-)[\"'\s:]{0,3}\Z")
_STAYS4 = tuple(
    ipaddress.ip_network(block)
    for block in (
        *("0.0.0.0/8", "127.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
        *("198.18.0.0/15", "224.0.0.0/3"),
    )
)
_TAKEN6 = tuple(ipaddress.ip_network(block) for block in ("2000::/3", "fc00::/7", "fe80::/10"))
_DOCUMENTATION6 = ipaddress.ip_network("2001:db8::/32")


class Addresses:
    """Finds network addresses; each can be told by itself."""

    name = NAME

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note nothing: an address needs no other place to be seen as one."""

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the addresses of one text."""
        for found in _IPV4.finditer(text):
            if _is_ipv4(found[0]) and not _is_version(text, found):
                yield Hit(*found.span(), "ipv4", "ipv4")
        if ":" not in text and "-" not in text:
            return
        for found in _IPV6.finditer(text):
            if _is_ipv6(found[0]):
                yield Hit(*found.span(), "ipv6", "ipv6")
        for found in _MAC.finditer(text):
            if _is_mac(found[0]):
                yield Hit(*found.span(), "mac", "mac")


def _is_ipv4(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    if text in words("addresses") or any(address in block for block in _STAYS4):
        return False
    octets = address.packed
    return max(octets) > 9 and not (octets[1:] == b"\0\0\0" or octets[2:] == b"\0\0")


def _is_version(text: str, found: re.Match[str]) -> bool:
    """Return whether the words before say that four numbers are a version."""
    before = text[max(0, found.start() - 14) : found.start()]
    match = _VERSION_BEFORE.search(before)
    if match is None:
        return False
    sign = match[0].strip("\"' :\t\n")
    if sign in ("=", "-", ">", "<", "@"):
        # "HOST=10.1.2.3", "- 10.1.2.3", "deploy@10.1.2.3" are addresses, "lib-1.2.3.4" is none
        return sign == "-" and before[-2:-1].isalnum()
    return True


def _is_ipv6(text: str) -> bool:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    groups = [group for group in text.split(":") if group]
    written = any(character.isdigit() for character in text) and len(groups) >= 3
    whole = len(groups) == 8 and any(len(group) > 2 for group in groups)
    taken = whole or any(address in block for block in _TAKEN6)
    return written and taken and address not in _DOCUMENTATION6


def _is_mac(text: str) -> bool:
    digits = re.sub(r"[:-]", "", text).lower()
    return not digits.startswith(("02005e", "00005e0053")) and len(set(digits)) > 1
