"""Values to plant in conversations: secrets and personal data of many kinds, none of them real.

Each kind follows what its vendor or standard says in public about its form (prefix, alphabet,
length), not what a scrubber looks for. Personal names, accounts and numbers come from `faker`.
Everything is drawn from one seed, so a run can be repeated.
"""

from collections.abc import Iterator

from benchmarks.planted_drawing import Draw, Kind, Plant
from benchmarks.planted_personal import personal_kinds
from benchmarks.planted_secrets import secret_kinds

__all__ = ["Kind", "Plant", "kinds", "plants"]


def kinds() -> list[Kind]:
    """Return every kind, secrets first."""
    return [*secret_kinds(), *personal_kinds()]


def plants(kind: Kind, draws: int, seed: int) -> Iterator[Plant]:
    """Draw values of one kind; the same seed gives the same values."""
    source = Draw(seed + sum(kind.name.encode()) * 7919)
    for _ in range(draws):
        yield Plant(kind.name, *kind.draw(source))
