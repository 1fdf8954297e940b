"""Make the files of a report from logs."""

import gc
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compression_eval.analysis.logs import Log
from compression_eval.analysis.report.charts import charts
from compression_eval.analysis.report.figures import as_json, figures, read_frames
from compression_eval.analysis.report.html_page import html_page, page_data, viewer_of
from compression_eval.analysis.report.sections import (
    markdown,
    notes,
    notes_on_ranks,
    opening,
    published,
)
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
    frames = read_frames(logs, progress=lambda read: progress(f"read {read} of {count} logs"))
    if not frames.samples["scored"].any():
        reasons = frames.samples["failure"].astype(str).str[:120].value_counts()
        listed = ", ".join(f"{' '.join(str(name).split())} {n}" for name, n in reasons.items())
        raise DataError(f"no sample has a score, so there is nothing to report: {listed[:400]}")
    progress("computing")
    gc.freeze()  # all of it stays: to look for garbage in it took a sixth of the time
    computed = figures(frames)
    progress("drawing")
    made = charts(computed)
    progress("writing")
    seen = viewer_of([log.path for log in logs], out, viewer)
    data = page_data(frames, computed.arms, seen)
    published_figures = published() if reference else None
    texts = {f"charts/{chart.name}.svg": chart.svg for chart in made} | {
        "figures.json": as_json(computed),
        "report.md": markdown(computed, notes(computed, logs), published_figures),
        "index.html": html_page(computed, frames, logs, made, data, seen, published_figures),
    }
    # A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
    encoded = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
    images = {f"charts/{chart.name}.png": chart.png for chart in made}
    return encoded | images, [opening(computed), *notes_on_ranks(computed)]


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
