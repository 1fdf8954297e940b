"""What is not asked without a model, since it has no answer or more than one."""

import json
import time

import pytest

from compression_eval.authoring.mechanical import mechanical
from compression_eval.authoring.mechanical_files import about_files
from compression_eval.fixtures.banks import Probe
from tests.authoring import story
from tests.fixtures.building import Json, assistant, call, result, system, user

ASKED = "Which database shall `load_rows` use?"


def probes(*more: Json) -> list[Probe]:
    """Return what is asked about a session of these messages."""
    messages = [
        system(),
        user("Please look after the settings of this server, and nothing else."),
        *more,
        assistant("Only the weather is left to talk about now, and it is fine."),
        user("Thank you."),
    ]
    harvest = mechanical(story.history(messages=messages, cuts=[len(messages)], cut=len(messages)))
    return [c.probe for c in harvest.candidates]


def asked(*more: Json) -> dict[str, list[str]]:
    """Return kind and facts of what is asked."""
    return {
        probe.origin.removeprefix("mechanical:"): [item.fact for item in probe.expected_facts]
        for probe in probes(*more)
    }


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
        (f"{ASKED} -> MariaDB (Recommended)", ["MariaDB"]),
    ],
)
def test_an_option_counts_if_it_stands_for_itself(said: str, chosen: list[str] | None) -> None:
    maria = "MariaDB (Recommended)" if "Recommended" in said else "MariaDB"
    question = {"question": ASKED, "options": [{"label": "Postgres"}, {"label": maria}]}
    found = asked(*turn("c1", said, "mcp__tools__ask", questions=[question]))
    assert found.get("option_chosen") == chosen


@pytest.mark.parametrize(
    ("question", "label", "later", "kept"),
    [
        (ASKED, "Postgres", "ls", True),
        (ASKED, "Postgres", "git push origin main", False),
        (ASKED, "Postgres", "gh pr merge 7", False),
        (ASKED, "Yes, that one", "ls", False),
        (ASKED, "Override: this session", "ls", False),
        ("How shall we go about the fix?", "Postgres", "ls", False),
    ],
)
def test_a_choice_has_to_be_in_force_and_to_say_something_by_itself(
    question: str, label: str, later: str, kept: bool
) -> None:
    put = {"question": question, "options": [{"label": label}, {"label": "MariaDB"}]}
    said = f'User has answered: "{question}"="{label}". Go on.'
    found = asked(*turn("c1", said, "ask", questions=[put]), *turn("c2", "ok", command=later))
    assert ("option_chosen" in found) is kept


def test_a_question_about_one_step_is_used_up_with_it() -> None:
    question = {"question": "Shall I commit this now?", "options": [{"label": "Amend it"}, "No"]}
    said = 'User has answered: "Shall I commit this now?"="Amend it". Go on.'
    assert "option_chosen" not in asked(*turn("c1", said, "ask", questions=[question]))


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


def test_the_bare_name_of_a_file_is_not_a_task() -> None:
    todos = [{"content": "Pin orjson_fast in package.json", "status": "pending"}]
    (probe,) = probes(*turn("c1", "saved", "TodoWrite", todos=todos))
    assert probe.expected_facts[0].any_of == ["orjson_fast"]


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


@pytest.mark.parametrize(
    ("path", "name", "asked_for"),
    [
        ("limits/rows.py", "parse_rows", False),
        ("limits/all_parsers.py", "parse_rows", False),
        ("limits/schemas.py", "parse_rows", False),
        ("limits/reader.py", "parse_rows", True),
        ("limits/main.py", "parse_rows", False),
        ("tests/test_reader.py", "parse_rows", False),
        ("limits/reader.py", "unused_rows", False),
    ],
)
def test_where_a_definition_stands_is_asked_if_it_is_used_and_cannot_be_guessed(
    path: str, name: str, asked_for: bool
) -> None:
    other = turn("c0", "created", "write_file", path="limits/other.py", content="x = 1\n")
    made = turn("c1", "created", "write_file", path=path, content=f"class {name}:\n    pass\n")
    used = turn("c2", "3", command="python -c 'parse_rows()'")
    assert (asked(*other, *made, *used).get("file_defines") == [path]) is asked_for


@pytest.mark.parametrize(
    ("later", "asked_for"),
    [
        (("write_file", {"content": "class parse_rows:\n    x = 1\n"}), True),
        (("write_file", {"content": "x = 1\n"}), False),
        (("edit_file", {"old_string": "    pass", "new_string": "    x = 1"}), True),
        (("edit_file", {"old_string": "class parse_rows:", "new_string": "class rows:"}), False),
        (("bash", {"command": "sed -i 's/parse_rows/rows/' limits/reader.py"}), False),
        (("bash", {"command": 'git mv limits "$NEW"'}), False),
        (("bash", {"command": "cd limits && rm -rf old"}), True),
        (("bash", {"command": "git stash"}), False),
        (("bash", {"command": "ls; git -C limits status | git restore -- x.py"}), True),
        (("bash", {"command": "ls; git -C limits checkout main -- . | cat"}), False),
        (("bash", {"command": "echo " + "x" * 19_000}), True),
        (("bash", {"command": "echo " + "x" * 20_000 + "; rm limits/reader.py"}), False),
    ],
)
def test_a_definition_has_to_be_where_it_was_written(
    later: tuple[str, Json], asked_for: bool
) -> None:
    path = "limits/reader.py"
    made = turn("c1", "created", "write_file", path=path, content="class parse_rows:\n    pass\n")
    used = turn("c2", "3", command="python -c 'parse_rows()'")
    name, arguments = later
    changed = turn("c3", "Updated", name, **({} if name == "bash" else {"path": path}), **arguments)
    assert ("file_defines" in asked(*made, *used, *changed)) is asked_for


def test_long_sessions_and_command_lines_take_linear_time() -> None:
    writes = (m for n in range(100) for m in written(f"w{n}", f"limits/rows{n % 8}.py"))
    looks = (m for n in range(1_500) for m in turn(f"l{n}", "ok", command="ls; " + "ls a " * 50))
    hostile = (m for n in range(8) for m in turn(f"h{n}", "ok", command="git " * 4_900))
    messages = [system(), user(REQUEST), *writes, *looks, *hostile]
    history = story.history(messages=messages, cuts=[len(messages)], cut=len(messages))
    assert history.inventory.states
    started = time.process_time()
    list(about_files(history))
    assert time.process_time() - started < 2  # a third of a second; many where it is quadratic


def test_files_outside_of_the_project_are_nobodys_question() -> None:
    def facts(*paths: str) -> list[str] | None:
        made = (m for n, path in enumerate(paths) for m in written(f"c{n}", path))
        return asked(*made).get("files_changed")

    assert facts("/home/dev/.zshrc", "/home/dev/notes.md", "/home/dev/shop/rows.py") == [
        "/home/dev/shop/rows.py"
    ]
    assert facts("/home/dev/shop/a/rows.py", "/home/dev/shop/b/x.py") == ["a/rows.py", "b/x.py"]


def test_an_absolute_path_may_be_given_from_the_project_on() -> None:
    (probe,) = probes(*written("c1", "/home/dev/shop/limits/rows.py"))
    assert {"limits/rows.py", "shop/limits/rows.py"} <= set(probe.expected_facts[0].any_of)


PYTEST = "nix run .#check-tests"


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        (PYTEST, "=== 12 passed in 0.2s ===\nexit code: 0", {"test_counts": ["12 passed"]}),
        (PYTEST, "=== 12 passed in 0.2s ===\nexit code: 1", {}),
        (PYTEST, "=== 12 passed in 0.2s ===", {}),  # nothing else says so
        (f"cd x && {PYTEST}", "12 passed in 0.2s\nexit code: 0", {"test_counts": ["12 passed"]}),
        (f"{PYTEST}; {PYTEST}", "12 passed in 0.2s\nexit code: 0", {}),
        (f"cat a.log # {PYTEST}", "12 passed in 0.2s\nexit code: 0", {}),
        (
            PYTEST,
            "FAILED tests/test_x.py::test_limits - x\n1 failed, 2 passed in 0.2s\nexit code: 1",
            {"check_failing": [PYTEST, "tests/test_x.py::test_limits"]},
        ),
        (PYTEST, "Found 8 error events\n12 passed\nexit code: 0", {}),
        ("npx eslint src", "✖ 3 problems (3 errors, 0 warnings)\nexit code: 1",
         {"check_failing": ["npx eslint src", "3 failed"]}),
    ],
)  # fmt: skip
def test_what_a_check_found_counts_if_its_exit_code_agrees(
    command: str, output: str, expected: dict[str, list[str]]
) -> None:
    assert asked(*turn("c1", output, command=command)) == expected


def test_a_count_that_the_agent_repeats_counts_and_a_later_run_takes_it_back() -> None:
    ran = turn("c1", "12 passed in 0.2s", command=f"{PYTEST} | tail -3")
    said = assistant("All 12 pass.")
    assert asked(*ran, said)["test_counts"] == ["12 passed"]
    assert "test_counts" not in asked(*ran, said, *turn("c2", "?", command=f"time {PYTEST} | wc"))


def test_the_command_of_the_tests_is_asked_if_there_is_one_that_nobody_would_guess() -> None:
    def runs(*commands: str) -> dict[str, list[str]]:
        each = [turn(f"c{n}", "12 passed in 0.2s", command=c) for n, c in enumerate(commands)]
        return asked(*(message for messages in each for message in messages))

    assert runs(PYTEST, f"{PYTEST} --all")["command_tests"] == [PYTEST]
    assert "command_tests" not in runs(PYTEST)
    assert "command_tests" not in runs(PYTEST, "make test")
    assert "command_tests" not in runs("python -m pytest", "python -m pytest")


def test_a_branch_is_asked_if_git_names_it_again_and_nothing_left_it() -> None:
    made = turn("c1", "Switched to a new branch 'x'", command="git checkout -b rows/limits")
    again = turn("c2", "On branch rows/limits\nnothing to commit", command="git status")
    assert asked(*made, *again)["branch"] == ["rows/limits"]
    assert "branch" not in asked(*again)
    for left in ("git checkout -", "git -C ../shop worktree add x", "gh pr merge 7 --squash"):
        assert "branch" not in asked(*made, *again, *turn("c3", "", command=left))
    assert "branch" not in asked(*again, *turn("c3", "On branch main", command="git status"))


def commit(identifier: str, subject: str, told: str = "") -> list[Json]:
    output = f"[main 4f3c2a{identifier[-1]}] {told or subject}"
    return turn(identifier, output, command=f"git commit -m '{subject}'")


def test_commits_are_asked_for_if_the_command_and_git_say_the_same() -> None:
    first, second = commit("c1", "Add row limits"), commit("c2", "Check the limits")
    found = asked(*first, *second)
    assert found["last_commit"] == ["Check the limits"]
    assert found["commits"] == ["Add row limits", "Check the limits"]
    unclear = asked(*first, *commit("c2", "Check the limits", "Another subject"))
    assert not {"last_commit", "commits"} & unclear.keys()
    reset = asked(*first, *second, *turn("c3", "", command="git reset --hard HEAD~1"))
    assert not {"last_commit", "commits"} & reset.keys()


def written(identifier: str, path: str, output: str = "created") -> list[Json]:
    return turn(identifier, output, "write_file", path=path, content="x = 1\n")


def test_of_many_files_those_of_a_folder_are_asked_for() -> None:
    paths = [f"limits/part{n}.py" for n in range(3)] + [f"d{n}/x{n}.py" for n in range(6)]
    found = asked(*(m for n, path in enumerate(paths) for m in written(f"c{n}", path)))
    assert found == {"folder_changed": paths[:3]}


@pytest.mark.parametrize(
    ("path", "output", "work"),
    [
        ("/home/dev/shop/limits/rows.py", "created", True),
        ("/home/dev/.claude/plans/brave-heron.md", "created", False),
        ("/tmp/rows-probe.py", "created", False),  # noqa: S108
        ("/home/dev/shop/limits/columns.py", "?", False),  # nothing says that it was done
    ],
)
def test_plans_and_what_nothing_confirms_are_not_still_to_commit(
    path: str, output: str, work: bool
) -> None:
    found = asked(*commit("c1", "Add row limits"), *written("c2", path, output))
    assert ("uncommitted" in found) is work


def test_windows_paths_are_those_of_the_project() -> None:
    def made(n: int, name: str) -> list[Json]:
        path = f"C:\\Users\\dev\\shop\\limits\\{name}"
        return written(f"c{n}", path, f"File created successfully at: {path}")

    plan = written("c9", "C:\\Users\\dev\\.claude\\plans\\x-heron.md")
    entered = turn("c8", "", command="cd /c/Users/dev/shop && ls")
    found = asked(*entered, *made(1, "rows.py"), *made(2, "columns.py"), *plan)
    assert found["files_changed"] == ["limits/rows.py", "limits/columns.py"]


def test_scripts_of_code_mode_are_the_call_that_they_make() -> None:
    patch = "*** Begin Patch\n*** Add File: /home/dev/shop/limits/rows.py\n+x = 1\n*** End Patch"
    scripts = [
        f"const patch = {json.dumps(patch)};\ntext(await tools.apply_patch(patch));",
        f"const r = await tools.exec_command({{cmd:{json.dumps(PYTEST)},workdir:'x'}});",
    ]
    outputs = ["{}", "12 passed in 0.2s\nexit code: 0"]
    calls = [
        turn(f"c{n}", f"Script completed\nWall time 0.1 seconds\nOutput:\n\n{output}", "exec",
             input=script)
        for n, (script, output) in enumerate(zip(scripts, outputs, strict=True))
    ]  # fmt: skip
    assert asked(*calls[0])["files_changed"] == ["/home/dev/shop/limits/rows.py"]
    assert asked(*calls[1])["test_counts"] == ["12 passed"]
    unread = turn("c3", "{}", "exec", input="text(await tools.apply_patch(patch + more));")
    assert "files_changed" not in asked(*calls[0], *unread)


def test_few_of_a_kind_are_asked() -> None:
    questions = [
        {"question": f"Which limit shall `table_{n}` have?", "options": ["low mark", "high mark"]}
        for n in range(9)
    ]
    said = ", ".join(f'"{q["question"]}"="high mark"' for q in questions)
    history = story.history(
        messages=[system(), user(REQUEST), *turn("c1", said, "ask", questions=questions),
                  *turn("c2", "x " * 400, command="ls")],
        cut=6, cuts=[6],
    )  # fmt: skip
    assert [c.template for c in mechanical(history).candidates] == ["option_chosen"] * 4


def test_a_session_in_which_nobody_typed_anything() -> None:
    messages = [
        {**user("Stop hook feedback: go on."), "injected": True},
        *EDITED,
        assistant("Only the weather is left to talk about now, and it is fine, all day."),
        assistant("Yes"),
    ]
    history = story.history(messages=messages, cuts=[len(messages)], cut=len(messages))
    assert [c.template for c in mechanical(history).candidates] == ["files_changed"]
