"""Task lists in the forms of several agents."""

import pytest

from compression_eval.authoring.mechanical import latest_tasks
from compression_eval.file_ops.calls import Call
from tests.fixtures.building import Json

ONE = {"id": "a", "content": "One", "status": "pending"}
TWO = {"id": "b", "content": "Two", "status": "pending"}
DONE = {"status": "completed"}


def whole(message: int, *todos: Json, **arguments: object) -> Call:
    return Call(message, "todo", {"todos": list(todos), **arguments}, "ok")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("TodoWrite", {"todos": [{"content": "A b", "status": "in_progress"}]}),
        ("update_plan", {"plan": [{"step": "A b", "status": "in_progress"}], "explanation": "x"}),
        ("manage_todo_list", {"todoList": [{"title": "A b", "status": "in-progress"}]}),
        ("task_tracker", {"command": "plan", "task_list": [{"title": "A b", "status": "doing"}]}),
    ],
)
def test_a_whole_list_is_read(name: str, arguments: Json) -> None:
    tasks, messages = latest_tasks([Call(3, name, arguments, "ok")])
    assert [(task.text, task.done) for task in tasks] == [("A b", False)]
    assert messages == [3]


@pytest.mark.parametrize(
    ("calls", "states", "messages"),
    [
        pytest.param(
            [whole(1, ONE), whole(5, {**TWO, **DONE})],
            {"Two": "done"},
            [5],
            id="the latest list replaces the one before",
        ),
        pytest.param(
            [whole(1, ONE, TWO), whole(7, {**ONE, **DONE}, merge=True)],
            {"One": "done", "Two": "open"},
            [1, 7],
            id="entries are merged by id",
        ),
        pytest.param(
            [whole(1, ONE, TWO), whole(5, {"id": "b", **DONE}, merge=True)],
            {"One": "open", "Two": "done"},
            [1, 5],
            id="an update that names no text is still an update",
        ),
        pytest.param(
            [
                Call(1, "TaskCreate", {"subject": "One", "description": "x"}, "Task #1 created"),
                Call(1, "TaskCreate", {"subject": "Two", "description": "x"}, "Task #2 created"),
                Call(3, "TaskUpdate", {"taskId": "1", **DONE}, "ok"),
                Call(4, "TaskUpdate", {"taskId": "9", **DONE}, "ok"),
            ],
            {"One": "done", "Two": "open"},
            [1, 3],
            id="tasks are made and changed one by one",
        ),
        pytest.param([Call(1, "TodoWrite", {"todos": [None]}, "ok")], {}, [], id="no list"),
    ],
)
def test_what_calls_leave(calls: list[Call], states: dict[str, str], messages: list[int]) -> None:
    tasks, written = latest_tasks(calls)
    assert {task.text: "done" if task.done else "open" for task in tasks} == states
    assert written == messages
