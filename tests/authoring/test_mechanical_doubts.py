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


@pytest.mark.parametrize(
    ("second", "chosen"), [("Postgres", ["Postgres"]), ("MariaDB", None)], ids=["same", "other"]
)
def test_a_question_that_was_put_twice_has_one_answer(
    second: str, chosen: list[str] | None
) -> None:
    question = {"question": ASKED, "options": [{"label": "Postgres"}, {"label": "MariaDB"}]}
    found = asked(
        *turn("c1", f'"{ASKED}"="Postgres"', "AskUserQuestion", questions=[question]),
        *turn("c2", f'"{ASKED}"="{second}"', "AskUserQuestion", questions=[question]),
    )
    assert found.get("option_chosen") == chosen


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


def todo(identifier: str, *tasks: str) -> list[Json]:
    todos = [{"content": task, "status": "pending"} for task in tasks]
    return turn(identifier, "saved", "TodoWrite", todos=todos)


@pytest.mark.parametrize(
    ("later", "open_"),
    [
        ([user("go on")], True),
        ([user("Leave that; the nightly export is broken.")], False),
        (turn("c2", "[main 4f3c2a1] Raise it", command="git commit -am 'Raise it'"), False),
        ([m for n in range(16) for m in turn(f"d{n}", "x", command=f"echo {n}")], False),
    ],
)
def test_a_task_list_is_stale_once_the_work_has_moved_on(later: list[Json], open_: bool) -> None:
    assert ("tasks_open" in asked(*todo("c1", "Raise the row limit"), *later)) is open_


REQUEST = "Compare the two drafts that lie in this folder, please."


@pytest.mark.parametrize("injected", [False, True])
def test_nobody_is_said_to_have_written_what_the_agent_put_in(injected: bool) -> None:
    said = "Look at the way in which limits are kept in this large service. It is in limits/rows.py"
    message = {
        **user(f"Hello again. {said}; use `ruff_lint` instead of `old_lint`."),
        "injected": injected,
    }
    read = turn("c1", "rows", "read_file", path="limits/rows.py")
    found = asked(message, *read, user(REQUEST))
    assert ("user_instead" in found) is not injected
    assert ("user_files" in found) is not injected


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("Please use `orjson` instead of `ujson` there.", ["orjson"]),
        ("Rename `row_limit` to `max_rows`, please.", ["max_rows"]),
        ("Use orjson instead of ujson. No: use simplejson instead of ujson.", None),
        ("Please use this instead of that.", None),
        ("Do it well instead of fast.", None),
    ],
)
def test_what_the_user_wants_instead(said: str, wanted: list[str] | None) -> None:
    assert asked(user(said)).get("user_instead") == wanted


@pytest.mark.parametrize(
    ("path", "name", "asked_for"),
    [
        ("limits/rows.py", "parse_rows", False),
        ("limits/reader.py", "parse_rows", True),
        ("limits/main.py", "parse_rows", False),
        ("tests/test_rows.py", "RowsTest", False),
    ],
)
def test_a_file_whose_name_can_be_guessed_is_not_asked_for(
    path: str, name: str, asked_for: bool
) -> None:
    other = turn("c0", "created", "write_file", path="limits/other.py", content="x = 1\n")
    content = f"class {name}:\n    pass\n"
    made = turn("c1", "created", "write_file", path=path, content=content)
    assert (asked(*other, *made).get("file_defines") == [path]) is asked_for


def test_functions_are_added_only_while_they_are_there() -> None:
    def edit(identifier: str, old: str, new: str) -> list[Json]:
        arguments = {"path": "limits/rows.py", "old_string": old, "new_string": new}
        return turn(identifier, "Edited limits/rows.py", "edit_file", **arguments)

    first, second = "def first_row(x):\n    pass\n", "def last_row(x):\n    pass\n"
    added = edit("c1", "x = 1\n", f"x = 1\n{first}{second}")
    assert asked(*added)["names_added"] == ["first_row", "last_row"]
    assert asked(*added, *edit("c2", second, ""))["names_added"] == ["first_row"]
    swapped = asked(*edit("c1", first, second))
    assert swapped["names_added"] == ["last_row"]
    assert swapped["names_removed"] == ["first_row"]
    quoted = edit("c1", "x = 1\n", f'x = """\n{first}"""\n{second}')
    assert asked(*quoted)["names_added"] == ["last_row"]
    assert "names_added" not in asked(*added, *turn("c2", "", command="sed -i d limits/rows.py"))


def test_a_name_that_an_edit_replaced() -> None:
    arguments = {"old_string": "fetch_rows(fetch_rows)", "new_string": "load_rows(load_rows)"}
    replaced = turn("c1", "Edited limits/x.py", "edit_file", path="limits/x.py", **arguments)
    assert asked(*replaced)["name_changed"] == ["load_rows"]


def test_tests_that_failed_and_what_a_linter_found() -> None:
    output = (
        "tests/test_rows.py:4: error\nFAILED tests/test_rows.py::test_limits - assert 3 == 4\n"
        "1 failed, 2 passed in 0.2s\nexit code: 1"
    )
    lint = "limits/rows.py:4:1: F401 unused\nlimits/x.py:9:2: E741 name\nexit code: 1"
    found = asked(
        *turn("c1", output, command="python -m pytest tests"),
        *turn("c2", lint, command="mise run lint"),
    )
    assert found["tests_failed_one"] == ["tests/test_rows.py::test_limits"]
    assert found["found_in"] == ["limits/rows.py", "limits/x.py"]
    assert found["found_rules"] == ["F401", "E741"]
    assert found["command_linter"] == ["mise run lint"]
    assert "command_tests" not in found  # anybody would try pytest
    marked = "Usage\n  ✗ not allowed here\nexit code: 1"
    assert "tests_failed_one" not in asked(*turn("c1", marked, command="limits --help"))


@pytest.mark.parametrize(
    ("command", "template", "fact"),
    [
        ("pip install -q orjson", "packages", "orjson"),
        ("git checkout -b rows/limits", "branch", "rows/limits"),
        ("curl -s http://localhost:8231/rows", "port", "8231"),
    ],
)
def test_what_one_command_tells(command: str, template: str, fact: str) -> None:
    assert asked(*turn("c1", "done", command=command))[template] == [fact]
    assert template not in asked(*turn("c1", "exit code: 1", command=command))


def test_a_search_that_was_made_once() -> None:
    hits = "limits/rows.py:4:parse_rows(x)\nlimits/x.py:9:parse_rows(y)"
    once = turn("c1", hits, "Grep", pattern="parse_rows")
    assert asked(*once)["searched"] == ["limits/rows.py", "limits/x.py"]
    again = turn("c2", hits, command="rg 'parse_rows|read_rows'")
    assert "searched" not in asked(*once, *again)


def test_files_are_asked_for_by_the_request_that_they_were_changed_for() -> None:
    def write(identifier: str, path: str) -> list[Json]:
        return turn(identifier, "created", "write_file", path=path, content="x = 1\n")

    found = asked(
        *write("c1", "limits/first.py"),
        user("Now the second half of it, if you like."),
        *write("c2", "limits/rows.py"),
        *write("c3", "limits/columns.py"),
        user(REQUEST),
    )
    assert found["turn_changed"] == ["limits/rows.py", "limits/columns.py"]
    assert found["files_created"] == ["limits/first.py", "limits/rows.py", "limits/columns.py"]


def test_a_session_in_which_nobody_typed_anything() -> None:
    messages = [{**user("Stop hook feedback: go on."), "injected": True}, *EDITED, assistant("Yes")]
    history = story.history(messages=messages, cuts=[len(messages)], cut=len(messages))
    assert [c.template for c in mechanical(history).candidates] == [
        "files_modified",
        "value_set",
    ]
