"""One model describes the task's arguments; everything else that names them agrees with it."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import compression_eval
import tasks.compression
from compression_eval.arguments import TaskArguments, choices
from compression_eval.compressors.spec import documented


def literals(annotation: Any) -> list[str]:
    return sorted(choices(annotation))


@pytest.mark.parametrize("door", [compression_eval.compression, tasks.compression.compression])
def test_a_front_door_has_the_arguments_of_the_model(door: Callable[..., Any]) -> None:
    parameters = dict(inspect.signature(door).parameters)
    assert parameters.pop("unknown").kind is inspect.Parameter.VAR_KEYWORD
    fields = TaskArguments.model_fields
    assert list(parameters) == list(fields)
    described = documented(inspect.getdoc(door) or "")
    for name, field in fields.items():
        assert parameters[name].default == field.default
        assert literals(parameters[name].annotation) == literals(field.annotation)
        assert described[name] == " ".join(str(field.description).split())
