"""Several graders for one answer: who they are, and what counts of what they say."""

import logging
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.model import Model, model_roles
from inspect_ai.util import collect

from compression_eval.facts.life import AnswerWord
from compression_eval.grading.grader import Grader, Grading, grade
from compression_eval.grading.request import GradingRequest
from compression_eval.offline.registration import model_under_test

logger = logging.getLogger(__name__)

GRADER_ROLE = "grader"


@dataclass(frozen=True)
class PanelGrading:
    """What a panel of graders made of one answer; a single grader is a panel of one."""

    gradings: tuple[Grading, ...]

    @property
    def succeeded(self) -> list[Grading]:
        """The gradings that came to a result."""
        return [grading for grading in self.gradings if not grading.failure]

    @property
    def failure(self) -> str:
        """Why no grader came to a result; empty if one did."""
        if self.succeeded:
            return ""
        return ", ".join(sorted({grading.cause for grading in self.gradings}))

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
        given = (grading.results[criterion].score for grading in self.succeeded)
        return [score for score in given if score is not None]

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
    def facts_failure(self) -> str:
        """Why graders that came to a result gave no word on the facts; empty if all did."""
        reasons = {item.facts_failure for item in self.succeeded if item.facts_failure}
        return ", ".join(sorted(reasons))


class SelfGradingNotice:
    """Warns once per run that a model judges its own answers."""

    def __init__(self) -> None:
        self._given = False

    def check(self, graders: Sequence[Grader]) -> None:
        """Warn if a language model is among its own graders, unless that was said before."""
        partial = [grader for grader in graders if grader.self_graded]
        if partial and not self._given:
            self._given = True
            logger.warning(
                "%s grades its own answers, which flatters them; "
                "bind another model with --model-role grader=…",
                partial[0].name,
            )


class FailedGraderNotice:
    """Warns once per run and member of a panel that it fails."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def check(self, panel: PanelGrading) -> None:
        """Warn of the members that failed while others succeeded, unless that was said before.

        An answer that no grader could judge is unscored, which the log shows by itself.
        """
        if not panel.succeeded:
            return
        for grading in panel.gradings:
            if grading.failure and grading.grader not in self._given:
                self._given.add(grading.grader)
                logger.warning(
                    "%s failed (%s) as one of %d graders; the median is that of the others. "
                    "Further failures of it are only in the scores.",
                    grading.grader,
                    grading.cause,
                    len(panel.gradings),
                )


def graders_for(answer_model: str) -> list[Grader]:
    """Return the models bound to the grader role, or the active model if none is.

    Args:
        answer_model: Name of the model that gave the answer, as Inspect names it.
    """
    bound = model_roles().get(GRADER_ROLE)
    if bound is None:
        bound = model_under_test()
    models: list[Model] = bound if isinstance(bound, list) else [bound]
    return [Grader(model, answer_model) for model in models]


async def grade_with_panel(request: GradingRequest, graders: Sequence[Grader]) -> PanelGrading:
    """Have every grader judge the answer, at the same time.

    Args:
        request: What to grade.
        graders: Who grades; at least one.
    """
    if len(graders) == 1:
        return PanelGrading((await grade(request, graders[0]),))
    return PanelGrading(tuple(await collect(*(grade(request, grader) for grader in graders))))
