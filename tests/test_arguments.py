"""One model describes the task's arguments; everything else that names them agrees with it."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import compression_eval
import tasks.compression
from compression_eval.arguments import TaskArguments, choices


def literals(annotation: Any) -> list[str]:
    return sorted(choices(annotation))


@pytest.mark.parametrize("door", [compression_eval.compression, tasks.compression.compression])
def test_a_front_door_has_the_arguments_of_the_model(door: Callable[..., Any]) -> None:
    parameters = dict(inspect.signature(door).parameters)
    assert parameters.pop("unknown").kind is inspect.Parameter.VAR_KEYWORD
    fields = TaskArguments.model_fields
    assert list(parameters) == list(fields)
    docstring = inspect.getdoc(door) or ""
    described = dict(re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", docstring, re.MULTILINE))
    for name, field in fields.items():
        assert parameters[name].default == field.default
        assert literals(parameters[name].annotation) == literals(field.annotation)
        assert " ".join(described[name].split()) == " ".join(str(field.description).split())
