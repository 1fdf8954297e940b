"""Hostile names and arguments are refused in a line, or do no harm."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compression_eval.cli import main
from compression_eval.errors import DataError
from compression_eval.text.printable import clean
from tests.e2e import small
from tests.faults.table import SCORED

NAMES: dict[str, tuple[str, str]] = {
    "NUL": ("a\0b", "one printable line"),
    "70,000 characters": ("x" * 70_000, "at most 120 characters"),
    "two lines": ("a\nb", "one printable line"),
    "moves the cursor": ("\x1b[2Ja", "one printable line"),
    "half a pair": ("a\ud800", "surrogate"),
    "empty": ("", "at least 1 character"),
    "upwards": ("../../../../tmp/owned", SCORED),
    "HTML": ("<script>alert(1)</script>", SCORED),
    "Markdown": ("[a](javascript:alert(1)) **b** `c` | d", SCORED),
    "format": ("{0} {name} %s %(x)s $HOME `id`", SCORED),
    "other letters": ("会話 разговор 🙂", SCORED),
}
"""Names of fixtures and ids of probes: how the refusal of the file reads, or `SCORED`."""

NO_NAMES = {
    "NUL": "a\0b",
    "70,000 characters": "x" * 70_000,
    "moves the cursor": "\x1b[2Jtail",
    "half a pair": "\ud800",
    "empty": "",
    "upwards": "../../../etc/passwd",
    "HTML": "<script>alert(1)</script>",
    "wrapped twice": "tail+artifacts+artifacts",
}
"""Arguments that stand for no compressor, fixture or bank: each is refused before any call."""


def named(folder: Path, row: str, place: str) -> Path:
    """Write a fixture and a bank with a hostile name, id of a probe, or fixture in the bank."""
    name = NAMES[row][0] if "name" in place else f"case-{list(NAMES).index(row)}"
    data, bank = small.conversation(name), small.bank(name)
    bank["probes"] = bank["probes"][:1]
    if "id" in place:
        bank["probes"][0]["id"] = NAMES[row][0]
    elif place == "bank":
        bank["fixture"] = NAMES[row][0]
    file = f"{place}-{list(NAMES).index(row)}"
    return small.write(folder, file, fixture=data, probes=bank)


@pytest.mark.parametrize("row", NAMES)
@pytest.mark.parametrize("place", ["name", "id", "bank"])
def test_a_hostile_name_is_refused_in_a_line_or_does_no_harm(
    place: str, row: str, tmp_path: Path
) -> None:
    expected = NAMES[row][1]
    path = named(tmp_path, row, place)
    done = CliRunner().invoke(main, ["fixtures", "check", str(path)])
    assert done.output.replace("\n", "").isprintable()
    assert len(done.output) < 3_000
    if place == "bank":
        expected = "surrogate" if row == "half a pair" else "the bank belongs to"
        expected = "at least 1 character" if row == "empty" else expected
    assert done.exit_code == (expected != SCORED), done.output
    if expected != SCORED:
        assert expected in done.output
        assert str(path)[:-5] in done.output, "the file is named"


@pytest.mark.parametrize("row", NO_NAMES)
@pytest.mark.parametrize("argument", ["compressor", "fixtures", "probes"])
@pytest.mark.usefixtures("scripts")
def test_a_hostile_argument_is_refused_in_a_line(argument: str, row: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"fixtures": small.write(tmp_path), argument: NO_NAMES[row]}
    with pytest.raises(DataError) as error:
        small.run(tmp_path / "logs", given.pop("fixtures"), **given)
    said = str(error.value)
    assert argument in said or "file name too long" in said or "passwd: not JSON" in said
    assert len(said) < 3_000
    assert clean(said, 3_000) == said
    assert not (tmp_path / "logs").exists()
