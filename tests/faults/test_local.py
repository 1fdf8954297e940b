"""Faults on the machine itself: none is scored, lost or hangs, and none reaches anything else.

All rows of a place share one run: each has a fixture of its own, in which the fault stands that a
compressor is to play.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog, EvalSample

from compression_eval.cli import main
from compression_eval.errors import DataError
from compression_eval.text.printable import clean
from tests.e2e import small
from tests.faults.local_table import COMPRESSORS, NAMES, NO_NAMES, OWN, SCORED
from tests.faults.test_campaign import outcome, results

OPTIONS = {"fail_on_error": False, "log_realtime": False, "max_samples": 40}
CUT = 6


def fixtures(folder: Path, faults: list[str]) -> list[Path]:
    """Write a conversation for each fault, which says it; the name is that of its place."""
    written = []
    for number, fault in enumerate(faults):
        name = f"case-{number:03}"
        data, bank = small.conversation(name), small.bank(name)
        data["messages"][1]["content"] += f" This is {name} [[{fault}]]."
        bank["probes"] = [{**bank["probes"][0], "cut": CUT}]
        written.append(small.write(folder, name, fixture=data, probes=bank))
    return written


def by_fault(log: EvalLog, faults: list[str]) -> dict[str, list[EvalSample]]:
    """Return the samples by fault; fails if one is lost, or stands there twice."""
    found: dict[str, list[EvalSample]] = {fault: [] for fault in faults}
    for sample in small.samples(log):
        found[faults[int(small.names(sample)[5:8])]].append(sample)
    counts = Counter((sample.id, sample.epoch) for sample in log.samples or [])
    assert set(counts.values()) == {1}
    assert len(counts) == (log.eval.dataset.samples or 0) * (log.eval.config.epochs or 1)
    assert all(found.values()), "a sample is lost"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", OWN)
@pytest.mark.usefixtures("scripts")
def test_a_compressor_of_the_user_that_fails_is_never_scored(kind: str, tmp_path: Path) -> None:
    rows = {"": SCORED} | OWN[kind]
    name, arguments = COMPRESSORS[kind]
    log = small.run(
        tmp_path / "logs",
        fixtures(tmp_path / "data", list(rows)),
        epochs=1,
        compressor=name,
        compressor_args=arguments,
        options=OPTIONS,
    )
    played = {fault: sample for fault, (sample,) in by_fault(log, list(rows)).items()}
    came: dict[str, str] = {}
    for fault, sample in played.items():
        came[fault] = outcome(sample)
        if came[fault].startswith("compression_failed"):
            state = small.state(sample)
            came[fault] = f"{state.status}: {state.failure}"
            assert len(state.failure) < 1_500
            assert state.failure.isprintable()
        elif came[fault] == SCORED:
            assert results(sample) == results(played[""])
    assert {fault: came[fault][: len(expected)] for fault, expected in rows.items()} == rows


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
    given: dict[str, Any] = {"fixtures": fixtures(tmp_path, [""]), argument: NO_NAMES[row]}
    with pytest.raises(DataError) as error:
        small.run(tmp_path / "logs", given.pop("fixtures"), **given)
    said = str(error.value)
    assert argument in said or "File name too long" in said or "passwd: not JSON" in said
    assert len(said) < 3_000
    assert clean(said, 3_000) == said
    assert not (tmp_path / "logs").exists()
