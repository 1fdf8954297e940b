"""Compress before a sweep: the strategy runs, with the embedded model in the place of its own.

A strategy's own code builds its requests, so what it would be fed is counted and not guessed. The
reply is a lexical summary; a real one may be longer or shorter, up to the budget that it is given.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import anyio
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
from compression_eval.offline.conversation import json_lines
from compression_eval.offline.provider import EmbeddedAPI

CLOSE_ENOUGH = 0.97
"""Share of a budget from which on the search for it ends."""

TOO_LARGE = ("not_applied", "not_smaller")
"""Failures that lie in the conversation and the budgets, whatever a model replies."""

MAX_TRIALS = 16
"""Values that are tried for one budget."""


class _RehearsingAPI(EmbeddedAPI):
    """The embedded model, with usage in the tokens of the estimate.

    The output counts as large as the request allows it to be, where it says so, or larger: the
    form that a strategy asks for can take more room than the summary in it.
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


@modelapi(name="rehearsal")
def rehearsal() -> type[ModelAPI]:
    """Return the provider; it is known only where an estimate is made."""
    return _RehearsingAPI


def rehearsing_model() -> Model:
    """Return the model that stands in for the one that compresses."""
    return get_model("rehearsal/lexical", memoize=False)


async def rehearse(plan: CompressionPlan, model: Model) -> State:
    """Compress once; the cycles of the state hold calls and tokens."""
    return await compress(plan, 0, model)


def _budget(messages: list[ChatMessage]) -> int | None:
    """Return what a request of ours says that the summary may take; None if it does not say."""
    for message in reversed(messages):
        for record in json_lines(message.text):
            budget = record.get("budget_tokens")
            if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
                return budget
    return None


@dataclass(frozen=True)
class Knob:
    """The argument of a strategy that sets the size of its states; more of it makes them larger."""

    argument: str
    lowest: Callable[[Mapping[str, Any]], int] = lambda _: 1
    """Returns the least number that can be tried beside the other arguments given."""
    value: Callable[[int], Any] = lambda number: number
    """Returns the argument for a number."""
    highest: int | None = None
    """The largest number; the tokens of the longest history if None."""


@dataclass(frozen=True)
class Fit:
    """What a strategy was given for a budget."""

    arguments: dict[str, Any]
    sizes: list[int]
    """Tokens of the states that it then leaves, one for each fixture and cut."""


class NoFitError(Exception):
    """No value of an argument leaves states of the wanted size; the text says why."""


@dataclass
class Fitting:
    """Finds arguments under which the states of a strategy have a wanted size.

    A state counts as too large where nothing is removed. The mean of the tokens over fixtures
    and cuts is to be at most the budget, and as near to it as it gets.
    """

    knob: Knob
    given: Mapping[str, Any]
    """The arguments that are set."""
    plans: Callable[[dict[str, Any]], Sequence[CompressionPlan]]
    """Returns what is to be compressed under some arguments."""
    _tried: dict[int, list[int] | None] = field(default_factory=dict)

    def fit(self, budget: int) -> Fit:
        """Return what comes nearest to a budget.

        Args:
            budget: Tokens.

        Raises:
            NoFitError: All states are larger, or the strategy cannot be rehearsed.
        """
        low = self.knob.lowest(self.given)
        high = self.knob.highest or max(self._longest, low + 1)
        if self._size(low) > budget:
            least = self._size(low)
            said = f"are of {least:,.0f} tokens" if math.isfinite(least) else "remove nothing"
            raise NoFitError(
                f"even with {self.knob.argument}={self.knob.value(low)} its states {said}"
            )
        if self._size(high) <= budget:
            low = high
        for trial in range(MAX_TRIALS):
            if high - low <= 1 or self._size(low) >= CLOSE_ENOUGH * budget:
                break
            low_size, high_size = self._size(low), self._size(high)
            guess = int(math.sqrt(max(low, 1) * high))
            if math.isfinite(high_size) and high <= 4 * low and trial % 3 < 2:
                share = (budget - low_size) / (high_size - low_size)
                guess = low + int(share * (high - low))
            elif math.isinf(high_size) and trial == 0:
                guess = int(budget - low_size)
            guess = min(max(guess, low + 1), high - 1)
            if self._size(guess) <= budget:
                low = guess
            else:
                high = guess
        return Fit(self._arguments(low), self._tried[low] or [])

    @property
    def _longest(self) -> int:
        first = self.plans(self._arguments(self.knob.lowest(self.given)))

        async def tokens() -> int:
            histories = [await plan.history() for plan in first]
            return max(token_counter().messages(history) for history in histories)

        return anyio.run(tokens)

    def _arguments(self, number: int) -> dict[str, Any]:
        return {**self.given, self.knob.argument: self.knob.value(number)}

    def _size(self, number: int) -> float:
        if number not in self._tried:
            with redirect_stdout(sys.stderr):  # Inspect greets there when its first model is made
                self._tried[number] = anyio.run(self._sizes, number)
        sizes = self._tried[number]
        return sum(sizes) / len(sizes) if sizes else math.inf

    async def _sizes(self, number: int) -> list[int] | None:
        """Return the tokens of each state; None if one of them is not smaller than the history."""
        model, sizes = rehearsing_model(), []
        for plan in self.plans(self._arguments(number)):
            state = await rehearse(plan, model)
            if state.status in TOO_LARGE:
                return None
            if state.status != "ok":
                tried = f"{self.knob.argument}={self.knob.value(number)}"
                raise NoFitError(f"with {tried} a compression fails ({state.failure})")
            sizes.append(state.state_tokens)
        return sizes
