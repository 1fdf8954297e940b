"""Real Codex rollouts against their table, and against Inspect."""

import asyncio
import json
from collections import Counter
from typing import Any, cast

import pytest
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, messages_from_openai_responses

from compression_eval.conversations.formats import formats
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.models import NO_RESULT
from tests.conversations.readers.reading import (
    calls,
    read_one,
    results,
    said,
    sample,
)

FORMAT = formats()["codex"]


# Of the samples' table: messages are message, call and output items.
ROWS = {
    "codex-0.139-gpt5.5-16.jsonl": (12, 4, 4, 0),
    "codex-0.125-69.jsonl": (58, 20, 20, 0),
    "codex-0.118-1compact-625.jsonl": (522, 206, 202, 1),
    "codex-0.136-1compact-1239.jsonl": (1060, 424, 422, 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_samples_agree_with_their_table(name: str) -> None:
    path = sample(f"codex/{name}")
    assert FORMAT.recognise(source_file(path))
    built = read_one(FORMAT, path)
    assert built.account.unsettled() == []
    assert len(built.account.entries) == len(path.read_bytes().splitlines())
    used = Counter(
        entry.kind.split(":")[1]
        for entry in built.account.entries
        if entry.kind.startswith("response_item:") and entry.fate in ("message", "merged")
    )
    recorded = [result for result in results(built) if result[1] != NO_RESULT]
    counts = (
        used.total(),
        len(calls(built)),
        len(recorded),
        len(built.fixture.recorded_compactions),
    )
    assert counts == ROWS[name]
    assert len(built.account.added) == used["web_search_call"]
    encrypted = any("encrypted content" in dict(e.left_out) for e in built.account.entries)
    for compaction in built.fixture.recorded_compactions:
        assert compaction.kind == ("opaque" if encrypted else "summary")
        assert compaction.state
    typed_lines = [e for e in built.account.entries if e.kind == "event_msg:user_message"]
    assert all(entry.fate == "merged" for entry in typed_lines)


@pytest.mark.parametrize("name", ROWS)
def test_samples_agree_with_inspects_converter(name: str) -> None:
    """Compared without web searches, which the converter has as content without an id."""
    path = sample(f"codex/{name}")
    lines = [json.loads(text) for text in path.read_bytes().split(b"\n") if text]
    items = [entry["payload"] for entry in lines if entry["type"] == "response_item"]
    shared = [entry for entry in items if entry["type"] not in ("web_search_call", "reasoning")]
    theirs = asyncio.run(messages_from_openai_responses(cast(Any, shared)))
    ours = read_one(FORMAT, path)
    assert [c[:2] for c in calls(ours) if c[1] != "web_search"] == [
        (call.id, call.function)
        for message in theirs
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or []
    ]
    own = sorted((i, t) for i, t in results(ours) if t != NO_RESULT)
    assert own == sorted((m.tool_call_id, m.text) for m in theirs if isinstance(m, ChatMessageTool))
    spoken = [text for role, text in said(ours)[1:] if role != "tool" and text]
    expected = [m.text for m in theirs if not isinstance(m, ChatMessageTool) and m.text]
    assert "\n".join(spoken) == "\n".join(expected)
