"""The graders of an answer, their gradings, and how a panel's gradings are combined.

Every model of the role ``grader`` grades the answer by itself (`grade`). Of a panel the median of
each criterion counts, and the word of the majority on each fact (`PanelGrading`).
"""

import logging
import math
import statistics
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from inspect_ai.model import Model, model_roles
from inspect_ai.util import collect

from compression_eval.errors import one_line
from compression_eval.facts.life import AnswerWord
from compression_eval.grading.asking import ReplyError, ask
from compression_eval.grading.reply import CriterionResult, Reply, read_reply, response_schema
from compression_eval.grading.request import GradingRequest
from compression_eval.grading.rubric import dimension_scores, overall
from compression_eval.inspect_models import model_under_test

logger = logging.getLogger(__name__)

GRADER_ROLE = "grader"

EMBEDDED_PROVIDER = "embedded"
"""Provider of the embedded model, which grades by formulas and says nothing of the facts."""

MAX_CAUSE = 160
"""Characters of a provider's error in the reason of a failure."""


@dataclass(frozen=True)
class Grading:
    """One grader's grading of one answer."""

    grader: str
    self_graded: bool
    """Whether a language model judges its own answer."""
    attempts: int
    """Calls that it took."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Generation settings of its role, to make a score reproducible; without the provider's own."""
    results: dict[str, CriterionResult] = field(default_factory=dict)
    """By criterion id; empty if the grader failed."""
    failure: str = ""
    """Why there are no results, as a word that can be counted; empty if there are."""
    detail: str = ""
    """The failure in more detail."""
    facts: dict[str, AnswerWord] = field(default_factory=dict)
    """How the answer gives each expected fact and wrong value, by id; empty if not known."""
    facts_failure: str = ""
    """Why the words on the facts are missing, though they were asked for."""

    @property
    def cause(self) -> str:
        """The failure, and of an error what the provider said first; empty if there is none."""
        if self.failure != "error":
            return self.failure
        return f"{self.failure}: {one_line(self.detail.partition(chr(10))[0], MAX_CAUSE)}"

    @property
    def overall(self) -> float:
        """The overall score that the grader's own results give; NaN without any."""
        return overall(dimension_scores(_known(self.results)))


def _known(results: dict[str, CriterionResult]) -> dict[str, float]:
    return {name: each.score for name, each in results.items() if each.score is not None}


@dataclass(frozen=True)
class PanelGrading:
    """A panel's gradings of one answer; a single grader is a panel of one."""

    gradings: tuple[Grading, ...]

    @property
    def succeeded(self) -> list[Grading]:
        """The gradings that came to a result."""
        return [grading for grading in self.gradings if not grading.failure]

    @property
    def failure(self) -> str:
        """Why no grader came to a result; empty if one did."""
        causes = {grading.cause for grading in self.gradings}
        return "" if self.succeeded else ", ".join(sorted(causes))

    @property
    def facts_failure(self) -> str:
        """Why graders that came to a result gave no word on the facts; empty if all did."""
        return ", ".join(sorted({item.facts_failure for item in self.succeeded} - {""}))

    @property
    def attempts(self) -> int:
        """Calls that it took altogether."""
        return sum(grading.attempts for grading in self.gradings)

    @property
    def self_graded(self) -> bool:
        """Whether a model that counts here judged its own answer."""
        return any(grading.self_graded for grading in self.succeeded)

    def scores(self, criterion: str) -> list[float]:
        """Return the graders' scores for one criterion, those without a value left out."""
        scores = (grading.results[criterion].score for grading in self.succeeded)
        return [score for score in scores if score is not None]

    def score(self, criterion: str) -> float:
        """Return the median over the graders, 0 to 5; NaN if none gave a value."""
        scores = self.scores(criterion)
        return statistics.median(scores) if scores else math.nan

    def spread(self, criterion: str) -> float:
        """Return how far the graders are apart: highest minus lowest; NaN if none gave a value."""
        scores = self.scores(criterion)
        return max(scores) - min(scores) if scores else math.nan

    def reasoning(self, criterion: str) -> str:
        """Return the graders' reasons, each with its grader's number if there are several."""
        if len(self.succeeded) == 1:
            return self.succeeded[0].results[criterion].reasoning
        return " / ".join(
            f"({n}) {grading.results[criterion].reasoning}"
            for n, grading in enumerate(self.gradings, start=1)
            if not grading.failure
        )

    def word(self, fact: str) -> AnswerWord | None:
        """Return how most graders read the answer on one fact; None without a majority."""
        words = Counter(item.facts[fact] for item in self.succeeded if fact in item.facts)
        return next((word for word, n in words.items() if 2 * n > words.total()), None)

    @property
    def disagreement(self) -> dict[str, Any] | None:
        """How far the graders are apart in points; None if fewer than two came to a result.

        ``overall`` is the highest minus the lowest overall score, ``criterion`` that with the
        largest difference, ``largest``. The scores are the graders' own, before the mechanical
        rules, which would hide that they differ.
        """
        gradings = self.succeeded
        if len(gradings) < 2:
            return None
        spreads = {name: self.spread(name) for name in gradings[0].results if self.scores(name)}
        if not spreads:
            return None
        worst = max(spreads, key=lambda name: spreads[name])
        means = [grading.overall for grading in gradings if not math.isnan(grading.overall)]
        apart = max(means) - min(means) if len(means) > 1 else None
        return {"overall": apart, "criterion": worst, "largest": spreads[worst]}


def graders() -> list[Model]:
    """Return the models bound to the grader role, or the active model if none is."""
    bound = model_roles().get(GRADER_ROLE) or model_under_test()
    return bound if isinstance(bound, list) else [bound]


def is_embedded(model: Model) -> bool:
    """Return whether a model is the embedded one, which is no language model."""
    return str(model).startswith(f"{EMBEDDED_PROVIDER}/")


async def grade_with_panel(request: GradingRequest, answer_model: str) -> PanelGrading:
    """Have every grader judge the answer, at the same time.

    Args:
        request: The request to send.
        answer_model: Name of the model that gave the answer, as Inspect names it.
    """
    asked = [grade(request, model, answer_model) for model in graders()]
    if len(asked) == 1:  # `collect` would add a span to the transcript
        return PanelGrading((await asked[0],))
    return PanelGrading(tuple(await collect(*asked)))


async def grade(request: GradingRequest, model: Model, answer_model: str) -> Grading:
    """Ask one grader about one answer.

    If only its words on the facts are unusable, it is asked again too, and its grading counts even
    if they stay so.

    Args:
        request: The request to send.
        model: The grader to ask.
        answer_model: As of `grade_with_panel`.
    """
    # The embedded model says nothing of facts, and its formulas have no score where the ground
    # truth has nothing that they could compute one from. Nor can they be partial to its answers.
    embedded = is_embedded(model)
    facts = () if embedded else (*request.facts, *request.wrong)
    applicable = frozenset[str]() if embedded else request.applicable
    kept: Reply | None = None

    def take(text: str) -> ReplyError | None:
        nonlocal kept
        kept = read_reply(text, request.ids, facts, applicable, request.answer)
        return kept.problem

    def correction(error: ReplyError) -> str:
        texts = request.rubric.corrections
        wrong: str = getattr(texts, error.problem)
        wrong = wrong.replace("{detail}", error.detail).replace("{facts}", ", ".join(facts))
        return f"{wrong} {texts.again.replace('{ids}', ', '.join(request.ids))}"

    asked = await ask(
        model,
        request.messages,
        role="grader",
        schema=response_schema(),
        prefix_key=request.prefix_key,
        take=take,
        correction=correction,
    )
    # Headers may contain credentials, and a log is shown to others.
    parameters = model.config.model_dump(mode="json", exclude_none=True, exclude={"extra_headers"})
    partial = str(model) == answer_model and not embedded
    grading = Grading(str(model), partial, asked.calls, parameters)
    if kept is not None:
        problem = str(kept.problem or "")
        return replace(grading, results=kept.results, facts=kept.facts or {}, facts_failure=problem)
    declined = asked.failure.problem == "refusal"
    detail = "the grader declined to answer" if declined else asked.failure.detail
    return replace(grading, failure=asked.failure.problem, detail=detail)


def warn_of(panel: PanelGrading, warned: set[str]) -> None:
    """Warn that a model judges its own answers, and of each grader that fails.

    A run's end counts the answers that no grader could judge; a second scoring has no such end.

    Args:
        panel: The gradings of one answer.
        warned: What was warned of before in the same run; this call adds to it.
    """
    for grading in panel.gradings:
        if grading.self_graded and "self-graded" not in warned:
            warned.add("self-graded")
            logger.warning(
                "%s grades its own answers, which flatters them; "
                "bind another model with --model-role grader=…",
                grading.grader,
            )
        if grading.failure and grading.grader not in warned:
            warned.add(grading.grader)
            logger.warning(
                "%s failed (%s) as one of %d graders; %s. "
                "Further failures of it are only in the scores.",
                grading.grader,
                grading.cause,
                len(panel.gradings),
                "the median is that of the others" if panel.succeeded else "there is no grade",
            )
