"""What stands outside the lines of messages: queued prompts, and notes that the model saw."""

from pathlib import Path
from typing import Any

import pytest

from tests.conversations.readers.claude_code_session import Session, result, text, use
from tests.conversations.readers.reading import caveats, said


def working() -> Session:
    session = Session()
    session.user("the task")
    session.model("m1", use("c1"))
    return session


def words(session: Session, folder: Path) -> list[str]:
    return [content for _, content in said(session.read(folder))]


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
