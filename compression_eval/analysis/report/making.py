"""Make the files of a report from logs."""

import gc
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from compression_eval.analysis.frames import processes_for
from compression_eval.analysis.logs import Log
from compression_eval.analysis.report.charts import LARGE, PICTURES, chart
from compression_eval.analysis.report.drawing import Chart, prepare
from compression_eval.analysis.report.figures import Figures, as_json, figures, read_frames
from compression_eval.analysis.report.html_page import html_page, page_data, viewer_of
from compression_eval.analysis.report.sections import (
    markdown,
    notes,
    notes_on_ranks,
    opening,
    published,
)
from compression_eval.conversations.processes import Apart
from compression_eval.errors import DataError
from compression_eval.fixtures.writing import put


def report_files(
    logs: Sequence[Log],
    out: Path,
    *,
    reference: bool = False,
    viewer: str,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a report, by name, its first sentence, and what it says on ranks.

    Raises:
        DataError: A log cannot be read, or no sample of any of them has a score.
    """
    count = len(logs)
    progress(f"reading {count} logs")
    with ExitStack() as opened:
        # The first thing of all, so that it is forked from a process that holds little.
        several = processes_for(logs) > 1
        beside = opened.enter_context(Apart(__name__)) if several else None
        frames = read_frames(logs, progress=lambda read: progress(f"read {read} of {count} logs"))
        if not frames.samples["scored"].any():
            reasons = frames.samples["failure"].astype(str).str[:120].value_counts()
            listed = ", ".join(f"{' '.join(str(name).split())} {n}" for name, n in reasons.items())
            raise DataError(f"no sample has a score, so there is nothing to report: {listed[:400]}")
        progress("computing")
        gc.freeze()  # all of it stays: to look for garbage in it took a sixth of the time
        lane = opened.enter_context(ThreadPoolExecutor(1))
        if beside:
            lane.submit(beside.call, "charts", prepare)
        computed = figures(frames)
        progress("drawing")
        seen = viewer_of([log.path for log in logs], out, viewer)
        # Two processes draw, one from each end. The pixels of wide pictures take memory, which this
        # process, the larger one, need not have at the same time.
        names = [*LARGE, *(name for name in PICTURES if name not in LARGE)]
        left = deque((name, narrow) for narrow in (False, True) for name in names)
        others = lane.submit(_drawn, computed, left, beside) if beside else None
        data = page_data(frames, computed.arms, seen)
        made = _drawn(computed, left) | (others.result() if others else {})
    drawn, narrow = (
        [found for name in PICTURES if (found := made[name, narrow])] for narrow in (False, True)
    )
    published_figures = published() if reference else None
    progress("writing")
    texts = {f"charts/{chart.name}.svg": chart.svg for chart in drawn} | {
        "figures.json": as_json(computed),
        "report.md": markdown(computed, notes(computed, logs), published_figures),
        "index.html": html_page(
            computed, frames, logs, (drawn, narrow), data, seen, published_figures
        ),
    }
    # A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
    encoded = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
    images = {f"charts/{chart.name}.png": chart.png for chart in drawn}
    return encoded | images, [opening(computed), *notes_on_ranks(computed)]


def _drawn(
    of: Figures, left: deque[tuple[str, bool]], process: Apart | None = None
) -> dict[tuple[str, bool], Chart | None]:
    """Draw what is left: from the end here, from the front in another process."""
    made: dict[tuple[str, bool], Chart | None] = {}
    while True:
        try:
            name, narrow = left.popleft() if process else left.pop()
        except IndexError:
            return made
        made[name, narrow] = (
            process.call("charts", chart, of, name, narrow=narrow)
            if process
            else chart(of, name, narrow=narrow)
        )


def write_files(out: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, each as a whole, after all of them could be written.

    Files of an earlier report are replaced; what else is in the folder stays.

    Raises:
        OSError: The folder cannot be written to.
    """
    # In the folder if it is there, else beside it, so that moving is within one file system.
    place = out.resolve()
    near = place if place.is_dir() else place.parent
    with tempfile.TemporaryDirectory(dir=near, prefix=f".{place.name}.") as scratch:
        for name, content in files.items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name in files:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            put(Path(scratch) / name, out / name)
