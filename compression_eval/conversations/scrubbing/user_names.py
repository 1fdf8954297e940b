"""Pass ``user_names``: the account in home folders, listings and prompts.

Where the form shows a name it is replaced. Elsewhere it is replaced if a second form shows it, too
(see `Vocabulary`), unless it is a word that says too much else. ``src/home/page.ts`` is no home
folder.
"""

import re
from collections.abc import Iterator
from functools import partial

from compression_eval.conversations.scrubbing.hits import Hit, Remembered
from compression_eval.conversations.scrubbing.vocabulary import SURE, Learnt, Vocabulary
from compression_eval.conversations.scrubbing.words import is_account, is_common

_ascii = partial(re.compile, flags=re.ASCII)
NAME = "user_names"

_START = r"(?:(?<![\w.~\-})])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4}))"
_SEGMENT = (
    r"(?:[A-Za-z0-9_\u00c0-\u024f][A-Za-z0-9_.+\u00c0-\u024f-]{0,31}"
    r"|[^\x00-\x7f\u00c0-\u024f\u2000-\u206f\u3000-\u3020\uff00-\uff65]{1,20})"
)
_PERMISSIONS = r"(?<![\w-])[bcdlps-](?:[r-][w-][xsStT-]){3}[@+.]?"
_FILE = _ascii(r".+\.(?:html?|jsx?|tsx?|css|scss|vue|svelte|py|rb|go|php|md|json|svg|png|jpe?g)")

_FORMS = {
    "unix-home": _ascii(
        _START + r"(?:/(?:export|var|usr|data|mnt|net|nfs|srv))?/home/(?P<name>" + _SEGMENT + ")"
    ),
    "macos-home": _ascii(
        r"(?:" + _START + r"|(?<=/Data)|(?<=/mnt/[a-z])|(?<=[\s\"'=:(]/[a-z]))"
        r"/Users/(?P<name>" + _SEGMENT + ")"
    ),
    "windows-home": _ascii(
        r"(?i:[A-Za-z]:(?:\\{1,8}|/{1,2})(?:Users|Documents\ and\ Settings)(?:\\{1,8}|/{1,2}))"
        r"(?P<name>" + _SEGMENT + r"(?:[ ]" + _SEGMENT + r"){0,2}(?=[\\/])|" + _SEGMENT + ")"
    ),
    "encoded-folder": _ascii(
        r"(?:(?<!\w)-{1,2}|(?<=\\[nrt])-|(?<!\w)[A-Za-z]-{1,2})Users-"
        r"(?P<name>[A-Za-z0-9_]{1,32})(?![A-Za-z0-9_])"
    ),
    "encoded-home": _ascii(r"(?<=[/\\])-home-(?P<name>[A-Za-z0-9_]{1,32})(?=-)"),
    "listing": _ascii(
        _PERMISSIONS
        + r"[ ]+\d+[ ]+(?P<name>[A-Za-z_][\w.-]{0,31})[ ]+(?P<group>[A-Za-z_][\w.-]*)[ ]+\d"
    ),
    "archive-listing": _ascii(
        _PERMISSIONS + r"[ ]+(?P<name>[A-Za-z_][\w.-]{0,31})/(?P<group>[A-Za-z_][\w.-]*)[ ]+\d"
    ),
    "id": _ascii(r"\b[ug]id=\d+\((?P<name>[A-Za-z_][\w.-]{0,31})\)"),
    "environment": _ascii(
        r"(?m:^|(?<=\\n))(?:export[ ])?(?:USER|LOGNAME|USERNAME|SUDO_USER)="
        r"(?P<name>[A-Za-z_][\w.-]{0,31})(?![\w/])"
    ),
    "prompt": _ascii(
        r"(?<![\w.+@/-])(?P<name>[a-z_][\w.-]{0,31})@[A-Za-z][\w.-]{0,62}:[~/][^\s$#]{0,200}[$#](?=\s|$)"
    ),
    "user-in-url": _ascii(r"(?:https?|ssh|ftp|sftp)://(?P<name>[A-Za-z][\w.-]{0,31})@"),
}
_OPENED = _ascii(
    r"(?m)^(?:\w*(?:path|file|folder|dir|directory|cwd|root)\w*[ ]=[ ]\""
    r"|(?:command|cmd)[ ]=[ ]\"cd[ ]\"?)"
    r"(?:/(?:home|Users)/|[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2})[^/\\\s\"]{1,64}[/\\\"]"
)
_HINTS = {
    "unix-home": "/home/",
    "macos-home": "/Users/",
    "windows-home": ":",
    "encoded-folder": "-Users-",
    "encoded-home": "-home-",
    "listing": "r",
    "archive-listing": "r",
    "id": "id=",
    "environment": "USER",
    "prompt": "@",
    "user-in-url": "://",
}


class UserNames:
    """Finds account names by the form they stand in."""

    name = NAME

    def __init__(self) -> None:
        self._found = Remembered(_found)

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note the names that may be replaced elsewhere."""
        for rule, start, end in self._found(text):
            if rule == "unix-home" and text[end : end + 1] not in ("/", "\\"):
                continue  # a route such as "/home/news" looks the same
            # A path and its encoded form are written from each other: one sign.
            sign = "home" if rule.endswith(("-home", "-folder")) else rule
            _note(text[start:end], rule, sign, vocabulary)

    def learn_opened(self, arguments: str, vocabulary: Vocabulary) -> None:
        """Note whose home folder a call worked in.

        One sign is enough here: an agent opens files where they are, while a home folder in the
        text of a script or a test may be anybody's.

        Args:
            arguments: The arguments of a call, as lines of the form ``key = "value"``.
            vocabulary: Takes the names.
        """
        for opened in _OPENED.finditer(arguments):
            for rule, start, end in self._found(opened[0]):
                if rule.endswith("-home"):
                    _note(opened[0][start:end], rule, SURE, vocabulary)

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the account names of one text that their form shows."""
        for rule, start, end in self._found(text):
            yield Hit(start, end, rule, "user")


def _note(name: str, rule: str, sign: str, vocabulary: Vocabulary) -> None:
    if is_common(name):
        return
    vocabulary.learn(NAME, Learnt(name, "user", rule, any_case=True), sign)
    if "." in name or "_" in name or " " in name:
        encoded = re.sub(r"[._ ]", "-", name)
        vocabulary.learn(NAME, Learnt(encoded, "user", "encoded-folder", any_case=True), sign)


def _found(text: str) -> Iterator[tuple[str, int, int]]:
    for rule, form in _FORMS.items():
        if _HINTS[rule] not in text:
            continue
        for found in form.finditer(text):
            for group in ("name", "group"):
                if group not in form.groupindex:
                    continue
                start, end = found.span(group)
                while end > start and text[end - 1] in ".-":
                    end -= 1
                if _is_name(text[start:end]):
                    yield rule, start, end


def _is_name(name: str) -> bool:
    if not any(character.isalpha() for character in name):
        return False
    return not is_account(name) and not _FILE.fullmatch(name)
