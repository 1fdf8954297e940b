"""Pass ``orphans``: empty assistant turns and trailing tool messages that answer no call.

Dropping messages moves the numbers of those behind them, so cuts, recorded compactions and, with
the same map, the evidence of a bank follow.
"""

from typing import Any

NAME = "orphans"

Json = dict[str, Any]
Moved = dict[int, int]
"""Old index of each message that is left -> its new one."""


def dropped(messages: list[Json]) -> set[int]:
    """Return the indices of the messages that this pass drops."""
    empty = {
        index
        for index, message in enumerate(messages)
        if message["role"] == "assistant" and not message.get("tool_calls") and _is_empty(message)
    }
    last = len(messages)
    while last and messages[last - 1]["role"] == "tool":
        last -= 1
    asked = [call["id"] for call in (messages[last - 1].get("tool_calls") or [] if last else [])]
    for index in range(last, len(messages)):
        if messages[index].get("tool_call_id") in asked:
            asked.remove(messages[index]["tool_call_id"])
        else:
            empty.add(index)
    return empty


def without(data: Json, gone: set[int]) -> tuple[Json, Moved]:
    """Return a fixture without some of its messages, everything that counts them adjusted.

    A cut that has no user message before it any more, or that has come to stand on another, goes.
    """
    messages = [message for index, message in enumerate(data["messages"]) if index not in gone]
    moved = _moved(len(data["messages"]), gone)
    data = {**data, "messages": messages}
    if data.get("cuts"):
        cuts = sorted({moved_count(moved, cut) for cut in data["cuts"]})
        first = next((i for i, message in enumerate(messages) if message["role"] == "user"), 0)
        data["cuts"] = [cut for cut in cuts if cut > first]
    if data.get("recorded_compactions"):
        compactions = [_moved_compaction(item, moved) for item in data["recorded_compactions"]]
        data["recorded_compactions"] = [item for item in compactions if item["cut"] > 0]
    return data, moved


def moved_count(moved: Moved, count: int) -> int:
    """Return how many messages are left of the first ``count``."""
    return sum(old < count for old in moved)


def _moved(total: int, gone: set[int]) -> Moved:
    kept = [index for index in range(total) if index not in gone]
    return {old: new for new, old in enumerate(kept)}


def _moved_compaction(compaction: Json, moved: Moved) -> Json:
    result = {**compaction, "cut": moved_count(moved, compaction["cut"])}
    if compaction.get("state") is not None:
        result["state"] = [
            moved[item] if isinstance(item, int) else item
            for item in compaction["state"]
            if not isinstance(item, int) or item in moved
        ]
    return result


def _is_empty(message: Json) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        return all(part["type"] == "text" and not part["text"].strip() for part in content)
    return not (content or "").strip()
