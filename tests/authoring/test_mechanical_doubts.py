"""What is not asked without a model, since it has no answer or more than one."""

import pytest

from compression_eval.authoring.mechanical import mechanical
from compression_eval.fixtures.banks import Probe
from tests.authoring import story
from tests.fixtures.building import Json, assistant, call, result, system, user


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
        ([m for n in range(6) for m in turn(f"d{n}", "x", command=f"echo {n}")], False),
    ],
)
def test_a_task_list_is_stale_once_the_work_has_moved_on(later: list[Json], open_: bool) -> None:
    assert ("tasks_open" in asked(*todo("c1", "Raise the row limit"), *later)) is open_


@pytest.mark.parametrize(
    ("path", "name", "asked_for"),
    [
        ("limits/rows.py", "parse_rows", False),
        ("limits/reader.py", "parse_rows", True),
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
        (("write_file", {"content": "x = 1\n"}), False),
        (("edit_file", {"old_string": "    pass", "new_string": "    x = 1"}), True),
        (("edit_file", {"old_string": "class parse_rows:", "new_string": "class rows:"}), False),
        (("bash", {"command": "sed -i 's/parse_rows/rows/' limits/reader.py"}), False),
        (("bash", {"command": "cd limits && rm -rf old"}), True),
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


@pytest.mark.parametrize(
    ("path", "output", "work"),
    [
        ("/home/dev/shop/limits/rows.py", "created", True),
        ("/home/dev/.claude/plans/brave-heron.md", "created", False),
        ("/tmp/rows-probe.py", "created", False),  # noqa: S108
        ("/home/dev/shop/limits/columns.py", "?", False),  # nothing says that it was done
    ],
)
def test_plans_and_what_nothing_confirms_are_not_listed(path: str, output: str, work: bool) -> None:
    found = asked(*written("c1", "/home/dev/shop/limits/reader.py"), *written("c2", path, output))
    listed = found.get("files_changed", [])
    assert any(each in path for each in listed if "reader" not in each) is work


def test_an_edit_that_was_taken_back_makes_the_list_unsure() -> None:
    def edited(identifier: str, old: str, new: str) -> list[Json]:
        arguments = {"path": "config/app.py", "old_string": old, "new_string": new}
        return turn(identifier, "Edited config/app.py", "edit_file", **arguments)

    there, back = edited("c1", "LIMIT = 5", "LIMIT = 9"), edited("c2", "LIMIT = 9", "LIMIT = 5")
    assert "files_changed" in asked(*there)
    assert "files_changed" not in asked(*there, *back)
