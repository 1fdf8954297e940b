"""What is scrubbed: passes, chosen by a profile and changed one by one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from compression_eval.conversations.scrubbing.detector import PACKAGE as DETECTOR
from compression_eval.conversations.scrubbing.detector import name_and_version
from compression_eval.conversations.scrubbing.listed import Listed
from compression_eval.conversations.scrubbing.words import PACKAGE as DICTIONARY
from compression_eval.fixtures.errors import DataError, shorten

RULES_VERSION = 4
"""Version of our own rules and pseudonyms; a change of either that changes a byte raises it."""

DEFAULT_PROFILE = "default"
_NEEDS = {
    DETECTOR: {"secrets"},
    DICTIONARY: {"user_names", "handles", "emails", "hosts"},
}
"""The passes that need a package."""


@dataclass(frozen=True)
class ScrubSettings:
    """Which passes run, and what they are told.

    Make one with `ScrubSettings.of`, which checks the names.
    """

    profile: str
    passes: tuple[str, ...]
    """Names of the passes, in the order they run."""
    listed: Listed = field(default_factory=Listed, repr=False)
    """Names that no rule can know."""
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
        listed: Listed | None = None,
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
        for name in sorted(skip | only | add):
            if name not in all_passes():
                raise DataError(
                    f"pass: unknown {shorten(name)}, there are {', '.join(all_passes())}"
                )
        chosen = ((only or set(profiles()[profile])) | add) - skip
        if not chosen:
            raise DataError("pass: none is left to run")
        passes = tuple(name for name in all_passes() if name in chosen)
        return cls(profile, passes, listed or Listed(), remote_owners)

    @property
    def scrubber(self) -> str:
        """What a fixture records: our version, the profile and the packages that were used.

        Raises:
            DataError: A package that is needed is not installed.
        """
        needed = [package for package, passes in _NEEDS.items() if passes & set(self.passes)]
        used = ", ".join((self.profile, *map(name_and_version, needed)))
        return f"compression_eval {RULES_VERSION} ({used})"


def all_passes() -> tuple[str, ...]:
    """Return the names of all passes, in the order they run."""
    return tuple(_data()["passes"])


def profiles() -> dict[str, list[str]]:
    """Return the passes of every profile by its name."""
    found: dict[str, list[str]] = _data()["profiles"]
    return found


@cache
def _data() -> dict[str, Any]:
    text = (files(__package__) / "profiles.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data
