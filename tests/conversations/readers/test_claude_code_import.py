"""Claude Code sessions through the command: cleared contexts, missing beginnings, whose words."""

import asyncio
from pathlib import Path

import pytest

from compression_eval.fixtures.conversation import conversation
from compression_eval.fixtures.models import Message
from tests.conversations.readers.claude_code_session import Session, result, text, use
from tests.conversations.readers.importing import Imported, imported, imported_all

PLAN = "# Plan\nAdd retries to fetch.py."


def words(found: Imported) -> list[str]:
    return [text for _, text in found.said]


def planned() -> Session:
    """A session in which a plan was made."""
    session = Session()
    session.user("Plan retries.")
    session.model("m1", use("c1", name="ExitPlanMode", plan=PLAN))
    session.user([result("c1", "User has approved your plan.")])
    return session


def hook(session: Session) -> None:
    """Add what a hook reports when the context was cleared: a line that names none before it."""
    session.linked(
        "progress", parent=None, data={"type": "hook_progress", "hookName": "SessionStart:clear"}
    )


@pytest.mark.parametrize("hooks", [0, 1, 2])
def test_a_context_that_was_cleared_for_a_plan_is_a_compaction_whose_state_is_the_plan(
    tmp_path: Path, hooks: int
) -> None:
    session = planned()
    for _ in range(hooks):
        hook(session)
    message = f"Implement the following plan:\n\n{PLAN}"
    parent = {} if hooks else {"parent": None}
    session.user(message, planContent=PLAN, **parent)
    session.model("m2", text("Adding retries."))
    found = imported(session.write(tmp_path), tmp_path)
    assert words(found) == [
        "Plan retries.",
        "",
        "User has approved your plan.",
        "Adding retries.",
    ]
    (compaction,) = found.fixture.recorded_compactions
    assert (compaction.cut, compaction.trigger, compaction.summary) == (3, "plan", PLAN)
    assert [item.text for item in compaction.state or [] if isinstance(item, Message)] == [message]
    assert found.fixture.cuts == [3]


def test_a_context_that_was_cleared_for_something_else_is_a_second_conversation(
    tmp_path: Path,
) -> None:
    session = planned()
    hook(session)
    session.user("Now something else.")
    session.queue("enqueue", content="and be quick")
    session.model("m2", text("Of course."))
    first, second = imported_all(session.write(tmp_path), tmp_path)
    assert second.fixture.name == f"{first.fixture.name}-clear-2"
    assert words(first) == ["Plan retries.", "", "User has approved your plan."]
    assert words(second) == ["Now something else.", "Of course.", "and be quick"]
    assert not first.fixture.recorded_compactions
    assert not second.fixture.recorded_compactions


def test_a_file_that_begins_with_a_summary_has_it_as_its_first_message(tmp_path: Path) -> None:
    session = Session()
    session.last = "not-in-the-file"
    session.boundary()
    session.summary("What happened so far.")
    session.model("m1", text("Going on."))
    session.user("Good. Now the tests.")
    session.model("m2", text("Done."))
    session.boundary()
    session.summary("All of it.")
    session.model("m3", text("Ready."))
    found = imported(session.write(tmp_path), tmp_path)
    assert words(found) == [
        "What happened so far.",
        "Going on.",
        "Good. Now the tests.",
        "Done.",
        "Ready.",
    ]
    assert [message.injected for message in found.fixture.messages[::2]] == [True, False, False]
    assert "the file begins in the middle of a conversation, with a summary" in "\n".join(
        found.caveats
    )
    # The second one summarises what is there: the first summary and what followed it.
    assert [item.summary for item in found.fixture.recorded_compactions] == ["All of it."]


def test_of_a_compaction_of_what_the_file_lacks_only_the_place_is_kept(tmp_path: Path) -> None:
    session = Session()
    session.last = "not-in-the-file"
    session.user("Now the tests.")
    session.model("m1", text("Done."))
    session.boundary(preTokens=150_000)
    session.summary("What came before this file, and the tests.")
    session.model("m2", text("Ready."))
    found = imported(session.write(tmp_path), tmp_path)
    (compaction,) = found.fixture.recorded_compactions
    assert (compaction.cut, compaction.tokens_before) == (2, 150_000)
    assert (compaction.summary, compaction.state) == (None, None)


@pytest.mark.parametrize("announced", [True, False])
def test_a_file_that_begins_within_a_turn_keeps_the_place_of_its_first_compaction(
    announced: bool, tmp_path: Path
) -> None:
    session = Session()
    session.last = "not-in-the-file"
    session.user([result("t0", "of a call that is not there")])
    session.model("m1", text("Looking."), use("t1"))
    session.user([result("t1", "found")])
    if announced:
        session.boundary(preTokens=150_000)
    session.summary("What came before this file, and the look.")
    session.model("m2", text("Going on."))
    session.user("Now the tests.")
    session.model("m3", text("Done."))
    session.boundary()
    session.summary("All of it.")
    session.model("m4", text("Ready."))
    found = imported(session.write(tmp_path), tmp_path)
    assert words(found) == [
        "[the prompt is not in the recording]",
        "Looking.",
        "found",
        "What came before this file, and the look.",
        "Going on.",
        "Now the tests.",
        "Done.",
        "Ready.",
    ]
    first, second = found.fixture.recorded_compactions
    assert (first.cut, first.tokens_before) == (3, 150_000 if announced else None)
    assert (first.summary, first.state) == (None, None)
    assert (second.cut, second.summary) == (7, "All of it.")
    assert second.state
    assert "within a turn" in "\n".join(found.caveats)


@pytest.mark.parametrize("scrub", [[], ["--scrub", "default"]])
def test_failed_calls_times_and_tokens_are_kept(scrub: list[str], tmp_path: Path) -> None:
    times = [f"2026-01-02T03:04:0{second}.123Z" for second in range(5)]
    session = Session()
    session.user("Look.", timestamp=times[0])
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1}
    session.model("m1", text("Looking."), message={"usage": usage}, timestamp=times[1])
    usage |= {"output_tokens": 25}
    session.model("m1", use("c1"), message={"usage": usage}, timestamp=times[2])
    session.user([result("c1", "no such file", is_error=True)], timestamp=times[3])
    session.model("m2", text("There is none."), timestamp="late")
    found = imported(session.write(tmp_path), tmp_path, *scrub)
    known = [(message.model_extra or {}).get("metadata") for message in found.fixture.messages]
    at = [f"2026-01-02T03:04:0{second}.123000+00:00" for second in range(5)]
    assert known == [
        {"timestamp": at[0]},
        {"timestamp": at[1], "usage": {"input_tokens": 43, "output_tokens": 25}},
        {"is_error": True, "timestamp": at[3]},
        None,
    ]
    copies = asyncio.run(conversation(found.fixture))
    assert [message.metadata for message in copies] == known
    assert "c1" not in str(found.left_out)
    assert all(one["what"] != "is_error" for one in found.left_out)


def test_messages_that_no_person_wrote_are_marked(tmp_path: Path) -> None:
    session = Session()
    session.user("Fix the bug.")
    session.user("Base directory for this skill: /skills/x", isMeta=True)
    session.attach("task_reminder", content="Keep the list up to date.")
    session.attach("queued_command", prompt="<x>finished</x>", commandMode="task-notification")
    session.attach("queued_command", prompt="Also the docs.", commandMode="prompt")
    session.user("A job has ended.", origin={"kind": "task-notification"})
    session.user("Thanks.", origin={"kind": "human"})
    session.user([text("<system-reminder>x</system-reminder>"), text("Go on.")])
    session.user([text("<system-reminder>x</system-reminder>")])
    done = "<task-notification><task-id>b1</task-id></task-notification>"
    session.user(f"{done}\nRead the output file to retrieve the result: /project/b1.output")
    session.user('<teammate-message teammate_id="lead" summary="x">Begin.</teammate-message>')
    session.model("m1", text("Fixed."))
    found = imported(session.write(tmp_path), tmp_path, "--scrub", "default")
    fixture = found.fixture
    assert [message.typed for message in fixture.messages] == [
        "Fix the bug.",
        "",
        "",
        "",
        "Also the docs.",
        "",
        "Thanks.",
        "\nGo on.",
        *[""] * 4,
    ]
    assert [message.injected for message in fixture.messages] == [
        typed == "" and number < 11
        for number, typed in enumerate(message.typed for message in fixture.messages)
    ]
    # What was imported can be imported again, as any file of messages.
    (written,) = (tmp_path / "fixtures").glob("*.json")
    assert imported(written, tmp_path / "again").fixture.messages == fixture.messages
