"""Compactions that Claude Code carried out: where they stand and what they left."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.building import Built
from compression_eval.fixtures.models import Message, RecordedCompaction
from tests.conversations.readers.claude_code_session import Session, result, text, use
from tests.conversations.readers.reading import caveats, said

CLEARED = "[Old tool result content cleared]"


def before() -> Session:
    session = Session()
    session.user("the task")
    session.model("m1", use("c1"))
    session.user([result("c1", "long output")])
    session.model("m2", text("Understood."))
    return session


def compactions(built: Built) -> list[RecordedCompaction]:
    return built.fixture.recorded_compactions


def state(built: Built, number: int = 0) -> list[int | str]:
    """Return a state: indices of kept messages, and the texts of those that were made."""
    items = compactions(built)[number].state
    assert items is not None
    return [item.text if isinstance(item, Message) else item for item in items]


def test_a_boundary_is_a_cut_its_summary_the_state_and_the_rest_goes_on(tmp_path: Path) -> None:
    session = before()
    session.boundary(postTokens=90)
    session.summary("What happened so far.")
    session.model("m3", text("Going on."))
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == [
        "the task",
        "",
        "long output",
        "Understood.",
        "Going on.",
    ]
    (compaction,) = compactions(built)
    assert (compaction.cut, compaction.kind, compaction.trigger) == (4, "summary", "auto")
    assert (compaction.tokens_before, compaction.tokens_after) == (900, 90)
    assert compaction.summary == "What happened so far."
    assert state(built) == ["What happened so far."]
    assert caveats(built) == [
        "the system prompt and the tools are not in the file",
        "compaction 1: the recorded state is what the file shows; what the agent's client attached "
        "again (files, plan, tasks) may be missing",
    ]


def kept_tail(*, before_summary: bool = False) -> Session:
    """A compaction that keeps the last two messages; what follows names the kept tail."""
    session = before()
    head = session.user("kept question")
    tail = session.model("m3", text("Kept answer."))
    anchor = f"u{len(session.lines) + (1 if before_summary else 2)}"
    segment = {"headUuid": head, "tailUuid": tail, "anchorUuid": anchor}
    session.boundary(preservedSegment=segment)
    session.summary("Summary.")
    session.user("next", parent=tail)
    session.model("m4", text("Next answer."))
    return session


def test_a_kept_tail_is_part_of_the_state_and_not_doubled(tmp_path: Path) -> None:
    built = kept_tail().read(tmp_path)
    assert [words for _, words in said(built)][4:] == [
        "kept question",
        "Kept answer.",
        "next",
        "Next answer.",
    ]
    assert compactions(built)[0].cut == 6
    assert state(built) == ["Summary.", 4, 5]


def test_a_rewind_past_a_compaction_undoes_it(tmp_path: Path) -> None:
    session = kept_tail()
    session.user("another way", parent="u4")
    built = session.read(tmp_path)
    assert said(built)[-1] == ("user", "another way")
    assert len(said(built)) == 5
    assert compactions(built) == []


def test_an_old_summary_without_a_boundary_is_a_compaction(tmp_path: Path) -> None:
    session = before()
    session.summary("Summary.", parent=None)
    session.model("m3", text("Going on."))
    built = session.read(tmp_path)
    assert compactions(built)[0].cut == 4
    assert state(built) == ["Summary."]
    assert len(said(built)) == 5


def micro(session: Session, *calls: str, **metadata: Any) -> None:
    metadata = {"trigger": "auto", "preTokens": 500, "tokensSaved": 200, **metadata}
    session.system(
        "microcompact_boundary", microcompactMetadata={**metadata, "compactedToolIds": list(calls)}
    )


@pytest.mark.parametrize("first", ["micro", "whole"])
def test_compactions_without_a_message_between_them_are_one(first: str, tmp_path: Path) -> None:
    session = before()
    if first == "micro":
        micro(session, "c1")
    session.boundary()
    session.summary("All of it.")
    if first == "whole":
        micro(session, "c1")
    session.model("m3", text("Done."))
    built = session.read(tmp_path)
    (kept,) = compactions(built)
    assert (kept.kind, kept.cut, kept.summary) == ("summary", 4, "All of it.")
    assert kept.state
    assert "compactions without a message between them are taken for one" in caveats(built)


def test_a_microcompaction_clears_results_and_later_ones_keep_them_cleared(tmp_path: Path) -> None:
    session = before()
    micro(session, "c1")
    session.model("m3", use("c2"))
    session.user([result("c2", "second output")])
    micro(session, "c2")
    session.model("m4", text("Done."))
    built = session.read(tmp_path)
    assert [words for _, words in said(built)][2] == "long output"
    first, second = compactions(built)
    assert (first.kind, first.cut, first.summary) == ("clear", 4, None)
    assert (first.tokens_before, first.tokens_after) == (500, 300)
    assert state(built, 0) == [0, 1, CLEARED, 3]
    assert second.cut == 6
    assert state(built, 1) == [0, 1, CLEARED, 3, 4, CLEARED]
