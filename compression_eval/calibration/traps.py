"""Which graders fall for which kind of answer."""

import functools
from collections.abc import Mapping
from importlib.resources import files

import yaml
from pydantic import ValidationError

from compression_eval.calibration.models import Kind, Traps
from compression_eval.fixtures.errors import DataError, describe_validation_error

_FILE = "traps.yaml"
_ROUNDING = 1e-9


@functools.cache
def traps() -> Traps:
    """Return the trap in each kind of answer.

    Raises:
        DataError: Its file is not what it must be.
    """
    content = yaml.safe_load((files(__package__) / _FILE).read_text(encoding="utf-8"))
    try:
        return Traps.model_validate(content)
    except ValidationError as error:
        raise DataError(describe_validation_error(_FILE, error)) from error


def sprung(kind: Kind, scores: Mapping[str, float], reference: Mapping[str, float]) -> bool | None:
    """Return whether a grader fell for the trap in an answer.

    Args:
        kind: What is special about the answer.
        scores: The grader's, 0 to 5, by criterion id; those without a value left out.
        reference: The careful reader's.

    Returns:
        None if the answer is no trap, or the grader gave no value where the trap aims.
    """
    trap = traps().traps[kind]
    if trap is None:
        return None
    sign = 1 if trap.direction == "up" else -1
    aimed = [name for name in trap.criteria if name in scores and name in reference]
    if not aimed:
        return None
    return any(
        sign * (scores[name] - reference[name]) >= traps().off_by - _ROUNDING for name in aimed
    )
