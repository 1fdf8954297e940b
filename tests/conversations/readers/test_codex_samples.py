"""Real Codex rollouts against their table, and against Inspect."""

import asyncio
import json
from typing import Any, cast

import pytest
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, messages_from_openai_responses

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.models import NO_RESULT
from tests.conversations.readers.reading import (
    calls,
    read_one,
    results,
    said,
    sample,
    unknown,
)

FORMAT = format_named("codex")


# Of the samples' table: calls, results, compactions.
ROWS = {
    "codex-0.139-gpt5.5-16.jsonl": (4, 4, 0),
    "codex-0.125-69.jsonl": (20, 20, 0),
    "codex-0.118-1compact-625.jsonl": (206, 202, 1),
    "codex-0.136-1compact-1239.jsonl": (424, 422, 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_samples_agree_with_their_table(name: str) -> None:
    path = sample(f"codex/{name}")
    assert FORMAT.recognise(source_file(path))
    built = read_one(FORMAT, path)
    assert unknown(built) == []
    recorded = [result for result in results(built) if result[1] != NO_RESULT]
    found = built.fixture.recorded_compactions
    assert (len(calls(built)), len(recorded), len(found)) == ROWS[name]
    assert all(compaction.state for compaction in found)


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
