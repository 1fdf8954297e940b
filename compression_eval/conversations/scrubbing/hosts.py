"""Pass ``hosts``: names of machines in private domains, and of personal machines.

``app.internal`` may be a module and ``settings.local`` a file, so a name in a private domain
counts where it is used as a host: in a URL, with a port, as the target of a command, or with a
form that no module has. It is then replaced wherever it stands.
"""

import re
from collections.abc import Iterator
from functools import partial

from compression_eval.conversations.scrubbing.hits import Hit, Remembered
from compression_eval.conversations.scrubbing.vocabulary import Learnt, Vocabulary
from compression_eval.conversations.scrubbing.words import is_common, words

_ascii = partial(re.compile, flags=re.ASCII)
NAME = "hosts"

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SUFFIX = r"(?i:internal|local|lan|corp|intranet|intra|private|home|home\.arpa|localdomain)"
_PRIVATE = rf"(?P<name>{_LABEL}(?:\.{_LABEL}){{0,6}}?\.{_SUFFIX})(?![\w-]|\.\w)"
_END = r"(?![\w-]|\.\w)"
_EDGE = r"(?:(?<![\w.@/\\-])|(?<=\\[nrt]))"

_FORMS = {
    "host-in-url": _ascii(r"(?:://(?:[^\s/@:]{0,64}(?::[^\s/@]{0,200})?@)?|@)" + _PRIVATE),
    "host-with-port": _ascii(_EDGE + _PRIVATE + r"(?=:\d{2,5}(?!\d))"),
    "host-of-command": _ascii(
        r"\b(?:ssh|scp|rsync|ping6?|curl|wget|dig|nslookup|host|telnet|nc|traceroute|mosh|sftp)"
        r"(?:[ ]-{1,2}[\w-]{1,20}(?:[ =][\w./~-]{1,60})?){0,4}[ ](?:[\w.-]{1,40}@)?" + _PRIVATE
    ),
    "host-setting": _ascii(
        r"(?i:(?:host|hostname|server|endpoint|domain|fqdn|node|addr(?:ess)?)"
        r"[\"'\\]{0,3}[ ]{0,4}[=:][ ]{0,4}[\"'\\]{0,3})" + _PRIVATE
    ),
    "host-form": _ascii(
        _EDGE
        + rf"(?P<name>(?=[A-Za-z.]{{0,60}}[0-9-]){_LABEL}(?:\.{_LABEL}){{1,6}}?\.{_SUFFIX})"
        + _END
    ),
    "mac-host": _ascii(
        _EDGE + r"(?P<name>[A-Za-z0-9-]{0,40}(?:MacBook|iMac|Mac-mini|Mac-Studio|Mac-Pro)"
        r"[A-Za-z0-9-]{0,20}"
        r"(?:\.(?:local|lan|home))?)(?![\w-])"
    ),
    "windows-host": _ascii(r"(?<![\w-])(?P<name>(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{7,11})(?![\w-])"),
    "address-host": _ascii(
        _EDGE
        + r"(?P<name>(?:ip|ec2)-\d{1,3}(?:-\d{1,3}){3}(?:\.[A-Za-z0-9.-]{2,60}[A-Za-z])?)(?![\w-])"
    ),
    "managed-host": _ascii(
        _EDGE + rf"(?P<name>{_LABEL}\.[a-z0-9]{{10,14}}(?:\.[a-z0-9-]{{2,14}}){{0,3}}\."
        r"(?:rds|cache|redshift|es|elb)\.amazonaws\.com)(?![\w-])"
    ),
    "prompt": _ascii(
        r"(?<![\w.+@/-])[a-z_][\w.-]{0,31}@(?P<name>[A-Za-z][A-Za-z0-9.-]{0,62}):[~/][^\s$#]{0,200}[$#](?=\s|$)"
    ),
}
_HINTS: dict[str, tuple[str, ...]] = {
    "mac-host": ("mac",),
    "windows-host": ("desktop-", "laptop-", "win-"),
    "address-host": ("ip-", "ec2-"),
    "managed-host": (".amazonaws.com",),
    "prompt": ("@",),
}
_PRIVATE_HINTS = (*(".internal", ".local", ".lan", ".corp", ".intra", ".private", ".home"),)
_EVERYBODYS = _ascii(r"\.svc\.cluster\.local$|(?:^|\.)example\.[a-z]+$")
_CONTAINER = _ascii(r"[0-9a-f]{12}")


class Hosts:
    """Finds private host names by how they are used."""

    name = NAME

    def __init__(self) -> None:
        self._found = Remembered(_found)

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note the hosts that are to be replaced wherever they stand."""
        for rule, start, end in self._found(text):
            name = text[start:end]
            if rule != "prompt" or any(character in name for character in "-.0123456789"):
                vocabulary.learn(NAME, Learnt(name, "host", rule, any_case=True))

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the hosts of one text that their use shows."""
        for rule, start, end in self._found(text):
            yield Hit(start, end, rule, "host")


def _found(text: str) -> Iterator[tuple[str, int, int]]:
    lowered = text.lower()
    for rule, form in _FORMS.items():
        if not any(hint in lowered for hint in _HINTS.get(rule, _PRIVATE_HINTS)):
            continue
        for found in form.finditer(text):
            name = found["name"].lower()
            if name in words("hosts") or _EVERYBODYS.search(name):
                continue
            if rule == "prompt" and (_CONTAINER.fullmatch(name) or is_common(name)):
                continue
            yield rule, *found.span("name")
