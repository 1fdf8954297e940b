"""The recorded agent's own compaction as an arm.

Nothing is compressed again and no model is called. This answers on the same probes whether a
strategy is better than what the product did at the time.
"""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import Strategy, carrier, strategy
from compression_eval.errors import PassedOverError, shorten
from compression_eval.fixtures.conversation import message_index, recorded_state
from compression_eval.fixtures.models import Fixture, RecordedCompaction

_KEY = "compression_eval_recorded"


def unsupported(fixture: Fixture, cuts: Sequence[int]) -> str | None:
    """Return why the recorded compactions at the cuts of a chain cannot be evaluated, or None.

    Raises:
        PassedOverError: No compaction was recorded at one of them.
    """
    for cut in cuts:
        compaction = _at(fixture, cut)
        if compaction is None:
            points = sorted({compaction.cut for compaction in fixture.recorded_compactions})
            known = ", ".join(map(str, points))
            raise PassedOverError(
                f"compressor: nothing was recorded at message {cut} of {shorten(fixture.name)}; "
                + (f"the agent compacted at {known}" if known else "the agent never compacted it")
            )
        if reason := _unreadable(compaction):
            return reason
    return None


@strategy
class RecordedState(Strategy):
    """Replace a history by the state after the recorded agent's own compaction."""

    summary = "what the recorded agent's own compaction left, where it happened"
    unsupported = staticmethod(unsupported)

    fixture: Fixture | None = None
    """The conversation; without one nothing can be compressed."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the recorded state at the cut that the messages end at; its last user message.

        Kept messages have their ids, and messages of the compaction are marked as such; the caller
        adds the system prompt.
        """
        positions = [message_index(message.id) for message in messages]
        cut = 1 + max((position for position in positions if position is not None), default=-1)
        compaction = _at(self.fixture, cut) if self.fixture else None
        if self.fixture is None or compaction is None:
            raise CompressionError(
                "unsupported", "no compaction was recorded where this history ends"
            )
        if reason := _unreadable(compaction):
            raise CompressionError("unsupported", reason)
        if not compaction.state:
            replacement = carrier(compaction.summary or "", {_KEY: True})
            return [replacement], replacement
        state = [
            message
            if message_index(message.id) is not None
            else message.model_copy(
                update={"id": f"recorded-{cut}-{position}", "metadata": {_KEY: True}}
            )
            for position, message in enumerate(await recorded_state(self.fixture, compaction.state))
        ]
        # Some agents repeat system messages in the middle, where most providers refuse them.
        state.sort(key=lambda message: message.role != "system")
        written = [
            m for m in state if isinstance(m, ChatMessageUser) and _KEY in (m.metadata or {})
        ]
        return state, written[-1] if written else None


def _at(fixture: Fixture, cut: int) -> RecordedCompaction | None:
    """Return the last compaction at a cut, which left the state."""
    compactions = [item for item in fixture.recorded_compactions if item.cut == cut]
    return compactions[-1] if compactions else None


def _unreadable(compaction: RecordedCompaction) -> str | None:
    if compaction.summary:
        return None
    if compaction.kind == "opaque":
        # Without the summary, the kept messages are not the state.
        kept = f"; {len(compaction.state)} messages beside it can" if compaction.state else ""
        return f"the recorded summary cannot be read: it is encrypted, or not in the file{kept}"
    return None if compaction.state else "the recording does not hold what its compaction left"
