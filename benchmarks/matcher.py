"""How well look-ups tell whether a text states a fact, on hand-labelled pairs.

    python -m benchmarks.matcher           # precision, recall and every error
    python -m benchmarks.matcher --yaml    # the errors as `matcher_errors.yaml` keeps them

Each figure stands three times: by spelling alone, with other notations, and as an answer is read
(denials and keys, `facts.stated`). The pairs and what their labels mean:
`tests/text/data/matcher_pairs.yaml`. Where a folder of labelled real summaries lies beside the
checkout (`../shared/real-run`, or `--labels FOLDER`), the look-up is measured on it too.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from compression_eval.facts.stated import stated_facts
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.loading import load_pairs as load_fixtures
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import value_markers
from compression_eval.text.matching import Text

_DATA = Path(__file__).parents[1] / "tests" / "text" / "data"
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
    "a": "answers",
}
"""What the first letter of a pair's id stands for."""


LABELS = Path(__file__).parents[2] / "shared" / "real-run"
"""Where labels of real summaries lie, if there are any."""

_LANGUAGES: dict[str, Language] = {"z": "zh", "j": "ja"}


class Spelled(Text):
    """A text in which facts are found as they are spelled only."""

    def _otherwise_at(self, form: str, *, dated: bool) -> Iterator[tuple[str, int, int]]:  # noqa: ARG002
        return iter(())


@dataclass(frozen=True)
class Pair:
    """A fact, a text, and whether a reader says that the text states the fact."""

    id: str
    fact: str
    forms: tuple[str, ...]
    asks: str
    reference: str
    text: str
    states: bool


Reading = Callable[[Pair], bool]


def spelled(pair: Pair) -> bool:
    """Return whether a form stands in the text as it is spelled."""
    return Spelled(pair.text).has_any(pair.forms)


def noted(pair: Pair) -> bool:
    """Return whether the text has the fact in some notation."""
    return Text(pair.text).has_any(pair.forms)


def answered(pair: Pair) -> bool:
    """Return whether the text, as an answer to what the fact is asked for, states it."""
    fact = ExpectedFact(fact=pair.fact, any_of=list(pair.forms[1:]))
    probe = Probe(
        id=pair.id,
        type="recall",
        question=pair.asks,
        expected_facts=[fact],
        reference_answer=pair.reference,
    )
    return stated_facts(probe, pair.text, value_markers(_LANGUAGES.get(pair.id[0], "en"))) == [True]


READINGS: dict[str, Reading] = {"spelling": spelled, "notations": noted, "answer": answered}


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
            asks=entry["asks"],
            reference=entry.get("reference", ""),
            text=entry["text"],
            states=entry["states"],
        )
        for entry in entries
    ]


def measure(pairs: Sequence[Pair], reading: Reading = answered) -> Measure:
    """Look every fact up in its text and compare with the labels."""
    read = [(pair, reading(pair)) for pair in pairs]
    return Measure(
        both=sum(pair.states and found for pair, found in read),
        missed=tuple(pair for pair, found in read if pair.states and not found),
        mistaken=tuple(pair for pair, found in read if found and not pair.states),
        neither=sum(not pair.states and not found for pair, found in read),
    )


@dataclass(frozen=True)
class Labelled:
    """A fact of a real summary, and a careful reader's word on it."""

    arm: str
    fact: ExpectedFact
    label: str
    """``stated``, ``derivable`` or ``absent``."""
    text: str
    """All that the state says."""


def load_labels(folder: Path) -> list[Labelled]:
    """Read labelled facts; those that the banks no longer have are left out."""
    facts = {
        (pair.fixture.name, probe.id, fact.fact): fact
        for pair in load_fixtures("all", None)
        for probe in pair.bank.probes
        for fact in probe.expected_facts
    }
    states = {
        (state["fixture"], state["arm"]): "\n".join(map(_said, state["messages"]))
        for state in lines_of(folder / "states.jsonl")
    }
    return [
        Labelled(row["arm"], fact, row["label"], states[row["fixture"], row["arm"]])
        for row in lines_of(folder / "fact_labels.jsonl")
        if (fact := facts.get((row["fixture"], row["probe_id"], row["fact"])))
    ]


def load_answers(folder: Path) -> Iterator[tuple[str, Probe, str]]:
    """Yield arm, probe and answer of a real run; its conversations are English."""
    probes = {
        (pair.fixture.name, probe.id): probe
        for pair in load_fixtures("all", None)
        for probe in pair.bank.probes
    }
    for row in lines_of(folder / "answers.jsonl"):
        if probe := probes.get((row["fixture"], row["probe_id"])):
            yield row["arm"], probe, row["answer"] or ""


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _said(message: dict[str, Any]) -> str:
    calls = [json.dumps(call["arguments"], ensure_ascii=False) for call in message["tool_calls"]]
    return "\n".join([message["text"], *calls])


def _print_labels(folder: Path) -> None:
    labels = load_labels(folder)
    texts = {text: (Spelled(text), Text(text)) for text in {item.text for item in labels}}
    print(f"\nlabelled facts of real summaries ({len(labels)}): found, by spelling -> by notations")
    print(f"{'arm':20}{'forms':8}{'stated':>18}{'derivable':>18}{'absent':>18}")
    for arm in [*dict.fromkeys(item.arm for item in labels), "all"]:
        some = [item for item in labels if arm in (item.arm, "all")]
        for name in ("plain", "all"):
            cells = []
            for label in ("stated", "derivable", "absent"):
                found = [
                    [
                        text.has_any([item.fact.fact] if name == "plain" else item.fact.forms)
                        for text in texts[item.text]
                    ]
                    for item in some
                    if item.label == label
                ]
                before, after = (
                    (sum(column) for column in zip(*found, strict=True)) if found else (0, 0)
                )
                cells.append(f"{before} -> {after} of {len(found)}")
            print(f"{arm:20}{name:8}" + "".join(f"{cell:>18}" for cell in cells))
    total: Counter[str] = Counter()
    counted: dict[str, Counter[str]] = {name: Counter() for name in ("spelling", "answer")}
    for arm, probe, answer in load_answers(folder):
        total[arm] += len(probe.expected_facts)
        text = Spelled(answer)
        counted["spelling"][arm] += sum(text.has_any(fact.forms) for fact in probe.expected_facts)
        counted["answer"][arm] += stated_facts(probe, answer, value_markers("en")).count(True)
    print("\nexpected facts in the answers: by spelling -> as answers are read")
    for arm, number in total.items():
        print(f"{arm:20}{counted['spelling'][arm]} -> {counted['answer'][arm]} of {number}")


def _print(pairs: Sequence[Pair]) -> None:
    heads = "".join(f"{name:>22}" for name in READINGS)
    print(f"{'':36}{heads}")
    print(
        f"{'group':22}{'pairs':>6}{'stated':>8}" + f"{'precision':>13}{'recall':>9}" * len(READINGS)
    )
    for letter, name in [*GROUPS.items(), ("", "all")]:
        some = [pair for pair in pairs if pair.id.startswith(letter)]
        stated = sum(pair.states for pair in some)
        results = [measure(some, reading) for reading in READINGS.values()]
        cells = "".join(f"{result.precision:13.3f}{result.recall:9.3f}" for result in results)
        print(f"{name:22}{len(some):6}{stated:8}{cells}")
    wrong = sum(not pair.states for pair in pairs)
    credited = [len(measure(pairs, reading).mistaken) for reading in READINGS.values()]
    print(f"credited though wrong: {' -> '.join(map(str, credited))} of {wrong}")
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
    parser.add_argument("--labels", type=Path, default=LABELS, help="Labels of real summaries.")
    arguments = parser.parse_args()
    if arguments.yaml:
        _print_yaml(load_pairs())
    else:
        _print(load_pairs())
        if arguments.labels.is_dir():
            _print_labels(arguments.labels)
        else:
            print(f"\nno labels of real summaries: {arguments.labels} is no folder (see --labels)")
