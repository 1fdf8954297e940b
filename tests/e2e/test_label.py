"""People's labels besides those of reader and grader, from draw to score."""

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compression_eval.analysis.frames import facts_frame, samples_frame
from compression_eval.cli import main
from tests.e2e import small


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["label", *map(str, arguments)])


@pytest.fixture
def logs(tmp_path: Path, log_dir: Path, scripts: object) -> Path:
    """Logs of two arms and a control, whose states were read."""
    fixture = small.write(tmp_path / "data")
    small.run(log_dir, fixture, epochs=1, state_facts="reader")
    for name, arguments in (("tail", {"tail_tokens": 30}), ("full", None)):
        small.run(
            log_dir,
            fixture,
            epochs=1,
            state_facts="reader",
            compressor=name,
            compressor_args=arguments,
        )
    return log_dir


def filled(sheet: Path, fact: str, answer: str) -> Path:
    """Give every fact, and every answer, the same label."""
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    for row in rows:
        row["label"] = fact if row["kind"] == "fact" else answer
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(rows)
    return sheet


def test_a_sheet_is_blind_and_its_labels_are_found_again(logs: Path, tmp_path: Path) -> None:
    done = command("draw", logs, "--out", tmp_path / "anna")
    assert done.exit_code == 0, done.output
    sheet = tmp_path / "anna" / "labels.csv"
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    frame = samples_frame(logs)
    judged = frame[frame["compressor"] != "full"]
    assert sum(row["kind"] == "answer" for row in rows) == len(judged)
    texts = {path.name: path.read_text("utf-8") for path in sheet.parent.glob("*.txt")}
    assert {row["file"] for row in rows} == set(texts)
    for row in rows:
        assert row["item"] in texts[row["file"]]
    told = sheet.read_text("utf-8") + "".join(texts)
    assert not any(str(arm) in told for arm in frame["arm"].unique())
    facts = facts_frame(logs)
    assert all(any(fact in text for text in texts.values()) for fact in facts["fact"])

    done = command("score", logs, "--labels", filled(sheet, "absent", "2,5"))
    assert done.exit_code == 0, done.output
    absent = facts.loc[facts["compressor"] != "full", "in_state_read"] == "absent"
    line = next(each for each in done.output.splitlines() if "anna and reader" in each)
    assert line.split()[4:6] == [str(len(absent)), f"{absent.mean():.0%}"]
    apart = (judged["knowledge"] - 2.5).abs().mean()
    line = next(each for each in done.output.splitlines() if "anna and grader" in each)
    assert line.split()[4:6] == [str(len(judged)), f"{apart:.2f}"]


def test_who_agrees_with_the_reader_has_a_kappa_of_one(logs: Path, tmp_path: Path) -> None:
    command("draw", logs, "--out", tmp_path / "ben", "--answers", "0")
    sheet = tmp_path / "ben" / "labels.csv"
    words = {}
    for text in sheet.parent.glob("*.txt"):
        body = text.read_text("utf-8")
        state = body.partition("The text:")[2]
        for line in body.splitlines():
            if line.startswith("  ["):
                name, _, fact = line.strip().partition("] ")
                words[name.strip("[")] = "stated" if fact.split("  (")[0] in state else "absent"
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    lines = ["item,label", *(f"{row['item']},{words[row['item']]}" for row in rows)]
    other = tmp_path / "clara.csv"
    other.write_text("\n".join(lines) + "\n", encoding="utf-8")
    filled(sheet, "stated", "")
    done = command("score", logs, "--labels", sheet, "--labels", other)
    assert done.exit_code == 0, done.output
    by_pair = {
        " ".join(line.split()[:3]): line.split()
        for line in reversed(done.output.splitlines())
        if " all " in line
    }
    assert by_pair["clara and look-up"][5] == "100%"
    assert by_pair["clara and look-up"][6] == "1.00"
    assert float(by_pair["ben and clara"][6]) <= 0


@pytest.mark.parametrize(
    ("fact", "answer", "said"),
    [("maybe", "3", "'maybe'"), ("absent", "7", "'7'"), ("", "", "no item has a label")],
)
def test_a_label_that_is_none(
    logs: Path, tmp_path: Path, fact: str, answer: str, said: str
) -> None:
    command("draw", logs, "--out", tmp_path / "sheet")
    sheet = filled(tmp_path / "sheet" / "labels.csv", fact, answer)
    done = command("score", logs, "--labels", sheet)
    assert done.exit_code != 0
    assert said in done.stderr


def test_labels_of_other_logs(logs: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "labels.csv"
    sheet.write_text("item,label\n0123456789ab,absent\n", encoding="utf-8")
    done = command("score", logs, "--labels", sheet)
    assert done.exit_code != 0
    assert "1 of 1 items" in done.stderr


def test_what_was_filled_is_not_overwritten(logs: Path, tmp_path: Path) -> None:
    assert command("draw", logs, "--out", tmp_path / "sheet").exit_code == 0
    sheet = filled(tmp_path / "sheet" / "labels.csv", "absent", "2")
    before = sheet.read_bytes()
    done = command("draw", logs, "--out", tmp_path / "sheet")
    assert done.exit_code != 0
    assert "--out" in done.stderr
    assert sheet.read_bytes() == before


def test_a_sheet_of_a_spreadsheet_that_writes_semicolons(logs: Path, tmp_path: Path) -> None:
    command("draw", logs, "--out", tmp_path / "sheet")
    sheet = filled(tmp_path / "sheet" / "labels.csv", "absent", "2")
    expected = command("score", logs, "--labels", sheet)
    sheet.write_text(sheet.read_text("utf-8").replace(",", ";"), encoding="utf-8-sig")
    done = command("score", logs, "--labels", sheet)
    assert done.exit_code == 0, done.output
    assert done.stdout == expected.stdout


def test_labels_that_mean_two_things(logs: Path, tmp_path: Path) -> None:
    command("draw", logs, "--out", tmp_path / "anna")
    sheet = filled(tmp_path / "anna" / "labels.csv", "absent", "2")
    assert "given twice" in command("score", logs, "--labels", sheet, "--labels", sheet).stderr
    named = sheet.rename(sheet.with_name("reader.csv"))
    assert "'reader'" in command("score", logs, "--labels", named).stderr
    twice = named.read_text("utf-8")
    row = next(each for each in twice.splitlines() if each.endswith("absent"))
    named.write_text(twice + row.replace("absent", "stated") + "\n", encoding="utf-8")
    clara = named.rename(sheet.with_name("clara.csv"))
    assert "two labels" in command("score", logs, "--labels", clara).stderr
    nothing = ("--facts", 0, "--answers", 0)
    assert "both are 0" in command("draw", logs, "--out", tmp_path / "new", *nothing).stderr
