"""Answers with the scores that a careful reader gives them, loaded from files and checked.

Each has a kind, which says how it may mislead a grader (`Traps`); of most there are variants that
must not move a score.
"""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from compression_eval.errors import DataError, shorten
from compression_eval.facts.life import wrong_values
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.finding_files import named_items, shipped_fixtures
from compression_eval.fixtures.loading import load_pair, parsed, refuse
from compression_eval.fixtures.locations import data_folder
from compression_eval.fixtures.models import Language, NonEmpty, Strict
from compression_eval.grading.judgement import abstained
from compression_eval.grading.rubric import (
    OVERALL,
    Criterion,
    Rubric,
    dimension_scores,
    load_rubric,
    overall,
    structure,
)
from compression_eval.record import StateRecord
from compression_eval.text.lookup import Text

Kind = Literal[
    "perfect",
    "worked_example",
    "partial",
    "wrong_value",
    "lucky_guess",
    "stale_value",
    "made_up_file",
    "hedged",
    "abstention",
    "refetch",
    "padding",
    "injection",
    "wrong_format",
    "constraint_broken",
    "recorded",
]

Variant = Literal["original", "criteria_reversed", "padded", "method_named", "language_swapped"]
"""Changes to a grading request that must not move a score."""

ORIGINAL: Variant = "original"

_OTHER_LANGUAGE: dict[Language, Language] = {"en": "zh", "zh": "ja", "ja": "en"}
_ROUNDING = 1e-9

_WHOLE = ("perfect", "lucky_guess", "wrong_format")
"""Kinds of answers that contain everything the probe expects."""

_MAX_IGNORED = 2.0
"""Maximum score of a criterion that the answer's kind says was ignored."""


ScoreValue = Annotated[float, Field(ge=0, le=5)]


class GradedAnswer(Strict):
    """One answer to a probe and what it is worth."""

    id: NonEmpty
    probe: NonEmpty
    """Id of the probe in the fixture's bank."""
    kind: Kind
    """What is special about it; most kinds test a weakness of graders, and ``recorded`` is what a
    model answered in a run."""
    answer: NonEmpty
    scores: dict[str, ScoreValue] = Field(min_length=1)
    """By criterion id, 0 to 5; a criterion that fits the probe and has no mark is not compared."""
    second_scores: dict[str, ScoreValue] | None = None
    """Those of a second reader, who had not seen the first's."""
    why: NonEmpty
    """The scores in one line, in the language of the fixture."""


class AnswerSet(Strict):
    """The graded answers about one fixture."""

    fixture: NonEmpty
    """Name of a shipped fixture."""
    context: NonEmpty
    """The lossy summary that the grader is shown as what the assistant had."""
    answers: list[GradedAnswer] = Field(min_length=1)


@dataclass(frozen=True)
class CalibrationSet:
    """Graded answers with the probes that they answer."""

    path: str
    answers: AnswerSet
    probes: dict[str, Probe]
    language: Language


def load_sets(named: str | Sequence[str] | None = None) -> list[CalibrationSet]:
    """Read sets of graded answers.

    Args:
        named: Names of shipped sets or paths of files, as a list or separated by commas; all
            shipped ones by default.

    Raises:
        DataError: A set is not found, a field is wrong, or it does not fit its fixture.
    """
    shipped = {path.stem: path for path in sorted((data_folder() / "calibration").glob("*.json"))}
    if named is None:
        return [load_set(path) for path in shipped.values()]
    sets: list[CalibrationSet] = []
    for item in named_items(named):
        path = shipped.get(str(item), Path(item))
        if not path.is_file():
            names = ", ".join(shipped)
            raise DataError(f"answers: no set or file {shorten(str(item))} (sets: {names})")
        sets.append(load_set(path))
    doubled = [name for name, n in Counter(s.answers.fixture for s in sets).items() if n > 1]
    if doubled:
        raise DataError(f"answers: several sets about {shorten(doubled[0])}; give one")
    return sets


def load_set(path: Path) -> CalibrationSet:
    """Read one set and check it against its fixture.

    Raises:
        DataError: As `load_sets`.
    """
    try:
        answers = parsed(path.read_bytes(), str(path), AnswerSet)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    fixture = shipped_fixtures().get(answers.fixture)
    if fixture is None:
        raise DataError(f"{path}: fixture: {shorten(answers.fixture)} is not a shipped one")
    pair = load_pair(fixture)
    probes = {probe.id: probe for probe in pair.bank.probes}
    language = pair.bank.language or pair.fixture.language or "en"
    refuse(str(path), faults(answers, probes, language))
    return CalibrationSet(str(path), answers, probes, language)


def faults(answers: AnswerSet, probes: dict[str, Probe], language: Language) -> Iterator[str]:
    """Yield what is wrong with a set, as lines that name the answer and the field.

    Args:
        answers: The set.
        probes: The probes of its fixture by id.
        language: The fixture's language.
    """
    for id_, count in Counter(item.id for item in answers.answers).items():
        if count > 1:
            yield f"answers: the id {shorten(id_)} is used {count} times"
    for item in answers.answers:
        where = f"answers: {shorten(item.id)}"
        probe = probes.get(item.probe)
        if probe is None:
            yield f"{where}: probe: there is no probe {shorten(item.probe)}"
            continue
        fitting = {criterion.id for criterion in load_rubric("en").criteria_for(probe)}
        for field in ("scores", "second_scores"):
            if foreign := sorted((getattr(item, field) or {}).keys() - fitting):
                names = ", ".join(map(shorten, foreign))
                yield f"{where}: {field}: not graded on a probe like this: {names}"
        for fault in _kind_faults(item, probe, language):
            yield f"{where}: {fault}"


def _kind_faults(item: GradedAnswer, probe: Probe, language: Language) -> Iterator[str]:
    """Yield scores that the grading rules or the answer's kind do not allow."""
    answer = Text(item.answer)
    facts = [None if fact.derived else answer.has_any(fact.forms) for fact in probe.expected_facts]
    if item.kind in _WHOLE and False in facts:
        missing = probe.expected_facts[facts.index(False)].fact
        yield f"kind: {item.kind}, but it lacks {shorten(missing)}"
    if item.kind == "stale_value" and not any(map(answer.has_any, wrong_values(probe))):
        yield "kind: stale_value, but it has no superseded value"
    silent = abstained(item.answer, probe, load_rubric(language).abstention)
    if silent != (item.kind == "abstention") and item.kind != "recorded":
        yield f"kind: {item.kind}, but the answer {'abstains' if silent else 'does not abstain'}"
    graded = set(item.scores) - set(_of("instruction_following"))
    if silent and any(item.scores[name] for name in graded):
        yield "scores: an answer that does not know gets 0 on all but instruction following"
    if item.kind == "hedged" and not any(facts):
        yield "kind: hedged, but it contains no expected fact"
    if item.kind == "made_up_file" and probe.type != "artifact":
        yield "kind: made_up_file, but the probe is not about artifacts"
    if item.kind == "wrong_format" and probe.format is None:
        yield "kind: wrong_format, but the probe asks for none"
    if item.kind == "wrong_format" and item.scores.get("instruction_format", 5) > _MAX_IGNORED:
        yield f"scores: instruction_format above {_MAX_IGNORED:g}, but the kind is wrong_format"
    if item.kind == "constraint_broken":
        if probe.constraint is None:
            yield "kind: constraint_broken, but the probe states no constraint"
        elif item.scores.get("instruction_constraints", 5) > _MAX_IGNORED:
            yield f"scores: instruction_constraints above {_MAX_IGNORED:g}, but one is broken"


def _of(dimension: str) -> list[str]:
    return [c.id for c in structure().criteria if c.dimension == dimension]


def by_key(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the dimensions and the overall score of scores by criterion; NaN without a value."""
    dimensions = dimension_scores(scores)
    return {OVERALL: overall(dimensions)} | {str(key): each for key, each in dimensions.items()}


def shown_state(fixture: str) -> StateRecord:
    """Return the record of a context that was written instead of compressed."""
    return StateRecord(
        state_id=f"calibration-{fixture}", status="ok", message_count=1, regions=["summary"]
    )


class Trap(Strict):
    """The direction and criteria in which a kind of answer misleads graders."""

    direction: Literal["up", "down"]
    """``up`` is too lenient, ``down`` too harsh."""
    criteria: list[NonEmpty] = Field(min_length=1)
    """Criteria that it affects, if they are graded."""


class Traps(Strict):
    """The trap in each kind of answer."""

    off_by: float = Field(gt=0)
    """Minimum error, in points of the rubric, that counts as falling for it."""
    traps: dict[Kind, Trap | None]


@functools.cache
def traps() -> Traps:
    """Return the trap in each kind of answer."""
    return Traps.model_validate(_data("traps.yaml"))


def sprung(kind: Kind, scores: Mapping[str, float], reference: Mapping[str, float]) -> bool | None:
    """Return whether a grader fell for the trap in an answer.

    Args:
        kind: What is special about the answer.
        scores: The grader's, 0 to 5, by criterion id; those without a value left out.
        reference: The careful reader's.

    Returns:
        None if the answer is no trap, or the grader gave no value for the affected criteria.
    """
    trap = traps().traps[kind]
    if trap is None:
        return None
    sign = 1 if trap.direction == "up" else -1
    aimed = [name for name in trap.criteria if name in scores and name in reference]
    if not aimed:
        return None
    return any(
        sign * (scores[name] - reference[name]) >= traps().off_by - _ROUNDING for name in aimed
    )


def variants_of(probe: Probe, kind: Kind) -> list[Variant]:
    """Return the changes that leave an answer's worth unchanged.

    Padding breaks a requested format, and turns an abstention into an answer.

    Args:
        probe: What was asked.
        kind: What is special about the answer.
    """
    variants: list[Variant] = ["criteria_reversed", "language_swapped"]
    if probe.format is None and kind not in ("abstention", "refetch"):
        variants += ["padded", "method_named"]
    return variants


def varied_answer(answer: str, variant: Variant, language: Language) -> str:
    """Return the answer that the grader is shown.

    Args:
        answer: The answer in the set.
        variant: The change.
        language: The fixture's language.
    """
    if variant not in ("padded", "method_named"):
        return answer
    text: str = _data("variants.yaml")[language][variant]
    return text.replace("{answer}", answer)


def varied_rubric(
    probe: Probe, variant: Variant, language: Language
) -> tuple[Rubric, Sequence[Criterion]]:
    """Return the rubric and the criteria, in the order of the request.

    Args:
        probe: What was asked.
        variant: The change.
        language: The language to grade in, if it is not swapped.
    """
    rubric = load_rubric(_OTHER_LANGUAGE[language] if variant == "language_swapped" else language)
    criteria = rubric.criteria_for(probe)
    return rubric, criteria[::-1] if variant == "criteria_reversed" else criteria


@functools.cache
def _data(name: str) -> Any:
    return yaml.safe_load((files(__package__) / name).read_text(encoding="utf-8"))
