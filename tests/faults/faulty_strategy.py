"""The strategy of Inspect's among the compressors that play faults."""

from typing import Any

from inspect_ai.model import ChatMessageUser, CompactionStrategy

from tests.faults.faulty_compressor import NOTE, RAISES, fault_in

RESULTS: dict[str, Any] = {
    "a pair of nothing": (None, None),
    "plain messages": ([NOTE], None),
}


class Strategy(CompactionStrategy):
    """Plays the fault of a conversation."""

    def __init__(self) -> None:
        super().__init__(type="summary", memory=False)

    async def compact(self, model: Any, messages: Any, tools: Any) -> Any:
        """Keep the system prompt and a note, or fail."""
        fault = fault_in(messages[1].text)
        if fault in RAISES:
            RAISES[fault]([])
        kept = [messages[0], ChatMessageUser(content=NOTE["content"])]
        return RESULTS.get(fault, (kept, None))
