"""Requests and responses in the form of Anthropic's messages API."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.building import build
from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.models import ImagePart, Message
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_file,
    json_lines,
    read_all,
    read_one,
    results,
    said,
)

FORMAT = format_named("anthropic")

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def model(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def use(identifier: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "read", "input": arguments}


def result(identifier: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **fields}


MESSAGES = [
    user("Read both files."),
    model(
        {"type": "thinking", "thinking": "hidden", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        text("Reading."),
        use("c1", path="a.py"),
        use("c2", path="b.py"),
    ),
    user(result("c2", [text("of b")]), result("c1", "of a", is_error=True), text("And stop.")),
    model(text("Stopped.", citations=[{"type": "char_location"}])),
]
TOOL = {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}
REQUEST = {
    "model": "claude-x",
    "max_tokens": 100,
    "system": [text("You are careful."), text("Be brief.", cache_control={"type": "ephemeral"})],
    "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}],
    "messages": MESSAGES,
}


def test_a_request_is_a_conversation_with_its_system_prompt_and_tools(tmp_path: Path) -> None:
    built = read_one(FORMAT, json_file(tmp_path / "request.json", REQUEST))
    assert said(built) == [
        ("system", "You are careful.\nBe brief."),
        ("user", "Read both files."),
        ("assistant", "Reading."),
        ("tool", "of b"),
        ("tool", "of a"),
        ("user", "And stop."),
        ("assistant", "Stopped."),
    ]
    assert calls(built) == [("c1", "read", {"path": "a.py"}), ("c2", "read", {"path": "b.py"})]
    assert results(built) == [("c2", "of b"), ("c1", "of a")]
    (tool,) = built.fixture.tools
    assert (tool.function.name, tool.function.parameters) == ("read", {"type": "object"})
    assert built.fixture.model == "claude-x"
    assert caveats(built) == ["1 tools have no schema"]


@pytest.mark.parametrize("form", ["list", "list on a line", "messages on lines", "wrapped"])
def test_the_same_messages_in_other_files(tmp_path: Path, form: str) -> None:
    path = tmp_path / "x"
    if form == "list":
        json_file(path, MESSAGES)
    elif form == "list on a line":
        json_lines(path, MESSAGES)
    elif form == "messages on lines":
        json_lines(path, *MESSAGES)
    else:
        json_lines(path, {"custom_id": "1", "params": {"messages": MESSAGES}})
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert len(said(built)) == 6
    assert len(results(built)) == 2
    assert caveats(built) == [
        "the file does not contain the system prompt",
        "the file does not contain the tools",
    ]


def growing() -> list[dict[str, Any]]:
    """A log of three requests with their responses, each repeating what came before."""
    answer = {"type": "message", "model": "claude-y", **MESSAGES[1]}
    again = [MESSAGES[0], model(*MESSAGES[1]["content"][2:]), MESSAGES[2]]
    return [
        {"request": {**REQUEST, "messages": MESSAGES[:1]}, "response": answer},
        {"request": {**REQUEST, "messages": again}, "response": MESSAGES[3]},
        {
            "request": {
                **REQUEST,
                "system": "Changed.",
                "messages": [*again, MESSAGES[3], user("?")],
            }
        },
    ]


def test_requests_that_repeat_each_other_are_one_conversation(tmp_path: Path) -> None:
    built = read_one(FORMAT, json_lines(tmp_path / "log.jsonl", *growing()))
    assert [words for _, words in said(built)] == [
        "You are careful.\nBe brief.",
        "Read both files.",
        "Reading.",
        "of b",
        "of a",
        "And stop.",
        "Stopped.",
        "?",
    ]
    assert built.fixture.model == "claude-x"
    assert "the system prompt changed; the first is kept" in caveats(built)


def test_a_request_that_does_not_go_on_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    lines = [*growing(), {"messages": [user("Something else.")]}]
    built = read_all(FORMAT, json_lines(tmp_path / "log.jsonl", *lines))
    assert [len(item.fixture.messages) for item in built] == [8, 1]
    names = [item.fixture.name for item in built]
    assert names[1].endswith("-thread-2")
    assert len(set(names)) == 2


def test_tools_of_the_server_have_their_results_behind_them(tmp_path: Path) -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [
            {"type": "web_search_result", "title": "T", "url": "u", "encrypted_content": "zzz"}
        ],
    }
    remote = {"type": "mcp_tool_use", "id": "s2", "name": "list", "input": {}, "server_name": "n"}
    listed = {"type": "mcp_tool_result", "tool_use_id": "s2", "content": [text("one")]}
    turn = model(text("Searching."), search, found, text("Found."), remote, listed, use("c1"))
    built = read_one(
        FORMAT, json_file(tmp_path / "x.json", [user("go"), turn, user(result("c1", "ok"))])
    )
    assert said(built) == [
        ("user", "go"),
        ("assistant", "Searching."),
        ("tool", '[{"type": "web_search_result", "title": "T", "url": "u"}]'),
        ("assistant", "Found."),
        ("tool", "one"),
        ("assistant", ""),
        ("tool", "ok"),
    ]
    assert [identifier for identifier, _, _ in calls(built)] == ["s1", "s2", "c1"]


def test_images_documents_and_search_results(tmp_path: Path) -> None:
    plain = {"type": "document", "title": "Notes", "source": {"type": "text", "data": "x = 1"}}
    paper = {"type": "document", "source": {"type": "url", "url": "https://x.test/p.pdf"}}
    parts = {"type": "document", "source": {"type": "content", "content": [text("inner")]}}
    hit = {"type": "search_result", "title": "T", "source": "S", "content": [text("hit")]}
    path = json_file(tmp_path / "x.json", [user(text("see"), IMAGE, plain, paper, parts, hit)])
    built = read_one(FORMAT, path)
    assert said(built)[0][1].split("\n") == [
        "see",
        "[image: image/png, 3 bytes]",
        "Notes",
        "x = 1",
        "[document: https://x.test/p.pdf]",
        "inner",
        "T",
        "S",
        "hit",
    ]
    (conversation,) = FORMAT.read(source_file(path))
    kept = build(conversation, images="keep").fixture.messages[0].content
    assert isinstance(kept, list)
    assert isinstance(kept[1], ImagePart)
    assert kept[1].image_url.url == "data:image/png;base64,QUJD"


def test_a_compaction_of_the_server_is_recorded(tmp_path: Path) -> None:
    block = {"type": "compaction", "content": "What happened."}
    messages = [user("go"), model(text("Gone.")), user("on"), model(block, text("Going on."))]
    built = read_one(FORMAT, json_file(tmp_path / "x.json", messages))
    assert [words for _, words in said(built)] == ["go", "Gone.", "on", "Going on."]
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (3, "summary", "What happened.")
    assert compaction.state is not None
    assert [item.text for item in compaction.state if isinstance(item, Message)] == [
        "What happened."
    ]
