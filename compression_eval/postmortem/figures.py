"""The figures of a post-mortem as plain data: for JSON, which its schema describes, and as a frame.

The models are what `figures.json` contains; the schema and the columns of the frame come from them.
"""

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from compression_eval.conversations.sources import usual_places
from compression_eval.engine import Engine
from compression_eval.fixtures.writing import SCHEMA
from compression_eval.postmortem.sessions import (
    SessionRow,
    Told,
    Verdict,
    over_sessions,
    read_sessions,
)

if TYPE_CHECKING:
    from pandas import DataFrame


class _Figures(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class FileFigures(_Figures):
    """A file whose text was shown again."""

    path: str
    lines: int
    """Distinct lines that had been shown or written before."""
    of: int
    """Distinct lines of the result."""
    tokens: float


class CompactionFigures(_Figures):
    """A compaction; its sizes are the client's, other tokens are characters divided by four."""

    message: int
    """Messages before it."""
    kind: str
    trigger: str
    tokens_before: int | None
    tokens_after: int | None
    verdict: Verdict
    fetched_again: float | None
    """Tokens of results that the session had held; null with fewer than ten calls behind it."""
    shown_again: float | None
    """Tokens of file text that was shown again."""
    usual: float | None
    """Median of what the controls fetched again; null with too few of them."""
    limit: float | None
    """Tokens above which a window is far above usual; null with too few controls."""
    calls_to_new_edit: int | None
    """Calls before the first new edit; null if there is none in reach."""
    files: list[FileFigures]


class SessionFigures(_Figures):
    """A session with compactions."""

    name: str
    place: str
    """Where it was read."""
    agent: str
    calls: int
    compactions: list[CompactionFigures]


class MeanFigures(_Figures):
    """A measure over the compactions of all sessions that can be judged."""

    measure: str
    after: float
    control: float
    low: float | None
    """Of the 95 % interval of the difference; null with too few threads."""
    high: float | None
    compactions: int


class PostmortemFigures(_Figures):
    """What `compression-eval postmortem --out` writes as figures.json."""

    sessions: list[SessionFigures]
    means: list[MeanFigures]


def figures_schema() -> dict[str, Any]:
    """Return the JSON schema of figures.json."""
    made = PostmortemFigures.model_json_schema(mode="serialization")
    made["properties"]["schema"] = {"const": SCHEMA}
    made["required"].append("schema")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def figures(rows: Sequence[SessionRow]) -> PostmortemFigures:
    """Return the figures of some sessions."""
    return PostmortemFigures(
        sessions=[
            SessionFigures(
                name=row.name,
                place=row.place,
                agent=row.agent,
                calls=row.calls,
                compactions=[_of_compaction(each) for each in row.compactions],
            )
            for row in rows
        ],
        means=[
            MeanFigures(
                measure=mean.measure,
                after=mean.after,
                control=mean.control,
                low=None if math.isnan(mean.low) else mean.low,
                high=None if math.isnan(mean.high) else mean.high,
                compactions=mean.compactions,
            )
            for mean in over_sessions(rows)
        ],
    )


def compactions_frame(*paths: str | os.PathLike[str]) -> "DataFrame":
    """Return a row for each compaction of recorded sessions, as the JSON of the page has them.

    Args:
        paths: Sessions, folders of sessions or patterns; the usual places of agents if there are
            none.

    Raises:
        DataError: A path does not exist.
    """
    from pandas import DataFrame

    one = Engine(1)  # other processes would run a script without a guard again
    columns = [name for name in CompactionFigures.model_fields if name != "files"]
    return DataFrame(
        [
            {"session": row.name, "agent": row.agent, "place": row.place}
            | _of_compaction(each).model_dump(include=set(columns))
            for row in read_sessions([os.fspath(path) for path in paths] or usual_places(), one)
            for each in row.compactions
        ],
        columns=["session", "agent", "place", *columns],
    )


def _of_compaction(told: Told) -> CompactionFigures:
    found, window = told.compaction, told.compaction.window
    return CompactionFigures(
        message=found.cut,
        kind=found.kind,
        trigger=found.trigger,
        tokens_before=found.tokens_before,
        tokens_after=found.tokens_after,
        verdict=told.verdict,
        fetched_again=window.held if window else None,
        shown_again=window.shown_again if window else None,
        usual=found.usual,
        limit=None if math.isinf(told.limit) else told.limit,
        calls_to_new_edit=window.edit_calls if window else None,
        files=[
            FileFigures(path=file.path, lines=file.lines, of=file.of, tokens=file.tokens)
            for file in (window.rereads if window else ())
        ],
    )
