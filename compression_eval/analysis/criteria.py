"""The criteria of a sample's gradings, folded into one cell for reading and unfolded after."""

import json
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.sample_columns import Cell, Seen
from compression_eval.grading.rubric import structure

if TYPE_CHECKING:
    from pandas import DataFrame

CRITERIA = "criteria_json"
"""Name of the column that holds them folded."""


def as_cell(seen: Seen) -> Cell:
    """Return every criterion of every grading as JSON text."""
    rows: list[dict[str, Any]] = []
    for number, score in enumerate(seen.gradings):
        metadata = score.metadata or {}
        for result in metadata.get("criterionResults") or []:
            common = {"grading": number, "criterion": result.get("criterionId")}
            rows.append(
                {
                    **common,
                    "grader": "panel",
                    "score": result.get("score"),
                    "graded": result.get("graded"),
                    "reasoning": result.get("reasoning"),
                }
            )
        for grader in metadata.get("graders") or []:
            rows.extend(
                {
                    "grading": number,
                    "criterion": result.get("criterionId"),
                    "grader": grader.get("model"),
                    "score": result.get("score"),
                    "graded": result.get("score"),
                    "reasoning": result.get("reasoning"),
                }
                for result in grader.get("criterionResults") or []
            )
    return json.dumps(rows, ensure_ascii=False)


def unfolded(frame: "DataFrame") -> "DataFrame":
    """Return a row per criterion of a frame with the folded column."""
    from pandas import json_normalize

    frame = frame.assign(**{CRITERIA: frame[CRITERIA].map(_rows)}).explode(CRITERIA)
    frame = frame[frame[CRITERIA].notna()].reset_index(drop=True)
    rows = json_normalize(frame[CRITERIA].tolist())
    names = ("grading", "criterion", "grader", "score", "graded", "reasoning")
    frame = frame.drop(columns=CRITERIA).join(rows.reindex(columns=list(names)))
    dimensions = {criterion.id: criterion.dimension for criterion in structure().criteria}
    frame["dimension"] = frame["criterion"].map(dimensions)
    return frame


def _rows(cell: Any) -> list[Any]:
    return list(json.loads(cell)) if isinstance(cell, str) else []
