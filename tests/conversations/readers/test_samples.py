"""Real sessions against what was counted in them, and against Inspect's own converter."""

import asyncio
import json
from typing import Any, cast

import pytest
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, messages_from_anthropic

from compression_eval.conversations.formats import NAMES, format_named, format_of
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import calls, read_all, read_one, results, sample, unknown

Compactions = list[tuple[int, str]]

COUNTED: dict[str, tuple[str, int, int, Compactions]] = {
    "atif/openhands_hello-world.trajectory.json": ("atif", 8, 2, []),
    "claude_code/cc-small-20.jsonl": ("claude-code", 12, 6, []),
    "claude_code/cc-mid-115.jsonl": ("claude-code", 67, 33, []),
    "claude_code/cc-1compact-2.1.36-225.jsonl": ("claude-code", 140, 85, [(108, "summary")]),
    "claude_code/cc-microcompact-483.jsonl": (
        *("claude-code", 282, 128),
        [(105, "clear"), (167, "clear"), (219, "summary")],
    ),
    "claude_code/cc-2.1.217-fable-301.jsonl": ("claude-code", 208, 102, []),
    "codex/codex-0.118-1compact-625.jsonl": ("codex", 361, 206, [(304, "summary")]),
    "codex/codex-0.125-69.jsonl": ("codex", 43, 20, []),
    "codex/codex-0.136-1compact-1239.jsonl": ("codex", 726, 424, [(390, "opaque")]),
    "codex/codex-0.139-gpt5.5-16.jsonl": ("codex", 13, 4, []),
    "fixtures/real-cc-mid.json": ("openai-chat", 68, 33, []),
    "gemini_cli/gemini-entire-1.json": ("gemini-cli", 21, 9, []),
    "mini_swe_agent/local.traj.json": ("mini-swe-agent", 5, 0, []),
    "pi/pi-large-session.jsonl": ("pi", 918, 391, []),
    "swe_agent/swe-ctf-web.traj": ("swe-agent", 43, 0, []),
    "swe_agent/swe-marshmallow-fc.traj": ("swe-agent", 24, 11, []),
}
"""By sample: its format, and how many messages, calls and compactions it has."""


@pytest.mark.parametrize("name", COUNTED)
def test_samples_are_claimed_by_one_format_and_read_whole(name: str) -> None:
    form, messages, called, compactions = COUNTED[name]
    source = source_file(sample(name))
    claims = [each for each in NAMES if format_named(each).recognise(source)]
    # A plain list of chat messages may be one of an agent's, whose reader is asked first.
    assert (claims[0], claims[1:]) == (form, ["openai-chat"] * (form == "mini-swe-agent"))
    (built,) = read_all(format_of(source).format, sample(name))
    assert len(built.fixture.messages) == messages
    assert len(calls(built)) == len(results(built)) == called
    found = [(each.cut, each.kind) for each in built.fixture.recorded_compactions]
    assert found == compactions
    assert unknown(built) == []


def by_inspect(name: str) -> list[Any]:
    """Return what Inspect makes of a sample whose blocks were put together by message id."""
    turns: dict[str, list[Any]] = {}
    messages: list[dict[str, Any]] = []
    for line in sample(name).read_text().split("\n"):
        value = json.loads(line) if line else {}
        message = value.get("message", {})
        if value.get("type") == "user":
            messages.append({"role": "user", "content": message["content"]})
        elif value.get("type") == "assistant":
            blocks = [block for block in message["content"] if block["type"] != "thinking"]
            if message["id"] not in turns:
                turns[message["id"]] = []
                messages.append({"role": "assistant", "content": turns[message["id"]]})
            turns[message["id"]].extend(blocks)
    used = [message for message in messages if message["content"]]
    return list(asyncio.run(messages_from_anthropic(cast(Any, used))))


@pytest.mark.parametrize("name", [name for name in COUNTED if name.startswith("claude_code/")])
def test_texts_calls_and_results_are_those_that_inspect_finds(name: str) -> None:
    converted = by_inspect(name)
    built = read_one(format_named("claude-code"), sample(name))
    said = [message for message in converted if isinstance(message, ChatMessageAssistant)]
    assert calls(built) == [
        (call.id, call.function, call.arguments) for m in said for call in m.tool_calls or []
    ]
    answers = [(m.tool_call_id, m.text) for m in converted if isinstance(m, ChatMessageTool)]
    assert sorted(results(built)) == sorted(cast(Any, answers))
    ours = [m.text.strip() for m in built.fixture.messages if m.role == "assistant"]
    texts = [message.text.strip() for message in said]
    assert [text for text in ours if text] == [
        text for text in texts if text and text != "No response requested."
    ]
