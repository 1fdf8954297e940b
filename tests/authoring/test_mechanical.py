"""What is asked without a model, about a session in which everything happens once."""

import pytest

from compression_eval.authoring.candidates import Harvest
from compression_eval.authoring.mechanical import mechanical
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language
from tests.authoring import story
from tests.fixtures.building import Json, assistant, call, result


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


@pytest.mark.parametrize(
    ("name", "arguments", "listed"),
    [
        pytest.param("bash", {"command": 'rm "$OLD"'}, False, id="a name from a variable"),
        pytest.param(
            "bash", {"command": 'git mv "$OLD" importer/new.py'}, False, id="moved by git"
        ),
        pytest.param("bash", {"command": "git checkout -- importer"}, False, id="put back"),
        pytest.param("mcp__tools__apply", {"text": "x"}, False, id="an unknown tool"),
        pytest.param("bash", {"command": "pnpm install"}, True, id="an installer"),
        pytest.param("bash", {"command": "npx prettier --write ."}, True, id="a formatter"),
        pytest.param("bash", {"command": "bash tools/all.sh"}, True, id="a script"),
        pytest.param("Task", {"prompt": "Mend the rest."}, True, id="a sub-agent of Claude Code"),
        pytest.param("spawn_agent", {"message": "Mend it."}, True, id="a sub-agent of Codex"),
        pytest.param("mcp__tools__Agents", {"tasks": []}, True, id="a sub-agent of a server"),
        pytest.param("subagent", {"task": "Mend the rest."}, True, id="a sub-agent of pi"),
    ],
)
def test_files_are_not_listed_where_some_may_be_missing_or_gone(
    name: str, arguments: Json, listed: bool
) -> None:
    ran = assistant("", call("x1", name, **arguments)), result("x1", "exit code: 0")
    assert bool(found(with_messages(*ran), "files_changed")) == listed


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bash", {"command": "npm run build"}),
        ("bash", {"command": "cat importer/*.toml"}),
        ("rg", {"pattern": "row_limit"}),
        ("mcp__docs__search_code", {"query": "row_limit"}),
    ],
)
def test_files_are_listed_where_other_calls_only_look(name: str, arguments: Json) -> None:
    ran = assistant("", call("x1", name, **arguments)), result("x1", "exit code: 0")
    assert found(with_messages(*ran), "files_changed")


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


def test_a_pull_request_is_asked_for_if_it_and_no_other_comes_up_again() -> None:
    opened = (
        assistant("", call("x1", command="gh pr create --fill")),
        result("x1", "https://git.example.com/desk/importer/pull/318"),
    )
    again = assistant("It is #318.")
    assert not found(with_messages(*opened), "pull_request")
    (probe,) = found(with_messages(*opened, again), "pull_request")
    assert "#318" in probe.expected_facts[0].forms
    second = (
        assistant("", call("x2", command="tools/open-request")),
        result("x2", "https://git.example.com/desk/importer/pull/319"),
    )
    merged = assistant("", call("x3", command="gh pr merge 318")), result("x3", "merged")
    assert not found(with_messages(*opened, again, *second), "pull_request")
    assert not found(with_messages(*opened, again, *merged), "pull_request")


def test_a_task_list_that_is_only_in_the_tail_is_dropped_with_its_reason() -> None:
    todos = [{"content": "Write to the auditors", "status": "pending"}]
    harvest = with_messages(
        assistant("", call("x1", "TodoWrite", todos=todos)), result("x1", "saved"), at=story.CUT
    )
    dropped = [item for item in harvest.dropped if item.origin == "mechanical:tasks_open"]
    assert ["kept verbatim" in item.reasons[0] for item in dropped] == [True]
