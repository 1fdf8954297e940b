"""The facts of a sample, folded into one cell for reading and unfolded after."""

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.facts import FactRow, rows_of_record, words_in
from compression_eval.analysis.sample_columns import Cell, Seen

if TYPE_CHECKING:
    from pandas import DataFrame

FACTS = "facts_json"
"""Name of the column that holds them folded."""

_OF_RUN = ("log", "compressor")
"""Fields of a row that the frame has for the whole log."""


@dataclass(frozen=True)
class _Unnamed:
    name: str = ""
    compressor: str = ""


def as_cell(seen: Seen) -> Cell:
    """Return what became of every fact as JSON text; None for a sample without a record."""
    if seen.record is None:
        return None
    rows = []
    words = words_in(seen.sample.scores, seen.record.probe)
    if seen.regradings is not None:  # what the graders of the log said of answers is not asked for
        words = [each._replace(answer=None) for each in words]
    for row in rows_of_record(_Unnamed(), seen.sample.epoch, seen.record, words):
        found = asdict(row)
        rows.append({name: found[name] for name in found if name not in _OF_RUN})
    return json.dumps(rows)


def unfolded(frame: "DataFrame") -> "DataFrame":
    """Return a row per fact of a frame with the folded column; columns are those of `FactRow`."""
    from pandas import DataFrame

    rows: list[dict[str, Any]] = []
    columns = frame[["log", "compressor", "arm", FACTS]].itertuples(index=False)
    for log, compressor, arm, cell in columns:
        common = {"arm": arm, "log": log, "compressor": compressor}
        rows.extend({**common, **row} for row in (json.loads(cell) if cell else []))
    return DataFrame(rows, columns=["arm", *(field.name for field in fields(FactRow))])
