"""Every grading of a sample, folded into one cell for reading and unfolded after."""

import json
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.sample_columns import Cell, Seen, graded_by, number
from compression_eval.calibration.anchors import anchor_of
from compression_eval.grading.six_dimensions import KEYS

if TYPE_CHECKING:
    from pandas import DataFrame

GRADINGS = "gradings_json"
"""Name of the column that holds them folded."""

ANCHOR = "anchor_json"
"""Name of the column that holds what came of the anchor that was graded beside an answer."""

_SETTINGS = ("criteria", "grader_context", "language", "rubric_digest")


def as_cell(seen: Seen) -> Cell:
    """Return the scores and settings of every grading as JSON text."""
    rows: list[dict[str, Any]] = []
    for position, score in enumerate(seen.gradings):
        metadata = score.metadata or {}
        row: dict[str, Any] = {"grading": position, "graded_by": graded_by(score)}
        row |= {name: metadata.get(name) for name in _SETTINGS}
        row |= {key: number(score, key) for key in KEYS}
        rows.append(row)
    return json.dumps(rows, ensure_ascii=False)


def anchor_as_cell(seen: Seen) -> Cell:
    """Return what came of a sample's anchor as JSON text; None if it carried none."""
    found = anchor_of(seen.gradings[0]) if seen.gradings else None
    return found.model_dump_json() if found else None


def unfolded(frame: "DataFrame") -> "DataFrame":
    """Return a row per grading of a frame with the folded column."""
    from pandas import json_normalize, to_numeric

    frame = frame.assign(**{GRADINGS: frame[GRADINGS].map(_rows)}).explode(GRADINGS)
    frame = frame[frame[GRADINGS].notna()].reset_index(drop=True)
    rows = json_normalize(frame[GRADINGS].tolist())
    names = ("grading", "graded_by", *_SETTINGS, *KEYS)
    frame = frame.drop(columns=GRADINGS).join(rows.reindex(columns=list(names)))
    for key in KEYS:
        frame[key] = to_numeric(frame[key], errors="coerce").astype(float)
    return frame


def _rows(cell: Any) -> list[Any]:
    return list(json.loads(cell)) if isinstance(cell, str) else []
