"""What is scrubbed: passes, chosen by a profile and changed one by one, and listed names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.rules import missing
from compression_eval.conversations.scrubbing.vocabulary import Learnt
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.digests import digest

RULES_VERSION = 8
"""Version of our own rules and pseudonyms; a change of either that changes a byte raises it."""

DEFAULT_PROFILE = "default"
PARAPHRASE = "paraphrase"
LOADED = ("compression_eval.conversations.scrubbing.loaded",)
"""What processes that scrub share."""

_REPLACE = (
    "secrets",
    "user_names",
    "handles",
    "emails",
    "hosts",
    "addresses",
    "numbers",
    "mentions",
)
_TAKE_AWAY = ("images", "reasoning", "system_prompt", "truncation", "orphans")
_NEEDED_BY = {
    "kingfisher-secret-scanner": {"secrets"},
    "english-words": {"user_names", "handles", "emails", "hosts"},
}
"""The passes that need a package."""

_GIVEN_KIND = re.compile(r"(user|person|host|email|secret):\s*(.+)")
_DOMAIN = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")


@dataclass(frozen=True)
class ScrubSettings:
    """Which passes run, and what they are told.

    Make one with `ScrubSettings.of`, which checks the names.
    """

    profile: str
    passes: tuple[str, ...]
    """Names of the passes, in the order they run."""
    listed: tuple[Learnt, ...] = field(default=(), repr=False)
    """Names that no rule can know, as `read_names` returns them."""
    remote_owners: bool = False
    """Whether the owner of a git remote counts as a handle."""

    @classmethod
    def of(
        cls,
        profile: str = DEFAULT_PROFILE,
        *,
        skip: Iterable[str] = (),
        only: Iterable[str] = (),
        add: Iterable[str] = (),
        listed: tuple[Learnt, ...] = (),
        remote_owners: bool = False,
    ) -> "ScrubSettings":
        """Return the settings of a profile.

        Args:
            profile: One of `profiles`.
            skip: Passes of the profile that shall not run.
            only: If given, the passes that shall run, whatever the profile says.
            add: Passes that shall run beside those of the profile.
            listed: Names that no rule can know.
            remote_owners: Whether the owner of a git remote counts as a handle.

        Raises:
            DataError: A profile or a pass is unknown, or nothing is left to run.
        """
        skip, only, add = set(skip), set(only), set(add)
        if profile not in profiles():
            raise DataError(
                f"profile: unknown {shorten(profile)}, there are {', '.join(profiles())}"
            )
        if unknown := sorted((skip | only | add) - set(all_passes())):
            raise DataError(
                f"pass: unknown {shorten(unknown[0])}, there are {', '.join(all_passes())}"
            )
        chosen = ((only or set(profiles()[profile])) | add) - skip
        if not chosen:
            raise DataError("pass: none is left to run")
        passes = tuple(name for name in all_passes() if name in chosen)
        return cls(profile, passes, listed, remote_owners)

    def described(self, pseudonyms: Pseudonyms) -> dict[str, Any]:
        """Return what decides the result of scrubbing; of names and the key only digests."""
        return {
            "scrubber": self.scrubber,
            "passes": self.passes,
            "remote_owners": self.remote_owners,
            "listed": digest(repr(self.listed)),
            "key": pseudonyms.digest("").hex(),
        }

    @property
    def scrubber(self) -> str:
        """What a fixture records: our version, the profile and the packages that were used.

        Raises:
            DataError: A package that is needed is not installed.
        """
        used = [self.profile]
        for package, passes in _NEEDED_BY.items():
            if passes & set(self.passes):
                try:
                    used.append(f"{package} {version(package)}")
                except PackageNotFoundError as error:
                    raise missing() from error
        return f"compression_eval {RULES_VERSION} ({', '.join(used)})"


def all_passes() -> tuple[str, ...]:
    """Return the names of all passes, in the order they run."""
    return (*_REPLACE, *_TAKE_AWAY, PARAPHRASE)


def profiles() -> dict[str, tuple[str, ...]]:
    """Return the passes of every profile by its name."""
    return {
        # Everything that a conversation loses no fact by.
        DEFAULT_PROFILE: (*_REPLACE, "images", "reasoning", "orphans"),
        "secrets": ("secrets",),
        # For a repository that everybody can read.
        "publish": (*_REPLACE, *_TAKE_AWAY),
    }


def read_names(path: Path) -> tuple[Learnt, ...]:
    """Read a file of names that no rule can know: one to a line, ``#`` begins a comment.

    What a line is follows from its form: ``jane@acme.com`` an e-mail address, ``acme.com`` a
    host, ``Jane Doe`` a person, anything else an account or handle (``@jane``, ``jane``). A
    kind can be given: ``host: acme``, ``person: Jane``, ``secret: swordfish``.

    Raises:
        DataError: The file cannot be read, or a line is too short to be looked for.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    found: list[Learnt] = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.split("#", 1)[0].strip()
        if not entry:
            continue
        if given := _GIVEN_KIND.fullmatch(entry):
            kind, value = given.groups()
        elif "@" in entry[1:]:
            kind, value = "email", entry.removeprefix("@")
        elif _DOMAIN.fullmatch(entry):
            kind, value = "host", entry
        else:
            is_person = " " in entry and not entry.startswith("@")
            kind, value = "person" if is_person else "user", entry.removeprefix("@")
        if len(value) < 2:
            raise DataError(f"{path}: line {number}: {shorten(value)} is too short to look for")
        found.append(Learnt(value, kind, "listed", any_case=kind != "secret"))
    return tuple(found)
