"""Combine the graders' scores with mechanical rules into the final scores.

`judge` makes a `Judgement` of the panel's gradings: an abstention scores only for its form, which
is checked mechanically, and every other score is the graders' median. The judgement says itself how
the log and the viewer show it. `answer_words` reads the graders' words on the facts back from a
score, for the scorers that come after.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.scorer import Score

from compression_eval.facts.life import AnswerWord, wrong_values
from compression_eval.fixtures.banks import Probe
from compression_eval.grading.form import constraint_score, format_score
from compression_eval.grading.panel import EMBEDDED_PROVIDER, Grading, PanelGrading
from compression_eval.grading.request import GradingRequest
from compression_eval.grading.rubric import (
    FORM_DIMENSION,
    FORMULA,
    Abstention,
    Criterion,
    Dimension,
    dimension_scores,
    gradings,
    knowledge,
    overall,
    structure,
)
from compression_eval.record import Recorded
from compression_eval.text.lookup import Text
from compression_eval.text.markdown import escaped, number

MAX_ABSTENTION = 600
"""An answer with more characters (in Latin script) says more than that it does not know."""

_EDGES = " \t\r\n.!?。！？…*_`'\"「」“”()（）{}[]"
_SENTENCES = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
_WIDE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uac00-\ud7af]")


@dataclass(frozen=True)
class Judgement:
    """Everything known about one graded answer."""

    scores: dict[str, float]
    """Each graded criterion's final score, 0 to 5, by its id; NaN if there is none."""
    panel: PanelGrading
    """The graders' results, before the mechanical rules."""
    abstained: bool
    """Whether the answer says that it does not know where there is one; the graders judge it where
    there is none."""
    wanted_tools: bool
    """Whether the model tried to call tools, that is, to fetch something again."""
    cut_off: bool
    """Whether the answer was cut off by the token limit."""
    facts: dict[str, AnswerWord | None]
    """The graders' word on each expected fact in the answer; None if they give none."""
    wrong: dict[str, AnswerWord | None]
    """The same for each superseded or forbidden value."""

    @property
    def ungraded(self) -> list[str]:
        """Ids of the criteria that were asked for and have no score."""
        return [id_ for id_, score in self.scores.items() if math.isnan(score)]

    @property
    def dimensions(self) -> dict[Dimension, float]:
        """Each dimension's score, 0 to 5; NaN if it has none."""
        return dimension_scores(self.scores)

    @property
    def knowledge(self) -> float:
        """The mean of the dimensions without instruction following, 0 to 5; NaN if none has one."""
        return knowledge(self.dimensions)

    @property
    def overall(self) -> float:
        """The overall score, 0 to 5; NaN if there is none."""
        return overall(self.dimensions)

    def metadata(self, settings: Mapping[str, str]) -> dict[str, Any]:
        """Return the judgement as the log keeps it, in the shape that graders' replies have too.

        Args:
            settings: The settings of the grading; copied unchanged.
        """
        panel, several = self.panel, len(self.panel.gradings) > 1
        return {
            "criterionResults": [
                {
                    "criterionId": id_,
                    "score": _or_none(score),
                    "reasoning": panel.reasoning(id_),
                    "graded": _or_none(panel.score(id_)),
                    **({"spread": _or_none(panel.spread(id_))} if several else {}),
                }
                for id_, score in self.scores.items()
            ],
            "ungraded": self.ungraded,
            "facts": [{"fact": fact, "verdict": word} for fact, word in self.facts.items()],
            "wrong_values": [{"value": v, "verdict": word} for v, word in self.wrong.items()],
            "facts_failure": panel.facts_failure,
            "aggregateScore": _or_none(self.overall),
            "dimensionScores": {name: _or_none(value) for name, value in self.dimensions.items()},
            "graders": [_grader(grading, with_results=several) for grading in panel.gradings],
            **({"disagreement": panel.disagreement} if several else {}),
            "self_graded": panel.self_graded,
            "attempts": panel.attempts,
            "abstained": self.abstained,
            "wanted_tools": self.wanted_tools,
            "cut_off": self.cut_off,
            **settings,
        }


def _grader(grading: Grading, *, with_results: bool) -> dict[str, Any]:
    """Return one grader's part; a single grader's results are in the judgement already."""
    part: dict[str, Any] = {
        "model": grading.grader,
        "parameters": grading.parameters,
        "self_graded": grading.self_graded,
        "attempts": grading.attempts,
        "failure": grading.failure,
    }
    if with_results:
        part["criterionResults"] = [item.model_dump() for item in grading.results.values()]
        part["facts"] = grading.facts
    return part


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass(frozen=True)
class AnswerWords:
    """What the latest grading of a sample says of the facts in its answer."""

    by_model: bool = False
    """Whether a language model graded the answer."""
    facts: Mapping[str, AnswerWord | None] = field(default_factory=dict)
    wrong: Mapping[str, AnswerWord | None] = field(default_factory=dict)

    def of(self, probe: Probe) -> list[AnswerWord | None]:
        """Return the word on each expected fact of a probe, in its order."""
        return [self.facts.get(fact.fact) for fact in probe.expected_facts]

    def violations(self, probe: Probe) -> list[str] | None:
        """Return the wrong values that the answer gives as current; None if that is not known."""
        words = {forms[0]: self.wrong.get(forms[0]) for forms in wrong_values(probe)}
        if not any(words.values()):
            return None
        return [value for value, word in words.items() if word == "stated"]


def answer_words(scores: Mapping[str, Score] | None) -> AnswerWords:
    """Return how the latest grading of a sample reads its answer.

    Inspect hands a scorer the scores of those before it, and in ``inspect score --action append``
    those of the log: nothing else has to be kept.

    Args:
        scores: As in `TaskState.scores`.
    """
    found = gradings(scores)
    metadata = (found[-1].metadata or {}) if found else {}
    graders = [str(grader.get("model")) for grader in metadata.get("graders") or []]
    return AnswerWords(
        by_model=any(not name.startswith(f"{EMBEDDED_PROVIDER}/") for name in graders),
        facts={item["fact"]: item["verdict"] for item in metadata.get("facts") or []},
        wrong={item["value"]: item["verdict"] for item in metadata.get("wrong_values") or []},
    )


def judge(request: GradingRequest, sample: Recorded, panel: PanelGrading) -> Judgement:
    """Combine the graders' scores with what can be decided mechanically.

    Args:
        request: The request to the graders.
        sample: The probe and the answer.
        panel: The graders' results.
    """
    probe, answer = sample.probe, sample.answer
    silent = not probe.unanswerable and abstained(answer.text, probe, request.rubric.abstention)

    def final(criterion: Criterion) -> float:
        if not silent:
            return panel.score(criterion.id)
        return _form(criterion, answer.text, probe)

    facts = zip(request.facts, probe.expected_facts, strict=True)
    wrong = zip(request.wrong, wrong_values(probe), strict=True)
    return Judgement(
        scores={each.id: final(each) for each in (request.criteria if panel.succeeded else ())},
        panel=panel,
        abstained=silent,
        wanted_tools=bool(answer.tool_calls),
        cut_off=answer.cut_off,
        facts={fact.fact: panel.word(id_) for id_, fact in facts},
        wrong={forms[0]: panel.word(id_) for id_, forms in wrong},
    )


def _form(criterion: Criterion, answer: str, probe: Probe) -> float:
    """Return an abstention's score: 0 on everything but the criteria of instruction following."""
    if criterion.dimension != FORM_DIMENSION:
        return 0.0
    if criterion.id == "instruction_format":
        return format_score(answer, probe.format)[0]
    kept, _ = constraint_score(answer, probe.constraint)
    return math.nan if kept is None else kept


def abstained(answer: str, probe: Probe, abstention: Abstention) -> bool:
    """Return whether an answer is empty or says that it does not know.

    An answer that contains an expected fact, that continues at length, or that says anything next
    to not knowing has not abstained, whatever it says it is unsure about.

    Args:
        answer: What the model said.
        probe: The question with its expected facts.
        abstention: The abstention phrases of the answer's language.
    """
    plain = answer.strip(_EDGES).casefold()
    if not plain or plain in {word.casefold() for word in abstention.whole}:
        return True
    if len(plain) + 2 * len(_WIDE.findall(plain)) > MAX_ABSTENTION:
        return False
    text = Text(answer)
    if any(text.has_any(fact.forms) for fact in probe.expected_facts):
        return False
    phrases = [phrase.casefold() for phrase in abstention.phrases]
    sentences = [part for part in _SENTENCES.split(plain) if part.strip(_EDGES)]
    return all(any(phrase in part for phrase in phrases) for part in sentences)


def explained(judgement: Judgement) -> str:
    """Return a judgement as Markdown for the log viewer: criteria by dimension, then notes.

    Criteria are a list, not a table, because the viewer's narrow columns break words.
    """
    panel, several = judgement.panel, len(judgement.panel.gradings) > 1
    graded = [each for each in structure().criteria if each.id in judgement.scores]
    lines = []
    for name, value in judgement.dimensions.items():
        of_dimension = [each for each in graded if each.dimension == name]
        if of_dimension:
            lines.append(f"- **{name} {number(value)}**")
        for each in of_dimension:
            score, before = judgement.scores[each.id], panel.score(each.id)
            spread = f", spread {number(panel.spread(each.id))}" if several else ""
            reason = panel.reasoning(each.id)
            if score != before and not math.isnan(score):
                reason = f"[abstained: {number(before)} counts as {number(score)}] {reason}"
            lines.append(
                f"  - {each.id} **{number(score)}** (weight {each.weight:g}{spread}): "
                f"{escaped(reason)}"
            )
    return "\n\n".join(["\n".join(lines), *_notes(judgement)])


def _notes(judgement: Judgement) -> list[str]:
    panel = judgement.panel
    notes = [
        f"Knowledge: {number(judgement.knowledge)}; overall: {number(judgement.overall)}; "
        f"{FORMULA}."
    ]
    if judgement.ungraded:
        notes.append(
            f"Without a score: {len(judgement.ungraded)} of {len(judgement.scores)} criteria "
            f"({', '.join(judgement.ungraded)})."
        )
    if judgement.abstained:
        notes.append(
            "The answer says that it does not know: 0 on everything but instruction following, "
            "which is checked mechanically."
        )
    if judgement.wanted_tools:
        notes.append("The model tried to call a tool, that is, to fetch something again.")
    if judgement.cut_off:
        notes.append("The answer was cut off (stop reason max_tokens): give it more --max-tokens.")
    if wrong := [value for value, word in judgement.wrong.items() if word == "stated"]:
        notes.append(given_as_current(wrong))
    if any(judgement.facts.values()):
        words = Counter(word or "no word" for word in judgement.facts.values())
        counts = ", ".join(f"{n} {word}" for word, n in words.items())
        notes.append(f"Expected facts in the answer, as the grader reads it: {counts}.")
    if panel.facts_failure:
        notes.append(
            f"What the grader says of the facts cannot be used: {escaped(panel.facts_failure)}."
        )
    if apart := panel.disagreement:
        notes.append(
            f"Graders apart by {number(apart['overall'])} overall, most on "
            f"{apart['criterion']} ({number(apart['largest'])})."
        )
    for n, grading in enumerate(panel.gradings, start=1):
        calls = "1 call" if grading.attempts == 1 else f"{grading.attempts} calls"
        mark = ", judging its own answer" if grading.self_graded else ""
        failure = grading.failure and f", failed: {escaped(grading.detail or grading.failure)}"
        notes.append(f"Grader {n}: {escaped(grading.grader)} ({calls}{mark}{failure})")
    return notes


def given_as_current(wrong: list[str]) -> str:
    """Return the line that lists the wrong values that an answer gives as current."""
    values = ", ".join(escaped(value, 80) for value in wrong)
    return f"Given as current, but superseded or forbidden: {values}."
