"""Task lists in the forms of several agents."""

import pytest

from compression_eval.authoring.task_lists import latest_tasks
from compression_eval.fixtures.artifacts.events import Call
from tests.fixtures.building import Json


def states(*calls: Call) -> dict[str, str]:
    found = latest_tasks(list(calls))
    assert found is not None
    return {task.text: task.state for task in found.tasks}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("TodoWrite", {"todos": [{"content": "A b", "status": "in_progress"}]}),
        ("update_plan", {"plan": [{"step": "A b", "status": "in_progress"}], "explanation": "x"}),
        ("todo", {"todos": [{"id": "1", "content": "A b", "status": "in_progress"}]}),
        ("manage_todo_list", {"todoList": [{"title": "A b", "status": "in-progress"}]}),
        ("task_tracker", {"command": "plan", "task_list": [{"title": "A b", "status": "doing"}]}),
    ],
)
def test_a_whole_list_is_read(name: str, arguments: Json) -> None:
    assert states(Call(3, name, arguments, "ok")) == {"A b": "current"}


def test_the_latest_list_replaces_the_one_before() -> None:
    first = Call(1, "update_plan", {"plan": [{"step": "One", "status": "pending"}]})
    second = Call(5, "update_plan", {"plan": [{"step": "Two", "status": "completed"}]})
    assert states(first, second) == {"Two": "done"}


def test_entries_are_merged_by_id() -> None:
    first = Call(
        1,
        "todo",
        {
            "todos": [
                {"id": "a", "content": "One", "status": "pending"},
                {"id": "b", "content": "Two", "status": "pending"},
            ]
        },
    )
    second = Call(5, "todo", {"todos": [{"id": "b", "status": "completed"}], "merge": True})
    third = Call(
        7, "todo", {"todos": [{"id": "a", "content": "One", "status": "done"}], "merge": True}
    )
    assert states(first, third) == {"One": "done", "Two": "open"}
    # An update that names no text is still an update.
    assert states(first, second, third) == {"One": "done", "Two": "done"}


def test_tasks_are_made_and_changed_one_by_one() -> None:
    calls = [
        Call(1, "TaskCreate", {"subject": "One", "description": "long"}, "Task #1 created"),
        Call(1, "TaskCreate", {"subject": "Two", "description": "long"}, "Task #2 created"),
        Call(3, "TaskUpdate", {"taskId": "1", "status": "completed"}, "ok"),
    ]
    assert states(*calls) == {"One": "done", "Two": "open"}
    found = latest_tasks(calls)
    assert found is not None
    assert found.messages == (1, 3)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"todos": []},
        {"todos": "none"},
        {"todos": [{"content": "A", "status": "strange"}]},
        {"todos": [{"content": 7, "status": "pending"}]},
        {"files": [{"path": "a.py"}]},
        {"todos": [None]},
    ],
)
def test_other_arguments_are_no_list(arguments: Json) -> None:
    assert latest_tasks([Call(1, "TodoWrite", arguments, "ok")]) is None
