"""What is asked without a model, about a session in which everything happens once."""

import pytest

from compression_eval.authoring.history import Harvest
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
        "files_changed": ["importer/rows.py", "tests/test_notes.py"],
        "last_commit": ["Keep rows without a note"],
    }
    assert all(c.probe.origin == f"mechanical:{c.template}" for c in harvest.candidates)
    assert {c.probe.type for c in harvest.candidates} == {"recall", "artifact", "continuation"}


@pytest.mark.parametrize(("language", "word"), [("zh", "哪些"), ("ja", "ですか")])
def test_questions_are_in_the_language_of_the_session(language: Language, word: str) -> None:
    harvest = mechanical(story.history(language=language))
    assert len(harvest.candidates) == 3
    assert any(word in c.probe.question for c in harvest.candidates)


@pytest.mark.parametrize(
    ("name", "arguments", "listed"),
    [
        pytest.param("bash", {"command": 'rm "$OLD"'}, False, id="a name from a variable"),
        pytest.param(
            "bash", {"command": 'git mv "$OLD" importer/new.py'}, False, id="moved by git"
        ),
        pytest.param("mcp__tools__apply", {"text": "x"}, False, id="an unknown tool"),
        pytest.param("bash", {"command": "node -e 'console.log(1)'"}, True, id="code that looks"),
        pytest.param("Task", {"prompt": "Mend the rest."}, True, id="a sub-agent of Claude Code"),
    ],
)
def test_files_are_not_listed_where_some_may_be_missing_or_gone(
    name: str, arguments: Json, listed: bool
) -> None:
    ran = assistant("", call("x1", name, **arguments)), result("x1", "exit code: 0")
    assert bool(found(with_messages(*ran), "files_changed")) == listed
