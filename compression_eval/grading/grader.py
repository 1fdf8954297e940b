"""One grader's work on one answer: ask, and ask again if the reply cannot be used."""

import logging
from dataclasses import dataclass, field, replace
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.util import LimitExceededError

from compression_eval.compressors.errors import refused, stop_reason
from compression_eval.facts.life import AnswerWord
from compression_eval.fixtures.errors import one_line
from compression_eval.grading.reply import (
    CriterionResult,
    Reply,
    ReplyError,
    read_reply,
    response_schema,
)
from compression_eval.grading.request import GradingRequest
from compression_eval.sharing import prefix_first

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Calls for one answer and grader before the grader has failed."""

EMBEDDED_PROVIDER = "embedded"
"""Provider of the embedded model, which grades by formulas and says nothing of the facts."""

_CUT_OFF = ("max_tokens", "model_length")
_LONGEST_ECHO = 20_000
_MAX_CAUSE = 160


@dataclass(frozen=True)
class Grader:
    """A model in the role of the grader."""

    model: Model
    answer_model: str
    """Name of the model that gave the answer."""

    @property
    def self_graded(self) -> bool:
        """Whether it judges its own answer; formulas cannot be partial to theirs."""
        return self.name == self.answer_model and not self.embedded

    @property
    def name(self) -> str:
        """The model as Inspect names it."""
        return str(self.model)

    @property
    def parameters(self) -> dict[str, Any]:
        """The generation settings that its role was given, without those left to the provider."""
        # Headers may hold credentials, and a log is shown to others.
        return self.model.config.model_dump(
            mode="json", exclude_none=True, exclude={"extra_headers"}
        )

    @property
    def embedded(self) -> bool:
        """Whether it is the embedded model, which is no language model."""
        return self.name.split("/")[0] == EMBEDDED_PROVIDER


@dataclass(frozen=True)
class Grading:
    """What one grader made of one answer."""

    grader: str
    self_graded: bool
    attempts: int
    """Calls that it took."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Generation settings that its role was given, so that a score tells how it came about."""
    results: dict[str, CriterionResult] = field(default_factory=dict)
    """By criterion id; empty if the grader failed."""
    failure: str = ""
    """Why there are no results, as a word that can be counted; empty if there are."""
    detail: str = ""
    """The failure at more length."""
    facts: dict[str, AnswerWord] = field(default_factory=dict)
    """How the answer stands to each expected fact, by fact id; empty if that is not known."""
    facts_failure: str = ""
    """Why it is not known, though it was asked for."""

    @property
    def cause(self) -> str:
        """The failure, and of an error what the provider said first; empty if there is none."""
        if self.failure != "error":
            return self.failure
        return f"{self.failure}: {one_line(self.detail.partition(chr(10))[0], _MAX_CAUSE)}"


async def grade(request: GradingRequest, grader: Grader) -> Grading:
    """Ask one grader about one answer, at most `MAX_ATTEMPTS` times.

    A reply that cannot be used, a refusal and an error of the provider are answered by asking
    again. If only what it says of the facts cannot be used, it is asked again as well, and its
    grading counts even if that never can. Cancellation and Inspect's limits are not failures of the
    grader and go through.

    Args:
        request: What to grade.
        grader: Who grades it.
    """
    messages = list(request.messages)
    schema: GenerateConfig | None = GenerateConfig(response_schema=response_schema())
    failure = detail = ""
    facts = () if grader.embedded else request.facts
    # Formulas have no score where the ground truth has nothing that they could compute one from.
    applicable = frozenset[str]() if grader.embedded else request.applicable
    kept: Reply | None = None
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            async with prefix_first(request.prefix_key, grader.model):
                output = await grader.model.generate(messages, config=schema or GenerateConfig())
        except LimitExceededError:
            raise
        except Exception as error:
            failure, detail = "error", f"{type(error).__name__}: {error}"
            logger.info("grader %s: attempt %d: %s", grader.name, attempt, detail)
            # The schema may be what the provider refuses, and the reply can be read without.
            schema = None
            continue
        if refused(output):
            failure, detail = "refusal", "the grader declined to answer"
            continue
        try:
            reply = read_reply(output.completion, request.ids, facts, applicable)
        except ReplyError as error:
            problem = _with_cause(error, output)
            failure, detail = problem.problem, problem.detail
            messages = [*request.messages, *_correction(request, output, problem)]
            continue
        kept = reply
        if reply.problem is None:
            break
        messages = [*request.messages, *_correction(request, output, reply.problem)]
    known = Grading(grader.name, grader.self_graded, attempt, grader.parameters)
    if kept is None:
        return replace(known, failure=failure, detail=detail)
    return replace(
        known,
        results=kept.results,
        facts=kept.facts or {},
        facts_failure=str(kept.problem or ""),
    )


def _with_cause(error: ReplyError, output: ModelOutput) -> ReplyError:
    """Blame the length limit where it is what cut the JSON short."""
    if stop_reason(output) in _CUT_OFF and error.problem in ("not_json", "empty"):
        return ReplyError("truncated")
    return error


def _correction(
    request: GradingRequest, output: ModelOutput, error: ReplyError
) -> list[ChatMessage]:
    """Return the unusable reply and what is wrong with it, to be put after the request."""
    texts = request.rubric.text.corrections
    said: str = getattr(texts, error.problem)
    wrong = said.replace("{detail}", error.detail).replace("{facts}", ", ".join(request.facts))
    again = texts.again.replace("{ids}", ", ".join(request.ids))
    messages: list[ChatMessage] = [ChatMessageUser(content=f"{wrong} {again}")]
    if output.completion.strip():
        echo = ChatMessageAssistant(content=output.completion[:_LONGEST_ECHO])
        messages.insert(0, echo)
    return messages
