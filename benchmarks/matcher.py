"""How well look-ups tell whether a text states a fact, on hand-labelled pairs.

    python -m benchmarks.matcher           # precision, recall and every error
    python -m benchmarks.matcher --yaml    # the errors as `matcher_errors.yaml` keeps them

The pairs and what their labels mean: `tests/fixtures/data/matcher_pairs.yaml`. Their author had not
seen the matching rules when labelling.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from compression_eval.fixtures.matching import Text

_DATA = Path(__file__).parents[1] / "tests" / "fixtures" / "data"
PAIRS = _DATA / "matcher_pairs.yaml"
ERRORS = _DATA / "matcher_errors.yaml"
"""The ids of the pairs that are known to go wrong, for the regression test."""

GROUPS = {
    "n": "numbers",
    "u": "numbers with units",
    "s": "settings",
    "i": "identifiers",
    "v": "versions, dates",
    "p": "paths",
    "w": "words, paraphrases",
    "z": "Chinese",
    "j": "Japanese",
}
"""What the first letter of a pair's id stands for."""


@dataclass(frozen=True)
class Pair:
    """A fact, a text, and whether a reader says that the text states the fact."""

    id: str
    fact: str
    forms: tuple[str, ...]
    text: str
    states: bool

    @property
    def found(self) -> bool:
        """Whether the look-up finds the fact."""
        return Text(self.text).has_any(self.forms)


@dataclass(frozen=True)
class Measure:
    """How often the look-up was right."""

    both: int
    """Stated and found."""
    missed: tuple[Pair, ...]
    """Stated, not found."""
    mistaken: tuple[Pair, ...]
    """Found, not stated."""
    neither: int

    @property
    def precision(self) -> float:
        """Share of the found ones that are stated; 1 if none was found."""
        found = self.both + len(self.mistaken)
        return self.both / found if found else 1.0

    @property
    def recall(self) -> float:
        """Share of the stated ones that are found; 1 if none is stated."""
        stated = self.both + len(self.missed)
        return self.both / stated if stated else 1.0


def load_pairs(path: Path = PAIRS) -> list[Pair]:
    """Read the labelled pairs."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))["pairs"]
    return [
        Pair(
            id=entry["id"],
            fact=entry["fact"],
            forms=(entry["fact"], *entry.get("any_of", ())),
            text=entry["text"],
            states=entry["states"],
        )
        for entry in entries
    ]


def measure(pairs: Sequence[Pair]) -> Measure:
    """Look every fact up in its text and compare with the labels."""
    return Measure(
        both=sum(pair.states and pair.found for pair in pairs),
        missed=tuple(pair for pair in pairs if pair.states and not pair.found),
        mistaken=tuple(pair for pair in pairs if pair.found and not pair.states),
        neither=sum(not pair.states and not pair.found for pair in pairs),
    )


def _print(pairs: Sequence[Pair]) -> None:
    print(f"{'group':22}{'pairs':>6}{'stated':>8}{'precision':>11}{'recall':>8}")
    for letter, name in [*GROUPS.items(), ("", "all")]:
        some = [pair for pair in pairs if pair.id.startswith(letter)]
        result = measure(some)
        stated = sum(pair.states for pair in some)
        print(f"{name:22}{len(some):6}{stated:8}{result.precision:11.3f}{result.recall:8.3f}")
    result = measure(pairs)
    for title, errors in (
        ("found, though not stated", result.mistaken),
        ("stated, but not found", result.missed),
    ):
        print(f"\n{title}: {len(errors)}")
        for pair in errors:
            print(f"  {pair.id}  {' | '.join(pair.forms)}  <-  {pair.text!r}")


def _print_yaml(pairs: Sequence[Pair]) -> None:
    result = measure(pairs)
    errors = {
        "mistaken": [pair.id for pair in result.mistaken],
        "missed": [pair.id for pair in result.missed],
    }
    print(yaml.safe_dump(errors, default_flow_style=None, width=100, sort_keys=False), end="")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--yaml", action="store_true", help="Print the ids of the errors only.")
    (_print_yaml if parser.parse_args().yaml else _print)(load_pairs())
