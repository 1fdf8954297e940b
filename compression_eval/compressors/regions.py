"""Which part of a state each message is: kept at the start, rewritten, or kept at the end."""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage

from compression_eval.compressors.clipping import CUT_KEY
from compression_eval.compressors.state import Region
from compression_eval.compressors.tokens import message_text


def regions(original: Sequence[ChatMessage], state: Sequence[ChatMessage]) -> list[Region]:
    """Return the region of each message of a state.

    A message counts as kept if it stands in the original history word for word, or did until it
    was cut to fit a budget. Kept messages are the head as long as nothing has been left out before
    them, and the tail after that.

    Args:
        original: The whole history before the cut.
        state: What the compression left.
    """
    by_id = {message.id: (index, message) for index, message in enumerate(original)}
    result: list[Region] = []
    expected = 0
    for message in state:
        index, source = by_id.get(message.id, (-1, None))
        if source is None or not _kept(source, message):
            result.append("summary")
            expected = -1
        elif index == expected:
            result.append("head")
            expected += 1
        else:
            result.append("tail")
            expected = -1
    return result


def _kept(source: ChatMessage, message: ChatMessage) -> bool:
    # The mark can only come from our own cutting: a fixture's messages have no metadata.
    if CUT_KEY in (message.metadata or {}):
        return True
    before, after = message_text(source), message_text(message)
    # Hermes ends the system prompt with a note, and it is the system prompt all the same.
    return after == before or (message.role == "system" and after.startswith(before))
