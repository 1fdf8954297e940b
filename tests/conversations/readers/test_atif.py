"""ATIF trajectories, with continuations and sub-agents."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_file,
    read_all,
    read_one,
    results,
    said,
)

FORMAT = format_named("atif")

TOOL = {"type": "function", "function": {"name": "edit", "parameters": {"type": "object"}}}
COMPACTION = {
    "source": "system", "message": "compacted",
    "observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_path": "x.json"}]}]},
    "extra": {"context_management": {"type": "compaction", "boundary": "replace"}},
}  # fmt: skip


def _trajectory(*steps: Any, version: str = "1.7", **fields: Any) -> dict[str, Any]:
    numbered = [
        {"step_id": number, **step} if isinstance(step, dict) else step
        for number, step in enumerate(steps, 1)
    ]
    return {
        "schema_version": f"ATIF-v{version}", "session_id": "s-1",
        "agent": {
            "name": "helper", "version": "1", "model_name": "m-1", "tool_definitions": [TOOL],
        },
        "steps": numbered, **fields,
    }  # fmt: skip


def _step(source: str, message: Any, **fields: Any) -> dict[str, Any]:
    return {"source": source, "message": message, **fields}


def _call(name: str) -> dict[str, Any]:
    return {"tool_call_id": name, "function_name": "edit", "arguments": {"path": name}}


def _seen(*results: tuple[str | None, Any]) -> dict[str, Any]:
    return {
        "results": [
            {"content": content} if name is None else {"source_call_id": name, "content": content}
            for name, content in results
        ]
    }


GO = _step("user", "go")


@pytest.mark.parametrize("version", [f"1.{minor}" for minor in range(9)])
def test_steps_become_messages(tmp_path: Path, version: str) -> None:
    path = json_file(
        tmp_path / "t.json",
        _trajectory(
            _step("system", "be good"),
            GO,
            _step("system", "context was added"),
            _step(
                "agent",
                [{"type": "text", "text": "two calls"}, {"type": "image", "source": {
                    "media_type": "image/png", "path": "/etc/passwd"}}],
                reasoning_content="HIDDEN",
                tool_calls=[_call("c1"), _call("c2")],
                observation=_seen(("c2", "second"), ("c1", [{"type": "text", "text": "first"}])),
            ),
            _step("agent", "bye", tool_calls=[_call("c3")]),
            version=version,
        ),
    )  # fmt: skip
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert said(built)[:4] == [
        ("system", "be good"), ("user", "go"), ("user", "context was added"),
        ("assistant", "two calls\n[image: image/png]"),
    ]  # fmt: skip
    assert [name for name, _, _ in calls(built)] == ["c1", "c2", "c3"]
    assert results(built)[:2] == [("c2", "second"), ("c1", "first")]
    assert "HIDDEN" not in built.fixture.model_dump_json()
    assert "passwd" not in built.fixture.model_dump_json()
    assert built.fixture.model == "m-1"
    assert [tool.function.name for tool in built.fixture.tools] == ["edit"]
    assert built.fixture.source is not None
    assert built.fixture.source.origin == "ATIF: helper 1"
    assert "version of the format" not in "".join(built.fixture.source.caveats)


def test_observations_without_a_call_id(tmp_path: Path) -> None:
    path = json_file(
        tmp_path / "t.json",
        _trajectory(
            GO,
            _step("agent", "<run/>", observation=_seen((None, "output"))),
            _step("agent", "x", tool_calls=[_call("a")], observation=_seen((None, "by order"))),
            _step("agent", "y", tool_calls=[_call("b")],
                  observation=_seen((None, "one"), (None, "two"))),
            _step("agent", "z", observation=_seen(("gone", "lost"))),
        ),
    )  # fmt: skip
    built = read_one(FORMAT, path)
    assert said(built)[1:3] == [("assistant", "<run/>"), ("user", "output")]
    assert results(built) == [("a", "by order"), ("b", "[no result was recorded for this call]")]
    assert [text for role, text in said(built) if role == "user"] == ["go", "output", "one", "two"]
    assert "observations that answer no call stand as user messages" in caveats(built)
    assert "1 tool results without their call were left out" in caveats(built)


def _continued(folder: Path, reference: Any) -> Path:
    tail = _step("agent", "kept", observation=_seen((None, "output")))
    return json_file(
        folder / "t.json",
        _trajectory(GO, tail, COMPACTION, continued_trajectory_ref=reference),
    )


def _continuation(path: Path, **fields: Any) -> Path:
    copied = [GO, _step("user", "the summary"), _step("user", "output")]
    steps = [step | {"is_copied_context": True} for step in copied]
    return json_file(path, _trajectory(*steps, _step("agent", "goes on"), **fields))


def test_a_continuation_beside_the_file_is_read(tmp_path: Path) -> None:
    path = _continued(tmp_path, "t.cont-1.json")
    _continuation(tmp_path / "t.cont-1.json")
    built = read_one(FORMAT, path)
    assert [text for _, text in said(built)] == ["go", "kept", "output", "goes on"]
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (3, "summary", "the summary")
    assert compaction.state is not None
    assert [item if isinstance(item, int) else item.text for item in compaction.state] == [
        0, "the summary", 2,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "reference",
    [
        "../outside.json",
        "/etc/outside.json",
        "link.json",
    ],
)
def test_a_reference_that_leads_outside_the_folder_is_not_followed(
    tmp_path: Path, reference: Any
) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    _continuation(tmp_path / "outside.json")
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    (folder / "loop").symlink_to(folder / "loop")
    built = read_one(FORMAT, _continued(folder, reference))
    assert "goes on" not in built.fixture.model_dump_json()
    assert "a continuation outside the folder was not followed" in caveats(built)
    assert "outside.json" not in "".join(caveats(built))


def test_sub_agents_are_conversations_of_their_own(tmp_path: Path) -> None:
    inner = _trajectory(_step("user", "sub task"), trajectory_id="sub 1")
    path = json_file(tmp_path / "t.json", _trajectory(GO, subagent_trajectories=[inner, "x"]))
    main, child = read_all(FORMAT, path)
    assert said(main) == [("user", "go")]
    assert said(child) == [("user", "sub task")]
    assert child.fixture.name.endswith("-sub-1")
