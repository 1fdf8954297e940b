"""What an agent fetched again after a compaction, on sessions in which it is planted."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from compression_eval import compactions_frame
from compression_eval.analysis.postmortem import session_line
from compression_eval.cli import main
from compression_eval.postmortem.sessions import (
    Mean,
    SessionRow,
    each_once,
    over_sessions,
    read_sessions,
    session_row,
)
from compression_eval.postmortem.windows import WINDOW, Compaction
from tests.conversations.readers.claude_code_session import Session, result, text, use

LONG = [f"def step_{n}(value): return value * {n} + offset  # part {n}" for n in range(40)]
OTHER = [f"export const row{n} = makeRow('{n}', columns, width)" for n in range(40)]


def numbered(lines: Sequence[str], first: int = 1) -> str:
    return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, first))


class Work:
    """A session of Claude Code that continues with calls, each with a result of its own."""

    def __init__(self, session: str = "") -> None:
        common = {"sessionId": session} if session else {}
        self.session = Session(**common)
        self.number = 0
        self.session.user(f"Make the report faster. {session}")

    def call(self, name: str, output: str, **arguments: Any) -> None:
        self.number += 1
        identifier = f"toolu_{self.number}"
        self.session.model(f"m{self.number}", text("Next."), use(identifier, name, **arguments))
        self.session.user([result(identifier, output)])

    def read(self, path: str, lines: Sequence[str] = LONG, first: int = 1) -> None:
        self.call("Read", numbered(lines, first), file_path=f"/project/{path}")

    def edit(self, path: str, old: str, new: str) -> None:
        done = f"The file /project/{path} has been updated."
        self.call("Edit", done, file_path=f"/project/{path}", old_string=old, new_string=new)

    def fresh(self, count: int) -> None:
        """Run commands whose output never was there before."""
        for _ in range(count):
            n = self.number
            lines = [f"measurement {n}-{k} took {n * 31 + k} milliseconds" for k in range(30)]
            self.call("Bash", "\n".join(lines), command=f"python bench.py {n}")

    def compacted(self) -> None:
        self.session.boundary(preTokens=150_000)
        self.session.summary("This session is being continued. We make the report faster.")

    def row(self, folder: Path) -> Any:
        (row,) = read_sessions([str(self.session.write(folder))])
        return row


def planted(after: Any) -> Work:
    """Return a session that read and edited files, was compacted, and then did something."""
    work = Work()
    work.read("core.py")
    work.read("view.ts", OTHER)
    work.edit("core.py", LONG[3], "def step_3(value): return value")
    work.fresh(60)
    work.compacted()
    after(work)
    work.fresh(60)
    return work


def again(work: Work) -> None:
    work.read("core.py")


def other_numbers(work: Work) -> None:
    work.read("core.py", LONG, first=200)


def other_tool(work: Work) -> None:
    work.call("Bash", "\n".join(OTHER), command="cat view.ts")


def searched(work: Work) -> None:
    around = "\n".join([f"1:{LONG[0]}", *(f"{n}-{line}" for n, line in enumerate(LONG[1:], 2))])
    work.call("Bash", around, command="grep -n -A39 step_0 core.py")
    work.call("Bash", "\n".join(LONG), command="rg step core.py")


def searched_and_shown(work: Work) -> None:
    work.call("Bash", "\n".join(LONG), command="rg step core.py && sed -n 1,40p core.py")


def changed_since(work: Work) -> None:
    work.edit("core.py", LONG[5], "def step_5(value): return 5")
    work.read("core.py", [*LONG[:5], "def step_5(value): return 5", *LONG[6:]])


def mostly_new(work: Work) -> None:
    lines = [f"{line} and more of {n}" if n % 2 else line for n, line in enumerate(LONG)]
    work.read("core.py", lines)


def another_file(work: Work) -> None:
    work.read("copy.py", LONG)


@pytest.mark.parametrize(
    ("after", "held", "files"),
    [
        (again, 1.0, ["core.py"]),
        (other_numbers, 1.0, ["core.py"]),
        (other_tool, 1.0, ["view.ts"]),
        (searched, 1.0, []),  # the lines that match are no look at the file
        (searched_and_shown, 1.0, ["core.py"]),
        (changed_since, 0.95, []),  # its text is held, but an edit since asks for a look
        (mostly_new, 0.5, []),
        (another_file, 1.0, []),
        (lambda _: None, 0.0, []),
    ],
)
def test_what_is_fetched_again_and_what_is_shown_again(
    after: Any, held: float, files: list[str], tmp_path: Path
) -> None:
    (told,) = planted(after).row(tmp_path).compactions
    window = told.compaction.window
    whole = sum(len(line.strip()) for line in (OTHER if after is other_tool else LONG)) / 4
    assert window.held == pytest.approx(held * whole, rel=0.06, abs=10)
    assert [Path(each.path).name for each in window.rereads] == files
    assert told.compaction.usual == 0
    assert len(told.compaction.controls) >= 6


def test_far_above_usual_needs_a_thousand_tokens(tmp_path: Path) -> None:
    def much(work: Work) -> None:
        for n in range(4):
            work.read(f"big{n}.py", [f"{line} of file {n}" for line in LONG])

    (little,) = planted(again).row(tmp_path).compactions
    assert little.verdict == "usual"
    work = Work()
    much(work)
    work.fresh(60)
    work.compacted()
    much(work)
    work.fresh(60)
    row = work.row(tmp_path)
    (told,) = row.compactions
    assert told.verdict == "far above usual"
    assert told.excess == pytest.approx(sum(each.tokens for each in told.compaction.window.rereads))
    assert row.flagged_controls[0] == 0
    out = tmp_path / "page"
    done = CliRunner().invoke(main, ["postmortem", str(tmp_path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "1 of 1 compaction far above usual" in done.output
    for name in ("index.html", "report.md"):
        assert "big0.py: 40 of 40 lines" in (out / name).read_text()
    found, schema = (
        json.loads((out / name).read_text()) for name in ("figures.json", "figures.schema.json")
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found | {"means": [{}]}, schema)
    (session,) = found["sessions"]
    assert session["compactions"][0]["tokens_before"] == 150_000
    assert "around a compaction, +1" in (out / "charts" / "fetched-again.svg").read_text()
    (known,) = compactions_frame(str(tmp_path / "session.jsonl")).to_dict("records")
    assert known["fetched_again"] == session["compactions"][0]["fetched_again"] > 0
    second = CliRunner().invoke(main, ["postmortem", str(tmp_path), "--out", str(out)])
    assert second.exit_code == 0, second.output  # a page of ours is replaced


def test_a_page_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    planted(again).session.write(tmp_path)
    (page := tmp_path / "index.html").write_text("<title>My site</title>")
    done = CliRunner().invoke(main, ["postmortem", str(tmp_path), "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert done.output == (
        f"Error: --out: {page} is not a page of compression_eval; name another folder\n"
    )
    assert page.read_text() == "<title>My site</title>"


def test_a_frame_of_nothing_has_its_columns(tmp_path: Path) -> None:
    empty = compactions_frame(str(Work().session.write(tmp_path)))
    assert empty.empty
    planted(again).session.write(tmp_path)
    frame = compactions_frame(str(tmp_path))
    assert list(empty.columns) == list(frame.columns)
    assert "files" not in frame.columns


def test_the_first_new_edit_is_no_edit_that_was_made_before_or_elsewhere(tmp_path: Path) -> None:
    def edits(work: Work) -> None:
        work.edit("core.py", LONG[3], "def step_3(value): return value")
        work.call("Write", "written", file_path="/home/me/scratchpad/try.py", content="print(1)")
        work.fresh(2)
        work.edit("core.py", LONG[7], "def step_7(value): return 7")

    (told,) = planted(edits).row(tmp_path).compactions
    assert told.compaction.window.edit_calls == 4
    (none,) = planted(lambda _: None).row(tmp_path).compactions
    assert none.compaction.window.edit_calls is None


def test_a_new_edit_is_awaited_for_as_many_calls_in_a_control_as_in_its_window(
    tmp_path: Path,
) -> None:
    def edits(work: Work) -> None:
        work.fresh(5)
        work.edit("core.py", LONG[7], "def step_7(value): return 7")

    def without_edit(after: Any) -> tuple[Mean, Compaction]:
        work = Work()
        work.fresh(150)
        work.compacted()
        after(work)
        work.fresh(40)
        work.compacted()
        row = work.row(tmp_path)
        (mean,) = [each for each in over_sessions([row]) if each.measure == "without_edit"]
        return mean, row.compactions[0].compaction

    never, found = without_edit(lambda _: None)
    assert found.window
    assert found.window.reach == 40
    assert {each.reach for each in found.controls} > {40, 20}
    assert never.after == never.control
    soon, found = without_edit(edits)
    assert soon.after == 5
    assert soon.control == fmean(each.reach for each in found.controls)


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(12_000, 2_000, True), (12_000, None, False), (1_000, 1_200, False)],
)
def test_a_share_is_told_only_of_sizes_that_are_known(
    tmp_path: Path, before: int, after: int | None, share: bool
) -> None:
    work = planted(lambda work: [work.read(f"big{n}.py", LONG) for n in range(3)])
    (told,) = work.row(tmp_path).compactions
    found = replace(told.compaction, tokens_before=before, tokens_after=after)
    sized = replace(told, compaction=found, verdict="far above usual")
    line = session_line(SessionRow("s", "s.jsonl", "", "", compactions=[sized]))
    assert ("% of the 10,000 compacted away" in line) == share
    assert share or "%" not in line


def test_too_little_is_no_verdict(tmp_path: Path) -> None:
    work = Work()
    work.fresh(8)
    work.compacted()
    work.fresh(4)
    work.compacted()
    work.fresh(15)
    few, alone = work.row(tmp_path).compactions
    assert few.verdict == "too few calls"
    assert alone.verdict == "too few windows to compare with"
    done = CliRunner().invoke(main, ["postmortem", str(tmp_path)])
    assert "1 session, 1 with compactions\n" in done.output
    assert "2 compactions, no verdict: too few calls and too few windows" in done.output
    assert f"  compression-eval quickstart {tmp_path}" in done.output, "what to do next"
    (tmp_path / "session.jsonl").unlink()
    Work().session.write(tmp_path)
    done = CliRunner().invoke(main, ["postmortem", str(tmp_path)])
    assert done.exit_code == 1
    assert "was compacted (1 session, 0 with compactions)" in done.output
    assert "could not be read" not in done.output


def test_a_file_that_cannot_be_read_is_not_one_without_compactions(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("no session\n", encoding="utf-8")
    done = CliRunner().invoke(main, ["postmortem", str(damaged)])
    assert done.exit_code == 1
    assert "1 of the files or conversations could not be read" in done.output
    assert "damaged.jsonl: no known format" in done.output
    assert "import" not in done.output  # it has no option for formats


def test_what_the_agent_says_after_a_compaction_is_not_held_before(tmp_path: Path) -> None:
    said = [
        f"The plan for part {n} is to measure it first and then to change it." for n in range(40)
    ]

    def plan(work: Work) -> None:
        work.session.model("plan", text("\n".join(said)))
        work.call("Bash", "\n".join(said), command="cat plan.md")

    (told,) = planted(plan).row(tmp_path).compactions
    assert told.compaction.window.held == 0
    work = planted(lambda _: None)
    work.session.model("plan", text("\n".join(said)))
    work.session.user("Go on.")
    work.compacted()
    work.call("Bash", "\n".join(said), command="cat plan.md")
    work.fresh(20)
    *_, told = work.row(tmp_path).compactions
    assert told.compaction.window.held == pytest.approx(sum(map(len, said)) / 4)


def test_a_window_between_two_compactions_is_drawn_once(tmp_path: Path) -> None:
    work = Work()
    for _ in range(3):
        work.fresh(90)
        work.compacted()
    work.fresh(90)
    row = work.row(tmp_path)
    starts = {c.start for told in row.compactions for c in told.compaction.controls}
    drawn = sum(len(told.compaction.controls) for told in row.compactions)
    assert drawn > row.flagged_controls[1]
    assert row.flagged_controls[1] <= len(starts)
    # No more than fit side by side between the first call and the last.
    assert row.flagged_controls[1] <= row.calls / WINDOW


def test_of_a_compaction_that_forks_share_the_judged_one_counts(tmp_path: Path) -> None:
    rows = []
    for name, more in (("short", 3), ("long", 60)):
        work = Work()
        work.read("core.py")
        work.fresh(60)
        work.compacted()
        work.read("core.py")
        work.fresh(more)
        (folder := tmp_path / name).mkdir()
        rows.append(work.row(folder))
    ((row, told),) = each_once(rows)
    assert row.calls == rows[1].calls
    assert told.verdict == "usual"


def test_forks_of_a_thread_count_what_they_share_once(tmp_path: Path) -> None:
    rows = []
    for n in range(8):
        work = planted(again)
        work.session.lines[0]["message"]["content"] += f" {n // 2}"  # two begin alike
        work.fresh(n % 2)
        (folder := tmp_path / str(n)).mkdir()
        rows.append(work.row(folder))
    means = {mean.measure: mean for mean in over_sessions(rows)}
    assert means["held"].compactions == 4
    assert means["held"].after == pytest.approx(sum(map(len, LONG)) / 4, rel=0.02)
    assert means["held"].control == 0
    shifted = session_row(planted(again).session.read(tmp_path).fixture, shift=25)
    assert shifted.compactions[0].compaction.window is not None
    assert shifted.compactions[0].compaction.window.held == 0
