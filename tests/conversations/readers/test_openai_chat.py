"""OpenAI chat messages in every form of file."""

from pathlib import Path
from typing import Any

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.models import NO_RESULT
from tests.conversations.readers.reading import (
    calls,
    json_file,
    json_lines,
    read_all,
    read_one,
    results,
    said,
)

FORMAT = format_named("openai-chat")


def call(call_id: str, arguments: Any = "{}", name: str = "shell") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Go"}, {"type": "text", "text": "on"}]},
    {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b", '{"q": 1}')]},
    {"role": "tool", "tool_call_id": "b", "content": "two"},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "one"}]},
    {"role": "assistant", "content": "Done.", "reasoning_content": "hm"},
]

EXPECTED = [
    ("system", "Be brief."),
    ("user", "Go\non"),
    ("assistant", ""),
    ("tool", "two"),
    ("tool", "one"),
    ("assistant", "Done."),
]


def test_a_list_of_messages_is_a_conversation(tmp_path: Path) -> None:
    path = json_file(tmp_path / "x.json", CHAT)
    seen = FORMAT.recognise(source_file(path))
    assert seen == "a list of messages with role and content: assistant, developer, tool, user"
    built = read_one(FORMAT, path)
    assert said(built) == EXPECTED
    assert calls(built) == [("a", "shell", {}), ("b", "shell", {"q": 1})]


def test_an_object_has_model_tools_and_the_answer(tmp_path: Path) -> None:
    frame = {
        "model": "m",
        "messages": CHAT[:5],
        "tools": [
            {"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}
        ],
        "response": {"choices": [{"message": CHAT[5]}]},
    }
    built = read_one(FORMAT, json_file(tmp_path / "x.json", frame))
    assert said(built) == EXPECTED
    assert built.fixture.model == "m"
    assert [tool.function.name for tool in built.fixture.tools] == ["shell"]


def test_conversations_on_lines_are_each_their_own(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "x.jsonl", b"{torn", {"messages": CHAT}, CHAT, {"a": 1}, CHAT[1:])
    assert FORMAT.recognise(source_file(json_lines(tmp_path / "y.jsonl", {"messages": CHAT}, CHAT)))
    built = read_all(FORMAT, path)
    assert [len(item.fixture.messages) for item in built] == [6, 6, 5]
    assert len({item.fixture.name for item in built}) == 3


def old_call(arguments: str) -> dict[str, Any]:
    called = {"name": "ls", "arguments": arguments}
    return {"role": "assistant", "content": None, "function_call": called}


def old_result(text: str) -> dict[str, Any]:
    return {"role": "function", "name": "ls", "content": text}


def test_calls_of_the_old_form_are_paired_by_name_and_order(tmp_path: Path) -> None:
    go = {"role": "user", "content": "Go"}
    one, two, a, b = old_call("{}"), old_call('{"d": 1}'), old_result("a.py"), old_result("b.py")
    built = read_one(
        FORMAT, json_file(tmp_path / "x.json", [go, one, a, two, b, old_result("nobody asked")])
    )
    assert calls(built) == [("ls-1", "ls", {}), ("ls-3", "ls", {"d": 1})]
    assert results(built) == [("ls-1", "a.py"), ("ls-3", "b.py")]
    built = read_one(FORMAT, json_file(tmp_path / "y.json", [go, one, two, a, b]))
    assert results(built) == [("ls-1", "a.py"), ("ls-2", "b.py")]
    built = read_one(FORMAT, json_file(tmp_path / "z.json", [go, one, go, two, b]))
    assert results(built) == [("ls-1", NO_RESULT), ("ls-3", "b.py")]


def test_a_fixture_comes_back_as_it_was(tmp_path: Path) -> None:
    state = [1, {"role": "user", "content": "Summary."}, 2, 3, 4, {"bad": 1}]
    fixture = {
        "name": "demo",
        "model": "m",
        "context_length": 1000,
        "notes": "of a person",
        "messages": CHAT,
        "recorded_compactions": [
            {
                "cut": 5,
                "summary": "Summary.",
                "trigger": "auto",
                "tokens_before": 9,
                "state": state,
            },
            {"cut": 2},
            {"cut": 99},
            {"cut": 3, "kind": "other"},
        ],
    }
    built = read_one(FORMAT, json_file(tmp_path / "x.json", fixture))
    assert built.fixture.context_length == 1000
    compaction, early = built.fixture.recorded_compactions
    assert (early.cut, early.kind, early.state) == (2, "summary", None)
    assert (compaction.cut, compaction.trigger, compaction.tokens_before) == (5, "auto", 9)
    assert compaction.state is not None
    assert [item if isinstance(item, int) else item.text for item in compaction.state] == [
        1,
        "Summary.",
        2,
        3,
        4,
    ]
