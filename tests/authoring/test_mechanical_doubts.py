"""What is not asked without a model, since it has no answer or more than one."""

import pytest

from compression_eval.authoring.mechanical import mechanical
from tests.authoring import story
from tests.fixtures.building import Json, assistant, call, result, system, user

ASKED = "Which database shall we use for this?"


def asked(*more: Json) -> dict[str, list[str]]:
    """Return template and facts of what is asked about a session of these messages."""
    messages = [
        system(),
        user("Please look after the settings of this server, and nothing else."),
        *more,
        assistant("Only the weather is left to talk about now, and it is fine."),
        user("Thank you."),
    ]
    harvest = mechanical(story.history(messages=messages, cuts=[len(messages)], cut=len(messages)))
    return {c.template: [item.fact for item in c.probe.expected_facts] for c in harvest.candidates}


def turn(identifier: str, output: str, name: str = "bash", **arguments: object) -> list[Json]:
    return [assistant("", call(identifier, name, **arguments)), result(identifier, output)]


EDITED = turn(
    "c1",
    "Edited config/app.py",
    "edit_file",
    path="config/app.py",
    old_string="TIMEOUT_S = 500",
    new_string="TIMEOUT_S = 900",
)


def test_a_value_is_asked_while_only_edits_follow() -> None:
    other = {"old_string": "RETRIES = 101", "new_string": "RETRIES = 202"}
    later = turn("c2", "Edited config/app.py", "edit_file", path="config/app.py", **other)
    assert asked(*EDITED)["value_set"] == ["TIMEOUT_S = 900"]
    assert "value_set" in asked(*EDITED, *later)


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -- config/app.py",
        "git restore config/app.py",
        "git reset --hard",
        "rm config/app.py",
        "mv config/app.py config/old.py",
        "sed -i 's/900/1200/' config/app.py",
    ],
)
def test_a_value_that_a_command_may_have_changed_is_not_asked(command: str) -> None:
    assert "value_set" not in asked(*EDITED, *turn("c2", "", command=command))


@pytest.mark.parametrize(
    ("command", "listed"),
    [("git checkout -- config/app.py", False), ("git diff config/app.py", True)],
)
def test_files_that_git_put_back_make_no_list_of_changed_ones(command: str, listed: bool) -> None:
    assert ("files_modified" in asked(*EDITED, *turn("c2", "", command=command))) is listed


TRACEBACK = "Traceback (most recent call last):\n  ...\n"


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (f"{TRACEBACK}KeyError: 'delivery_note'\nexit code: 1", ["KeyError", "delivery_note"]),
        (f"{TRACEBACK}KeyError: 'note'\n\n{TRACEBACK}TypeError: bad operand\nexit code: 1", None),
        (
            f"{TRACEBACK}KeyError: 'note'\n\nDuring handling of the above exception, another "
            f"exception occurred:\n\n{TRACEBACK}LookupError: no such thing\nexit code: 1",
            ["LookupError", "no such thing"],
        ),
        ("a.py:1: error: Name 'alpha' is not defined\nexit code: 1", ["alpha"]),
        (
            "a.py:1: error: Name 'alpha' is not defined\n"
            "b.py:2: error: Name 'beta' is not defined\nexit code: 1",
            None,
        ),
    ],
)
def test_an_error_is_asked_for_only_where_there_is_one(
    output: str, error: list[str] | None
) -> None:
    assert asked(*turn("c1", output, command="python run.py")).get("command_error") == error


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        (f'User has answered: "{ASKED}"="Postgres". Go on.', ["Postgres"]),
        ('{"answers": {"q1": {"answers": ["Postgres"]}}}', ["Postgres"]),
        ("The user chose: Postgres", ["Postgres"]),
        (
            f'{{"question": "{ASKED}", "choices_offered": ["Postgres", "MariaDB"], '
            '"user_response": "MariaDB"}',
            ["MariaDB"],
        ),
        (f'User has answered: "{ASKED}"="Not Postgres, use DuckDB". Go on.', None),
        ("There was no answer; one of the options was Postgres", None),
    ],
)
def test_an_option_counts_if_it_stands_for_itself(said: str, chosen: list[str] | None) -> None:
    options = [{"label": "Postgres"}, {"label": "MariaDB"}]
    question = {"question": ASKED, "options": options}
    found = asked(*turn("c1", said, "AskUserQuestion", questions=[question]))
    assert found.get("option_chosen") == chosen


def test_an_answer_to_one_of_several_questions_is_not_taken_for_another() -> None:
    options = [{"label": "Postgres"}, {"label": "MariaDB"}]
    questions = [
        {"question": ASKED, "options": options},
        {"question": "And which one for the tests?", "options": options},
    ]
    said = '{"answers": {"q1": {"answers": ["neither"]}, "q2": {"answers": ["MariaDB"]}}}'
    assert "option_chosen" not in asked(
        *turn("c1", said, "request_user_input", questions=questions)
    )


def test_a_task_list_that_was_refused_does_not_count() -> None:
    kept, refused = (
        [{"content": text, "status": "pending"}]
        for text in ("Raise the row limit", "Wipe everything away")
    )
    messages = [
        *turn("c1", "The list was saved.", "TodoWrite", todos=kept),
        *turn("c2", "<tool_use_error>bad input</tool_use_error>", "TodoWrite", todos=refused),
    ]
    assert asked(*messages)["tasks_open"] == ["Raise the row limit"]
