"""Real Claude Code sessions against their table, and against Inspect's own converter."""

import asyncio
import json
from typing import Any, cast

import pytest
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    messages_from_anthropic,
)

from compression_eval.conversations.formats import format_named
from compression_eval.fixtures.models import Message
from tests.conversations.readers.reading import (
    calls,
    read_one,
    results,
    said,
    sample,
    unknown,
)

FORMAT = format_named("claude-code")

# Of the samples' table: user lines + distinct ids of assistant messages; calls; compactions; of
# those messages the lines that are no message here, and messages that stand in no such line.
ROWS = {
    "cc-small-20.jsonl": (15, 6, [], 3, 0),
    "cc-mid-115.jsonl": (67, 33, [], 0, 0),
    "cc-1compact-2.1.36-225.jsonl": (147, 85, [("summary", 174_247)], 8, 1),
    "cc-microcompact-483.jsonl": (
        283,
        128,
        [("clear", 60_364), ("clear", 56_973), ("summary", 157_692)],
        1,
        0,
    ),
    "cc-2.1.217-fable-301.jsonl": (202, 102, [], 0, 6),
}


@pytest.mark.parametrize("name", ROWS)
def test_samples_agree_with_their_table(name: str) -> None:
    path = sample(f"claude_code/{name}")
    messages, tool_calls, compactions, skipped, elsewhere = ROWS[name]
    built = read_one(FORMAT, path)
    assert unknown(built) == []
    assert len(said(built)) == messages - skipped + elsewhere
    assert len(calls(built)) == len(results(built)) == tool_calls
    found = [(c.kind, c.tokens_before) for c in built.fixture.recorded_compactions]
    assert found == compactions


def test_words_that_stand_in_no_user_line_are_kept() -> None:
    old = read_one(FORMAT, sample("claude_code/cc-1compact-2.1.36-225.jsonl"))
    assert ("user", "draft PR please") in said(old)
    new = read_one(FORMAT, sample("claude_code/cc-2.1.217-fable-301.jsonl"))
    queued = [words for role, words in said(new) if role == "user" and "150+ languages" in words]
    assert len(queued) == 1


def test_the_compactions_of_a_sample_have_their_states() -> None:
    built = read_one(FORMAT, sample("claude_code/cc-microcompact-483.jsonl"))
    first, second, full = built.fixture.recorded_compactions
    for compaction, cleared in ((first, 9), (second, 27)):
        assert compaction.state is not None
        made = [item for item in compaction.state if isinstance(item, Message)]
        assert [item.text for item in made] == ["[Old tool result content cleared]"] * cleared
        assert len(compaction.state) == compaction.cut
    assert full.state is not None
    (summary,) = full.state
    assert isinstance(summary, Message)
    assert summary.text == full.summary
    assert summary.text.startswith("This session is being continued from a previous conversation")
    assert summary.text not in [words for _, words in said(built)]


def by_inspect(name: str) -> list[Any]:
    """Return what Inspect makes of a sample whose blocks were put together by message id."""
    turns: dict[str, list[Any]] = {}
    messages: list[dict[str, Any]] = []
    for line in sample(f"claude_code/{name}").read_text().split("\n"):
        value = json.loads(line) if line else {}
        message = value.get("message", {})
        if value.get("type") == "user":
            messages.append({"role": "user", "content": message["content"]})
        elif value.get("type") == "assistant":
            blocks = [b for b in message["content"] if b["type"] != "thinking"]
            if message["id"] not in turns:
                turns[message["id"]] = []
                messages.append({"role": "assistant", "content": turns[message["id"]]})
            turns[message["id"]].extend(blocks)
    used = [message for message in messages if message["content"]]
    return list(asyncio.run(messages_from_anthropic(cast(Any, used))))


@pytest.mark.parametrize("name", ROWS)
def test_texts_calls_and_results_are_those_that_inspect_finds(name: str) -> None:
    converted = by_inspect(name)
    built = read_one(FORMAT, sample(f"claude_code/{name}"))
    ours = built.fixture.messages
    known = [
        (call.id, call.function, call.arguments)
        for message in converted
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or []
    ]
    assert calls(built) == known
    answers = [(m.tool_call_id, m.text) for m in converted if isinstance(m, ChatMessageTool)]
    assert sorted(results(built)) == sorted(cast(Any, answers))
    texts = [
        message.text.strip()
        for message in converted
        if isinstance(message, ChatMessageAssistant) and message.text.strip()
    ]
    mine = [m.text.strip() for m in ours if m.role == "assistant" and m.text.strip()]
    assert mine == [words for words in texts if words != "No response requested."]
    typed = {m.text.strip() for m in converted if isinstance(m, ChatMessageUser)}
    left_out = typed - {m.text.strip() for m in ours if m.role == "user"}
    starts = ("<local-command", "<command-name>/", "This session is being continued")
    assert all(words.startswith(starts) for words in left_out), left_out
