"""Rehearse compressions before a sweep: the strategy runs with the embedded model.

The strategy's own code builds its requests, so its input is counted, not guessed. The reply is a
lexical summary; a real one may be longer or shorter, up to its budget.
"""

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.embedded.conversation import json_lines
from compression_eval.embedded.provider import EmbeddedAPI

TOO_LARGE = ("not_applied", "not_smaller")
"""Failures due to the conversation and the budgets, whatever a model replies."""


class _RehearsingAPI(EmbeddedAPI):
    """The embedded model, with usage in the tokens of the estimate.

    The output counts as at least as large as the request's budget, if it states one: the form that
    a strategy asks for can take more room than the summary in it.
    """

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - named by Inspect
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the embedded model's reply."""
        counter = token_counter()
        output = await super().generate(input, tools, tool_choice, config)
        read = counter.messages(input)
        allowed = _budget(input) or config.max_tokens or 0
        written = max(allowed, counter.count(output.completion))
        output.usage = ModelUsage(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
        return output


def _budget(messages: list[ChatMessage]) -> int | None:
    """Return the summary's budget in a request of ours; None if it states none."""
    for message in reversed(messages):
        for record in json_lines(message.text):
            budget = record.get("budget_tokens")
            if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
                return budget
    return None


@modelapi(name="rehearsal")
def rehearsal() -> type[ModelAPI]:
    """Return the provider, which is registered only for estimates."""
    return _RehearsingAPI


def rehearsing_model() -> Model:
    """Return the model that replaces the compressing one."""
    return get_model("rehearsal/lexical", memoize=False)


async def rehearse(plan: CompressionPlan, model: Model) -> State:
    """Compress once; the cycles of the state hold calls and tokens."""
    return await compress(plan, 0, model)
