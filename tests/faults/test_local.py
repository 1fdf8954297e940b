"""Faults on the machine itself: none is scored, lost or hangs, and none reaches anything else.

All rows of a place share one run: each has a fixture of its own, in which the fault stands that a
compressor is to play.
"""

import gzip
import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, EvalSample

from compression_eval import sharing
from compression_eval.cli import main
from compression_eval.compressors.state import State
from compression_eval.errors import DataError
from compression_eval.text.printable import clean
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, COMPRESSES, Call, Script, Scripts, operations, proper_answer
from tests.faults.local_table import (
    ANEW,
    COMPRESSORS,
    NAMES,
    NO_NAMES,
    OWN,
    SCORED,
    STATES,
    TAKEN,
    Kept,
)
from tests.faults.test_campaign import outcome, results

OPTIONS = {"fail_on_error": False, "log_realtime": False, "max_samples": 40}
CUTS = (6, 11)


def fixtures(folder: Path, faults: list[str]) -> list[Path]:
    """Write a conversation for each fault, which says it; the name is that of its place."""
    written = []
    for number, fault in enumerate(faults):
        name = f"case-{number:03}"
        data, bank = small.conversation(name), small.bank(name)
        data["messages"][1]["content"] += f" This is {name} [[{fault}]]."
        cuts = CUTS if fault == "of another cut" else CUTS[:1]
        bank["probes"] = bank["probes"][: len(cuts)]
        for probe, cut in zip(bank["probes"], cuts, strict=True):
            probe["cut"] = cut
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


@pytest.mark.slow
def test_a_kept_state_that_is_damaged_is_never_used(
    scripts: Scripts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = list(STATES)
    saved: dict[tuple[str, int, int], tuple[Path, str]] = {}
    save = sharing.save_state

    def noted(path: str, key: str, state: State) -> None:
        saved[state.fixture, state.cut, state.replicate] = Path(path.removeprefix("file://")), key
        save(path, key, state)

    monkeypatch.setattr(sharing, "save_state", noted)
    asked: Counter[str] = Counter()

    def compress(call: Call) -> str:
        asked[re.findall(r"case-\d{3}", call.text)[0]] += 1
        return operations("The code was E4401.")

    def break_down(call: Call) -> str:
        raise RuntimeError("the connection is gone")

    scripts[ANSWERS], scripts[COMPRESSES] = Script(break_down), Script(compress)
    files = fixtures(tmp_path / "data", faults)
    first = small.run(tmp_path / "logs", files, epochs=2, options=OPTIONS)
    assert all(sample.error for sample in first.samples or [])
    assert len(saved) == asked.total() == 2 * (len(faults) + 1), "two replicates, one cut more"
    asked.clear()
    for number, (fault, (damage, _)) in enumerate(STATES.items()):
        case, other = f"case-{number:03}", f"case-{number - 1 if number else 1:03}"
        path, key = saved[case, CUTS[0], 0]

        def forge(text: bytes, path: Path = path, key: str = key) -> None:
            digest = hashlib.sha256(key.encode() + b"\0" + text).hexdigest().encode()
            path.write_bytes(gzip.compress(digest + b"\n" + text))

        others = {"fixture": (other, CUTS[0], 0), "replicate": (case, CUTS[0], 1)}
        others |= {"cut": (case, CUTS[1], 0)} if fault == "of another cut" else {}
        text = gzip.decompress(path.read_bytes()).partition(b"\n")[2]
        damage(Kept(path, {name: saved[which][0] for name, which in others.items()}, text, forge))
    scripts[ANSWERS] = Script(proper_answer)
    again = eval_retry(first, log_dir=str(tmp_path / "logs"), display="log", log_realtime=False)[0]
    played = by_fault(again, faults)
    clean = results(played["untouched"][0])
    came = {}
    for number, (fault, samples) in enumerate(played.items()):
        for sample in samples:
            state = small.state(sample)
            assert (outcome(sample), state.status) == (SCORED, "ok"), fault
            record = small.record(sample)
            place = (record.fixture, record.replicate)
            assert place == (f"case-{number:03}", sample.epoch - 1)
            if sample.id == samples[0].id:
                assert results(sample) == clean
        came[fault] = ANEW if asked[f"case-{number:03}"] else TAKEN
    assert came == {fault: expected for fault, (_, expected) in STATES.items()}
    assert asked.total() == list(came.values()).count(ANEW), "no other state is computed anew"


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
