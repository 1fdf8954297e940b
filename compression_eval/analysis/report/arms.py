"""The arms of a report: what stands for one configuration, and which of them are controls."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from compression_eval.analysis.comparison.measures import values
from compression_eval.grading.rubric import KNOWLEDGE

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
    models: str = ""
    """The model under test and the graders with all their settings."""

    @property
    def failed(self) -> str:
        """How many samples have no score, of all; empty if every sample has one."""
        missing = self.samples - self.scored
        return f"{missing} of {self.samples} failed" if missing else ""


def arms_of(samples: "DataFrame", beside: "DataFrame") -> list[Arm]:
    """Return the arms, the highest leading score first; without any score last.

    Args:
        samples: Of all arms.
        beside: Those by which arms are held beside one another, as from `scores.common`.
    """
    found = [_arm(str(name), rows) for name, rows in samples.groupby("arm", sort=False)]
    means = {str(name): values(rows, KNOWLEDGE).mean() for name, rows in beside.groupby("arm")}
    return sorted(found, key=lambda arm: (arm.scored == 0, -means.get(arm.name, 0.0)))


def control(arms: list[Arm], role: Role, beside: Arm) -> Arm | None:
    """Return the control that was answered and graded by the same models; None if none was."""
    for arm in arms:
        alike = arm.models == beside.models
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
        models=f"{_joined(rows['answered_by'])}; {_joined(rows['graders_settings'])}",
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
