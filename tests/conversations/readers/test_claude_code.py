"""Messages of a Claude Code session: grouped, paired, told from what the client wrote itself."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.formats import format_named
from tests.conversations.readers.claude_code_session import Session, result, text, use
from tests.conversations.readers.reading import (
    calls,
    caveats,
    read_all,
    results,
    said,
)

FORMAT = format_named("claude-code")

THINKING = {"type": "thinking", "thinking": "hidden words", "signature": "s"}


def parallel() -> Session:
    """Two calls of one message, linked as the agent does: the first result ends its own branch."""
    session = Session()
    session.user("look at both")
    session.model("m1", THINKING)
    first = session.model("m1", text("Reading."), use("c1", file="a.py"))
    second = session.model("m1", use("c2", file="b.py"))
    session.user([result("c1", "of a")], parent=first, toolUseResult={"stdout": "of a"})
    session.user([result("c2", [text("of b"), text("more")])], parent=second)
    session.model("m2", text("Done."))
    return session


def test_a_message_over_several_lines_with_parallel_calls_is_one(tmp_path: Path) -> None:
    built = parallel().read(tmp_path)
    assert said(built) == [
        ("user", "look at both"),
        ("assistant", "Reading."),
        ("tool", "of a"),
        ("tool", "of b\nmore"),
        ("assistant", "Done."),
    ]
    assert calls(built) == [("c1", "Read", {"file": "a.py"}), ("c2", "Read", {"file": "b.py"})]
    assert results(built) == [("c1", "of a"), ("c2", "of b\nmore")]


def test_parallel_calls_survive_whichever_result_the_next_message_names(tmp_path: Path) -> None:
    session = parallel()
    session.lines[-1]["parentUuid"] = "u5"
    built = session.read(tmp_path)
    assert [identifier for identifier, _, _ in calls(built)] == ["c1", "c2"]
    assert results(built) == [("c1", "of a"), ("c2", "of b\nmore")]


def test_a_rewind_leaves_the_branch_out_that_the_user_left(tmp_path: Path) -> None:
    session = Session()
    start = session.user("one")
    session.model("m1", text("first answer"))
    session.user("wrong way")
    session.model("m2", use("c1"))
    session.user([result("c1", "lost")])
    session.user("right way", parent=start)
    session.model("m3", text("second answer"))
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == ["one", "right way", "second answer"]
    assert "4 lines on branches that the user left were left out" in caveats(built)


def test_a_line_with_the_uuid_of_another_one_is_a_message_of_its_own(tmp_path: Path) -> None:
    session = Session()
    for words in ("first", "second", "third", "fourth"):
        session.user(words)
    session.lines[2]["uuid"] = session.lines[3]["parentUuid"] = session.lines[1]["uuid"]
    assert said(session.read(tmp_path)) == [
        ("user", words) for words in ("first", "second", "third", "fourth")
    ]


def command(name: str, arguments: str = "") -> str:
    return f"<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>"


def test_commands_to_the_client_are_skipped_and_those_with_words_are_kept(tmp_path: Path) -> None:
    session = Session()
    session.user("hello")
    session.user(command("exit"))
    session.user("<local-command-stdout>Bye</local-command-stdout>")
    session.user(command("compact", "keep the port"))
    session.user("<local-command-stdout></local-command-stdout>")
    session.user(command("review"))
    session.user([text("What the skill says.")], isMeta=True)
    session.user("<bash-input>ls</bash-input>")
    session.user("[Request interrupted by user]")
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == [
        "hello",
        command("compact", "keep the port"),
        command("review"),
        "What the skill says.",
        "<bash-input>ls</bash-input>",
        "[Request interrupted by user]",
    ]


def test_what_the_client_says_in_the_models_place_is_skipped(tmp_path: Path) -> None:
    session = Session()
    session.user("hello")
    session.model("x1", text("No response requested."), message={"model": "<synthetic>"})
    session.model("x2", text("API Error"), isApiErrorMessage=True)
    session.user("shown only", isVisibleInTranscriptOnly=True)
    built = session.read(tmp_path)
    assert said(built) == [("user", "hello")]
    assert built.fixture.model == ""


def test_subagents_and_side_chains_are_conversations_of_their_own(tmp_path: Path) -> None:
    session = Session()
    start = session.user("main task")
    session.linked("user", message={"content": "side task"}, isSidechain=True, parent=None)
    side = session.last
    session.model("s1", text("side answer"), isSidechain=True)
    session.model("m1", text("main answer"), parent=start)
    session.user("sub task", isSidechain=True, agentId="7f", parent=None)
    session.model("s2", text("sub answer"), isSidechain=True, agentId="7f")
    session.user("second side", isSidechain=True, parent=start)
    session.model("s3", text("more of the first"), isSidechain=True, parent=side)
    session.loose("summary", summary="A title", leafUuid="u4")
    built = read_all(FORMAT, session.write(tmp_path))
    texts = {item.fixture.name: [words for _, words in said(item)] for item in built}
    name = "claude-code-000000000001"
    assert texts == {
        name: ["main task", "main answer"],
        f"{name}-side-1": ["side task", "more of the first"],
        f"{name}-agent-7f": ["sub task", "sub answer"],
        f"{name}-side-2": ["second side"],
    }


def working() -> Session:
    session = Session()
    session.user("the task")
    session.model("m1", use("c1"))
    return session


def test_a_prompt_that_only_the_queue_holds_is_kept_where_it_was_handed_over(
    tmp_path: Path,
) -> None:
    session = working()
    session.queue("enqueue", content="draft only")
    session.user([result("c1", "ok")])
    session.queue("remove")
    session.model("m2", text("As a draft."))
    built = session.read(tmp_path)
    assert [content for _, content in said(built)] == [
        "the task",
        "",
        "ok",
        "draft only",
        "As a draft.",
    ]


@pytest.mark.parametrize("operation", ["dequeue", "remove"])
def test_a_prompt_that_a_later_line_holds_too_is_not_doubled(
    tmp_path: Path, operation: str
) -> None:
    session = working()
    session.queue("enqueue", content="mind the port")
    session.queue(operation, content="mind the port")
    session.user([result("c1", "ok")])
    session.user([text("mind the port")])
    built = session.read(tmp_path)
    assert [content for _, content in said(built)] == ["the task", "", "ok", "mind the port"]


def test_a_prompt_taken_back_for_editing_was_never_said(tmp_path: Path) -> None:
    session = working()
    session.queue("enqueue", content="drop the table")
    session.queue("popAll")
    session.user([result("c1", "ok")])
    session.user("keep the table")
    built = session.read(tmp_path)
    assert [content for _, content in said(built)] == ["the task", "", "ok", "keep the table"]


def test_a_prompt_that_still_waits_at_the_end_is_kept_and_said(tmp_path: Path) -> None:
    session = working()
    session.queue("enqueue", content="and then stop")
    session.user([result("c1", "ok")])
    built = session.read(tmp_path)
    assert said(built)[-1] == ("user", "and then stop")
    assert "1 prompts still waited when the recording ended" in caveats(built)


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("hook_success", {"hookEvent": "SessionStart", "content": "Use tabs."}, "Use tabs."),
        ("agent_listing_delta", {"addedLines": ["- a", "- b"]}, "- a\n- b"),
        ("todo_reminder", {"content": [{"content": "fix", "status": "pending"}]}, None),
        (
            "nested_memory",
            {"path": "/M", "content": {"type": "User", "content": "rule"}},
            "/M\nrule",
        ),
        (
            "file",
            {
                "filename": "/p.png",
                "content": {
                    "type": "image",
                    "file": {"type": "image/png", "base64": "QUJD", "originalSize": 3},
                },
            },
            "/p.png",
        ),
    ],
)
def test_a_note_that_the_model_saw_is_a_marked_message(
    tmp_path: Path, kind: str, fields: dict[str, Any], expected: str | None
) -> None:
    session = Session()
    session.user("the task")
    session.attach(kind, **fields)
    role, content = said(session.read(tmp_path))[1]
    assert role == "user"
    assert content.startswith("<system-reminder>\n")
    if expected is None:
        expected = '{"content": "fix", "status": "pending"}'
    assert content.startswith(f"<system-reminder>\n{expected}\n</system-reminder>")
    assert content.endswith("[image: image/png, 3 bytes]") == (kind == "file")
