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


def test_everything_is_found_once() -> None:
    harvest = mechanical(story.history())
    asked = {c.template: facts(c.probe) for c in harvest.candidates}
    assert asked == {
        "user_files": ["data/export-0214.csv"],
        "last_request": ["data/export-0214.csv", "FER-512"],
        "tasks_open": ["Flag rows in the weekly report", "Tell the partner desk"],
        "task_current": ["Flag rows in the weekly report"],
        "commit_hash": ["4f3c2a1"],
        "summary_counts": ["1 failed", "13 passed"],
        "check_failing": [story.PYTEST, "1 failed"],
        "files_modified": ["importer/rows.py"],
        "files_created": ["tests/test_notes.py"],
        "names_added": ["DeliveryNoteTest"],
        "turn_changed": ["importer/rows.py", "tests/test_notes.py"],
        "value_settled": ["row_limit = 600"],
        "option_chosen": ["Keep and flag them"],
    }
    assert {c.probe.type for c in harvest.candidates} == {
        "recall",
        "artifact",
        "continuation",
        "decision",
    }


def test_what_changed_is_superseded() -> None:
    harvest = mechanical(story.history())
    (settled,) = found(harvest, "values")
    assert settled.expected_facts[0].superseded == ["row_limit = 30", "row_limit = 45"]
    counts = next(p for p in found(harvest, "commands") if p.type == "recall")
    assert [item.superseded for item in counts.expected_facts] == [["2 failed"], ["11 passed"]]


def test_the_same_history_gives_the_same_probes() -> None:
    assert mechanical(story.history()) == mechanical(story.history())


@pytest.mark.parametrize(("language", "word"), [("zh", "哪些"), ("ja", "ですか")])
def test_questions_are_in_the_language_of_the_session(language: Language, word: str) -> None:
    harvest = mechanical(story.history(language=language))
    assert len(harvest.candidates) == 13
    assert any(word in c.probe.question for c in harvest.candidates)


def test_what_the_continuation_used_is_asked_for_in_words() -> None:
    (asked,) = found(mechanical(story.history()), "future")
    assert facts(asked) == ["data/export-0214.csv"]
    assert asked.type == "continuation"
    assert asked.question == (
        "To go on, you need something from earlier again. In their message that begins “Ticket "
        "FER-512 is yours: the importer drops rows of the partner export. The nightly job…”, "
        "which files did the user name? Give each of them."
    )


def test_a_name_that_was_shown_again_after_the_cut_is_not_asked_for() -> None:
    messages = story.messages()
    messages.insert(story.CUT, user("Use export-0214.csv once more."))
    assert found(mechanical(story.history(messages=messages)), "future") == []


def test_a_name_in_the_kept_tail_is_not_asked_for() -> None:
    messages = story.messages()
    messages[story.CUT - 2] = user("Good, data/export-0214.csv.")
    assert found(mechanical(story.history(messages=messages)), "future") == []


def test_only_an_error_without_a_doubt_is_asked_for() -> None:
    failing = "python tools/convert.py --all"
    once = (
        assistant("", call("x1", command=failing)),
        result("x1", "ModuleNotFoundError: No module named 'chardet'\nexit code: 1"),
    )
    asked = [p for p in found(with_messages(*once), "commands") if failing in p.question]
    assert [facts(probe) for probe in asked] == [["ModuleNotFoundError", "chardet"]]
    again = (
        assistant("", call("x2", command=f"cd lib; {failing}")),
        result("x2", "KeyError: 'x'\nexit code: 1"),
    )
    harvest = with_messages(*once, *again)
    assert not [p for p in found(harvest, "commands") if failing in p.question]


def test_the_last_run_is_not_the_last_if_a_later_call_ran_it_among_others() -> None:
    harvest = with_messages(
        assistant("", call("x1", command=f"{story.PYTEST}; echo done")), result("x1", "14 passed")
    )
    assert found(harvest, "commands") == []


def test_a_check_that_passes_is_no_unfinished_work() -> None:
    harvest = with_messages(
        assistant("", call("x1", command=story.PYTEST)), result("x1", "14 passed in 0.1s")
    )
    assert [p.type for p in found(harvest, "commands")] == ["recall"]


def test_a_telling_exit_code_is_asked_for() -> None:
    harvest = with_messages(
        assistant("", call("x1", command="tools/sync --dry-run")), result("x1", "exit code: 127")
    )
    (probe,) = [p for p in found(harvest, "commands") if "tools/sync" in p.question]
    assert facts(probe) == ["exit code 127"]


def test_files_are_not_listed_where_a_call_may_have_touched_others() -> None:
    harvest = with_messages(
        assistant("", call("x1", command='rm "$OLD"')), result("x1", "exit code: 0")
    )
    asked = {c.template: c.probe for c in harvest.candidates if c.template.startswith("files_")}
    assert list(asked) == ["files_changed"]
    assert "only what you did with your editing tools" in asked["files_changed"].question


def test_a_renamed_file_is_asked_for_by_its_first_name() -> None:
    harvest = with_messages(
        assistant("", call("x1", command="git mv importer/old.py importer/legacy.py")),
        result("x1", "exit code: 0"),
    )
    (probe,) = [p for p in found(harvest, "files") if "importer/old.py" in p.question]
    assert facts(probe) == ["importer/legacy.py"]


def test_a_quoted_word_is_a_value_too() -> None:
    old, new = '"theme": "teal",', '"theme": "navy",'
    edited = call("x1", "edit_file", path="app/theme.json", old_string=old, new_string=new)
    harvest = with_messages(assistant("", edited), result("x1", "Edited app/theme.json"))
    (probe,) = [p for p in found(harvest, "values") if p.type == "artifact"]
    assert facts(probe) == ["theme = navy"]
    assert probe.expected_facts[0].superseded == ['theme: "teal"']


def test_a_change_that_was_taken_back_is_no_decision() -> None:
    harvest = with_messages(
        assistant("", story.edit("x1", "row_limit = 600", "row_limit = 30")),
        result("x1", "Edited importer/rows.py"),
    )
    assert found(harvest, "values") == []


def test_an_edit_that_failed_changed_no_value() -> None:
    harvest = with_messages(
        assistant("", story.edit("x1", "row_limit = 600", "row_limit = 900")),
        result("x1", "Error: no match for old_string"),
    )
    (dropped,) = [item for item in harvest.dropped if item.origin == "mechanical:values"]
    assert dropped.reasons == ("message 20 says 'row_limit 900' after 'row_limit = 600'",)


def test_a_later_value_elsewhere_is_a_doubt() -> None:
    harvest = with_messages(user("By the way, row_limit = 700 in the other service."))
    assert found(harvest, "values") == []
    assert any("row_limit 700" in reason for d in harvest.dropped for reason in d.reasons)


def test_a_pull_request_is_asked_for() -> None:
    harvest = with_messages(
        assistant("", call("x1", command="gh pr create --fill")),
        result("x1", "https://git.example.com/desk/importer/pull/318"),
    )
    (probe,) = [p for p in found(harvest, "git") if "pull request" in p.question]
    assert "#318" in probe.expected_facts[0].forms


def test_a_task_list_that_is_only_in_the_tail_is_dropped_with_its_reason() -> None:
    todos = [{"content": "Write to the auditors", "status": "pending"}]
    harvest = with_messages(
        assistant("", call("x1", "TodoWrite", todos=todos)), result("x1", "saved"), at=story.CUT
    )
    dropped = [item for item in harvest.dropped if item.origin == "mechanical:todo"]
    assert ["kept verbatim" in item.reasons[0] for item in dropped] == [True]
