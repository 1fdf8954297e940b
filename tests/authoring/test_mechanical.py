"""What is asked without a model, about a session in which everything happens once."""

import pytest

from compression_eval.authoring.candidates import Harvest
from compression_eval.authoring.mechanical import mechanical
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language
from tests.authoring import story
from tests.fixtures.building import Json, assistant, call, result, user


def found(harvest: Harvest, origin: str) -> list[Probe]:
    return [c.probe for c in harvest.candidates if c.probe.origin == f"mechanical:{origin}"]


def facts(probe: Probe) -> list[str]:
    return [item.fact for item in probe.expected_facts]


def with_messages(*more: Json, at: int = story.CUT - 2) -> Harvest:
    """Return what is asked about the story with more messages before its kept tail."""
    messages = story.messages()
    messages[at:at] = more
    cut = story.CUT + len(more)
    return mechanical(story.history(messages=messages, cuts=[cut], cut=cut))


def test_everything_is_found_once_and_records_its_kind() -> None:
    harvest = mechanical(story.history())
    asked = {c.template: facts(c.probe) for c in harvest.candidates}
    assert asked == {
        "tasks_open": ["Flag rows in the weekly report", "Tell the partner desk"],
        "check_failing": [story.PYTEST, "1 failed"],
        "files_changed": ["importer/rows.py", "tests/test_notes.py"],
        "option_chosen": ["Keep and flag them"],
        "last_commit": ["Keep rows without a note"],
    }
    assert all(c.probe.origin == f"mechanical:{c.template}" for c in harvest.candidates)
    assert {c.probe.type for c in harvest.candidates} == {
        "recall",
        "artifact",
        "continuation",
        "decision",
    }


def test_the_same_history_gives_the_same_probes() -> None:
    assert mechanical(story.history()) == mechanical(story.history())


@pytest.mark.parametrize(("language", "word"), [("zh", "哪些"), ("ja", "ですか")])
def test_questions_are_in_the_language_of_the_session(language: Language, word: str) -> None:
    harvest = mechanical(story.history(language=language))
    assert len(harvest.candidates) == 5
    assert any(word in c.probe.question for c in harvest.candidates)


def test_files_are_not_listed_where_a_call_may_have_touched_others() -> None:
    harvest = with_messages(
        assistant("", call("x1", command='rm "$OLD"')), result("x1", "exit code: 0")
    )
    (asked,) = found(harvest, "files_changed")
    assert "only what you did with your editing tools" in asked.question


def test_a_renamed_file_is_asked_for_by_its_first_name_if_something_uses_the_new_one() -> None:
    moved = (
        assistant("", call("x1", command="git mv importer/old.py importer/legacy.py")),
        result("x1", "exit code: 0"),
    )
    assert not found(with_messages(*moved), "file_renamed")
    read = (
        assistant("", call("x2", "read_file", path="importer/legacy.py")),
        result("x2", "rows = []"),
    )
    (probe,) = found(with_messages(*moved, *read), "file_renamed")
    assert facts(probe) == ["importer/legacy.py"]


LIMIT = user("Good: so the limit is row_limit = 600.")


def test_a_value_has_to_stand_beside_its_edits_and_supersedes_those_before() -> None:
    assert not found(mechanical(story.history()), "value_settled")
    (settled,) = found(with_messages(LIMIT), "value_settled")
    assert facts(settled) == ["row_limit = 600"]
    assert settled.expected_facts[0].superseded == ["row_limit = 30", "row_limit = 45"]


@pytest.mark.parametrize(
    ("new", "output"),
    [
        pytest.param("row_limit = 30", "Edited importer/rows.py", id="taken back"),
        pytest.param("row_limit = 900", "Error: no match for old_string", id="failed"),
    ],
)
def test_a_value_that_another_edit_names_is_a_doubt(new: str, output: str) -> None:
    edit = assistant("", story.edit("x1", "row_limit = 600", new)), result("x1", output)
    assert not found(with_messages(LIMIT, *edit), "value_settled")


def test_a_later_value_elsewhere_is_a_doubt() -> None:
    harvest = with_messages(LIMIT, user("By the way, row_limit = 700 in the other service."))
    assert not found(harvest, "value_settled")
    assert any("row_limit 700" in reason for d in harvest.dropped for reason in d.reasons)


def test_a_pull_request_is_asked_for_if_it_comes_up_again() -> None:
    opened = (
        assistant("", call("x1", command="gh pr create --fill")),
        result("x1", "https://git.example.com/desk/importer/pull/318"),
    )
    assert not found(with_messages(*opened), "pull_request")
    (probe,) = found(with_messages(*opened, assistant("It is #318.")), "pull_request")
    assert "#318" in probe.expected_facts[0].forms


def test_a_task_list_that_is_only_in_the_tail_is_dropped_with_its_reason() -> None:
    todos = [{"content": "Write to the auditors", "status": "pending"}]
    harvest = with_messages(
        assistant("", call("x1", "TodoWrite", todos=todos)), result("x1", "saved"), at=story.CUT
    )
    dropped = [item for item in harvest.dropped if item.origin == "mechanical:tasks_open"]
    assert ["kept verbatim" in item.reasons[0] for item in dropped] == [True]
