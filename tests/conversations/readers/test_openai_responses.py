"""Items of OpenAI's Responses API: lists, requests with responses, and lines."""

from pathlib import Path
from typing import Any

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
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

FORMAT = format_named("openai-responses")

Item = dict[str, Any]


def message(role: str, text: str, **fields: Any) -> Item:
    kind = "output_text" if role == "assistant" else "input_text"
    part = {"type": kind, "text": text}
    return {"type": "message", "role": role, "content": [part], **fields}


def call(call_id: str, name: str = "shell") -> Item:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": "{}",
    }


def output(call_id: str, value: Any = "ok") -> Item:
    fields = {"id": f"fco_{call_id}", "call_id": call_id, "output": value}
    return {"type": "function_call_output", **fields}


ITEMS: list[Item] = [
    message("developer", "Be brief."),
    {"role": "user", "content": "Go on"},
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"},
    message("assistant", "Two things.", id="msg_1", status="completed"),
    call("a"),
    {**call("b", "grep"), "arguments": '{"q": 1}'},
    output("b", [{"type": "input_text", "text": "one"}]),
    output("a"),
    {
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "patch",
        "input": '{"looks": "like json"}',
    },
    {"type": "custom_tool_call_output", "call_id": "c", "output": "patched"},
    message("assistant", "Done.", id="msg_2", status="completed"),
]

EXPECTED = [
    ("system", "Be brief."),
    ("user", "Go on"),
    ("assistant", "Two things."),
    ("tool", "one"),
    ("tool", "ok"),
    ("assistant", ""),
    ("tool", "patched"),
    ("assistant", "Done."),
]


def test_a_list_of_items_is_a_conversation(tmp_path: Path) -> None:
    path = json_file(tmp_path / "x.json", ITEMS)
    seen = FORMAT.recognise(source_file(path))
    assert seen is not None
    assert seen.startswith("a list of items: custom_tool_call")
    built = read_one(FORMAT, path)
    assert said(built) == EXPECTED
    assert calls(built) == [
        ("a", "shell", {}),
        ("b", "grep", {"q": 1}),
        ("c", "patch", {"input": '{"looks": "like json"}'}),
    ]


def test_a_request_with_its_response_has_prompt_tools_and_model(tmp_path: Path) -> None:
    request = {
        "id": "resp_1",
        "model": "gpt-x",
        "instructions": "You are an agent.",
        "tools": [
            {
                "type": "function",
                "name": "shell",
                "description": "Runs.",
                "parameters": {"type": "object"},
            },
            {"type": "custom", "name": "patch"},
            {"type": "web_search"},
        ],
        "input": "Go on",
        "output": ITEMS[2:],
    }
    path = json_file(tmp_path / "x.json", request)
    assert FORMAT.recognise(source_file(path))
    built = read_one(FORMAT, path)
    assert said(built) == [("system", "You are an agent."), *EXPECTED[1:]]
    assert built.fixture.model == "gpt-x"
    assert [tool.function.name for tool in built.fixture.tools] == ["shell", "patch"]
    assert caveats(built) == ["1 tools have no schema"]


def test_requests_that_go_on_from_one_another_are_one_conversation(tmp_path: Path) -> None:
    first = {"id": "r1", "instructions": "S", "input": ITEMS[1:2], "output": ITEMS[3:6]}
    second = {
        "id": "r2",
        "previous_response_id": "r1",
        "instructions": "S",
        "input": ITEMS[6:8],
        "output": ITEMS[8:],
    }
    other = {"id": "r9", "previous_response_id": "gone", "input": "Else?", "output": [ITEMS[3]]}
    path = json_lines(tmp_path / "x.jsonl", first, second, b"{torn", other)
    one, two = read_all(FORMAT, path)
    assert [text for _, text in said(one)[:3]] == ["S", "Go on", "Two things."]
    assert results(one)[0] == ("b", "one")
    assert said(two) == [("user", "Else?"), ("assistant", "Two things.")]
    assert any("begins elsewhere" in caveat for caveat in caveats(two))
    assert one.fixture.name != two.fixture.name


def test_a_compaction_is_an_opaque_cut(tmp_path: Path) -> None:
    items = [
        *ITEMS,
        {"type": "compaction", "id": "cmp", "encrypted_content": "zz"},
        message("user", "More"),
    ]
    built = read_one(FORMAT, json_file(tmp_path / "x.json", items))
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.state) == (8, "opaque", None)
