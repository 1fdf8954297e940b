"""One grader's work on one answer: ask, and ask again if the reply cannot be used."""

import logging
from dataclasses import dataclass, field
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

from compression_eval.compressors.refusal import refused, stop_reason
from compression_eval.grading.reply import (
    CriterionResult,
    ReplyError,
    read_reply,
    response_schema,
)
from compression_eval.grading.request import GradingRequest
from compression_eval.probing.prefix import prefix_first

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Calls for one answer and grader before the grader has failed."""

EMBEDDED_PROVIDER = "embedded"
"""Provider of the embedded model, which grades by formulas and leaves out what it has none for."""

_CUT_OFF = ("max_tokens", "model_length")
_LONGEST_ECHO = 20_000


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
        return self.model.config.model_dump(mode="json", exclude_none=True)

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


async def grade(request: GradingRequest, grader: Grader) -> Grading:
    """Ask one grader about one answer, at most `MAX_ATTEMPTS` times.

    A reply that cannot be used, a refusal and an error of the provider are answered by asking
    again. Cancellation and Inspect's limits are not failures of the grader and go through.

    Args:
        request: What to grade.
        grader: Who grades it.
    """
    messages = list(request.messages)
    schema: GenerateConfig | None = GenerateConfig(response_schema=response_schema())
    failure = detail = ""
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
            results = read_reply(output.completion, request.ids, allow_ungraded=grader.embedded)
        except ReplyError as error:
            problem = _with_cause(error, output)
            failure, detail = problem.problem, problem.detail
            messages = [*request.messages, *_correction(request, output, problem)]
            continue
        return Grading(grader.name, grader.self_graded, attempt, grader.parameters, results)
    return Grading(
        grader.name,
        grader.self_graded,
        MAX_ATTEMPTS,
        grader.parameters,
        failure=failure,
        detail=detail,
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
    wrong = said.replace("{detail}", error.detail)
    again = texts.again.replace("{ids}", ", ".join(request.ids))
    messages: list[ChatMessage] = [ChatMessageUser(content=f"{wrong} {again}")]
    if output.completion.strip():
        echo = ChatMessageAssistant(content=output.completion[:_LONGEST_ECHO])
        messages.insert(0, echo)
    return messages
