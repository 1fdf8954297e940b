"""The arms of a report: what stands for one configuration, and which of them are controls."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from compression_eval.grading.six_dimensions import OVERALL

if TYPE_CHECKING:
    from pandas import DataFrame

Role = Literal["ceiling", "floor", ""]

_ROLES: dict[str, Role] = {"full": "ceiling", "none": "floor"}


@dataclass(frozen=True)
class Arm:
    """One configuration, with all its runs."""

    name: str
    compressor: str
    compressor_args: str
    """As JSON."""
    settings: str
    """The same for people, with what has a value."""
    role: Role
    model: str
    compressor_model: str
    graders: str
    """Who graded, with parameters where the log has them."""
    offline: bool
    """Whether no language model was involved."""
    self_graded: bool
    """Whether a model judged its own answers."""
    logs: list[str]
    epochs: int
    """Per log; the most of them."""
    samples: int
    scored: int
    token_counter: str


def arms_of(samples: "DataFrame") -> list[Arm]:
    """Return the arms, the highest overall score first; without any score last."""
    found = [_arm(str(name), rows) for name, rows in samples.groupby("arm", sort=False)]
    means = samples.groupby("arm")[OVERALL].mean()
    return sorted(found, key=lambda arm: (arm.scored == 0, -float(means[arm.name] or 0)))


def control(arms: list[Arm], role: Role, beside: Arm) -> Arm | None:
    """Return the control that was answered and graded by the same models; None if none was."""
    for arm in arms:
        alike = (arm.model, arm.graders) == (beside.model, beside.graders)
        if arm.role == role and alike and arm.scored:
            return arm
    return None


def _arm(name: str, rows: "DataFrame") -> Arm:
    compressor = _joined(rows["compressor"])
    offline = bool(rows["offline"].all()) or _embedded(rows)
    return Arm(
        name=name,
        compressor=compressor,
        compressor_args=_joined(rows["compressor_args"]),
        settings=_joined(rows["settings"]),
        role=_ROLES.get(compressor, ""),
        model=_joined(rows["model"]),
        compressor_model=_joined(rows["compressor_model"]),
        graders=_joined(rows["graded_by"].where(rows["graded_by"].astype(bool), rows["graders"])),
        offline=offline,
        self_graded=not offline and any(mark is True for mark in rows["self_graded"]),
        logs=list(dict.fromkeys(rows["log"])),
        epochs=int(rows.groupby("log_path")["epoch"].nunique().max()),
        samples=len(rows),
        scored=int(rows["scored"].sum()),
        token_counter=_joined(rows["token_counter"]),
    )


def _embedded(rows: "DataFrame") -> bool:
    """Return whether every model of every sample is an embedded one.

    A task that was made in Python could not know its models yet, so its log does not say it.
    """
    names = {
        name
        for column in ("model", "compressor_model", "graded_by")
        for cell in rows[column].dropna()
        for name in str(cell).split(", ")
        if name
    }
    return all(name.startswith("embedded/") for name in names)


def _joined(values: "object") -> str:
    """Return the distinct values of a column as text."""
    from pandas import Series

    column = values if isinstance(values, Series) else Series(values)
    return "; ".join(str(value) for value in dict.fromkeys(column.dropna()) if value != "")
