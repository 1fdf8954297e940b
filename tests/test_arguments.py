"""One model describes the task's arguments; everything else that names them agrees with it."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import compression_eval
import tasks.compression
import tasks.grader_calibration
import tasks.resumption
from compression_eval.arguments import NOT_OF_CONTROLS, TaskArguments, choices
from compression_eval.calibration.task import grader_calibration as packaged_calibration
from compression_eval.resumption.task import resumption as packaged_resumption


def literals(annotation: Any) -> list[str]:
    return sorted(choices(annotation))


@pytest.mark.parametrize("door", [compression_eval.compression, tasks.compression.compression])
def test_a_front_door_has_the_arguments_of_the_model(door: Callable[..., Any]) -> None:
    parameters = dict(inspect.signature(door).parameters)
    assert parameters.pop("unknown").kind is inspect.Parameter.VAR_KEYWORD
    fields = TaskArguments.model_fields
    assert list(parameters) == list(fields)
    for name, field in fields.items():
        assert parameters[name].default == field.default
        assert literals(parameters[name].annotation) == literals(field.annotation)
        assert field.description


def test_controls_are_asked_what_their_arm_was_asked_and_graded_alike() -> None:
    fields = TaskArguments.model_fields.items()
    shared = {name for name, field in fields if NOT_OF_CONTROLS not in field.metadata}
    assert shared >= {"fixtures", "probes", "probe_types", "shard", "cut", "criteria"}
    assert shared >= {"grader_context", "language"}
    assert shared.isdisjoint({"compressor", "compressor_args", "prompt", "focus_topic", "answers"})


@pytest.mark.parametrize(
    ("door", "packaged"),
    [
        (tasks.grader_calibration.grader_calibration, packaged_calibration),
        (tasks.resumption.resumption, packaged_resumption),
    ],
)
def test_a_front_door_is_that_of_the_package(
    door: Callable[..., Any], packaged: Callable[..., Any]
) -> None:
    def parameters(task: Callable[..., Any]) -> list[Any]:
        return [
            (each.name, each.kind, each.default, literals(each.annotation))
            for each in inspect.signature(task).parameters.values()
        ]

    assert parameters(door) == parameters(packaged)
