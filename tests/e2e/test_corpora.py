"""Cuts that a bank names, recorded arms, Parquet files and parts of a corpus, through a run."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.arguments import TaskArguments
from compression_eval.errors import DataError
from compression_eval.fixtures.commands import pack
from compression_eval.fixtures.loading import find_sources
from compression_eval.task import compression_task
from tests.e2e import small
from tests.e2e.scripted import COMPRESSES, Scripts

SUMMARY = {"role": "user", "content": "Summary: E4401 in the log, auth/session.py edited."}


def bank(**cuts: int) -> dict[str, Any]:
    """Return the small bank with cuts for some of its probes."""
    data = small.bank()
    for probe in data["probes"]:
        if probe["id"] in cuts:
            probe["cut"] = cuts[probe["id"]]
    return data


def recorded(*compactions: dict[str, Any]) -> dict[str, Any]:
    return {**small.conversation(), "recorded_compactions": list(compactions)}


def corpus(folder: Path, *names: str) -> Path:
    paths = [small.write(folder / "files", name) for name in names]
    pack(find_sources(paths), folder / "corpus.parquet")
    return folder / "corpus.parquet"


def ids(arguments: dict[str, Any]) -> list[str]:
    """Return the ids of a task's samples."""
    dataset = compression_task(TaskArguments(compressor="full", **arguments)).dataset
    return sorted(small.names(sample) for sample in dataset)


def test_probes_are_put_where_they_say(scripts: Scripts, tmp_path: Path, log_dir: Path) -> None:
    path = small.write(tmp_path / "data", probes=bank(code=6))
    log = small.run(log_dir, path, epochs=1)
    cuts = {small.names(sample): small.record(sample).cut for sample in small.samples(log)}
    assert cuts == {"tiny/code@6": 6, "tiny/file@11": 11, "tiny/next@11": 11}
    assert len(scripts[COMPRESSES].calls) == 2


def test_several_cuts_are_given_with_commas(tiny: Path) -> None:
    """Inspect's command line makes a list of texts of them, unless they are in brackets."""
    wanted = ids({"fixtures": str(tiny), "cut": [6, 11]})
    assert {"tiny/code@6", "tiny/code@11"} < {*wanted}
    for cut in (["6", "11"], "6,11", ["6", "end"]):
        assert ids({"fixtures": str(tiny), "cut": cut}) == wanted, cut
    with pytest.raises(DataError, match="cut: 'ende' is not a cut"):
        ids({"fixtures": str(tiny), "cut": ["6", "ende"]})


def test_recorded_cuts(tmp_path: Path) -> None:
    fixture = recorded({"cut": 6, "summary": "x"}, {"cut": 11, "summary": "y"})
    path = small.write(tmp_path, fixture=fixture, probes=bank(next=11))
    assert ids({"fixtures": str(path), "cut": "recorded"}) == [
        *("tiny/code@11", "tiny/code@6", "tiny/file@11", "tiny/file@6", "tiny/next@11"),
    ]
    with pytest.raises(DataError, match=r"cut: 11 is in 'tiny' where another cut is"):
        ids({"fixtures": str(path), "cut": ["recorded", 11]})


def test_the_recorded_state_is_an_arm(scripts: Scripts, tmp_path: Path, log_dir: Path) -> None:
    fixture = recorded({"cut": 11, "state": [SUMMARY, 10]})
    path = small.write(tmp_path / "data", fixture=fixture)
    log = small.run(log_dir, path, compressor="recorded", compressor_args={}, epochs=1)
    assert {small.state(sample).status for sample in small.samples(log)} == {"ok"}
    assert not scripts[COMPRESSES].calls
    first = small.samples(log)[0]
    assert [message.text for message in first.messages][1:3] == [
        SUMMARY["content"],
        small.conversation()["messages"][10]["content"],
    ]


def test_one_that_cannot_be_read_fails_beside_others(
    scripts: Scripts, tmp_path: Path, log_dir: Path
) -> None:
    opaque = {**recorded({"cut": 11, "kind": "opaque"}), "name": "shut"}
    plain = {**recorded({"cut": 11, "summary": "E4401"}), "name": "open"}
    paths = [
        small.write(tmp_path, name, fixture=fixture, probes=small.bank(name))
        for name, fixture in (("shut", opaque), ("open", plain))
    ]
    given: dict[str, Any] = {"compressor": "recorded", "compressor_args": {}, "epochs": 1}
    log = small.run(log_dir, paths, **given)
    statuses = {small.record(s).fixture: small.state(s).status for s in small.samples(log)}
    assert statuses == {"shut": "unsupported", "open": "ok"}
    with pytest.raises(DataError, match=r"compressor: recorded: .*encrypted"):
        small.run(log_dir, paths[:1], **given)


def test_what_was_never_compacted_and_cuts_without_probes_are_passed_over(
    scripts: Scripts, tmp_path: Path, log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compacted = recorded(
        {"cut": 6, "kind": "clear", "state": [1]}, {"cut": 11, "state": [SUMMARY, 10]}
    )
    questions = bank(code=11, file=11, next=11)
    small.write(tmp_path / "data", fixture=compacted, probes=questions)
    small.write(tmp_path / "data", "never")
    given: dict[str, Any] = {"cut": "recorded", "compressor": "recorded", "compressor_args": {}}
    log = small.run(log_dir, tmp_path / "data", **given, epochs=1)
    assert {small.names(sample) for sample in small.samples(log)} == {
        *("tiny/code@11", "tiny/file@11", "tiny/next@11"),
    }
    assert [small.state(sample).status for sample in small.samples(log)] == ["ok"] * 3
    reasons = (log.eval.metadata or {})["passed_over"]
    assert [reason.partition(": ")[2] for reason in reasons] == [
        "cut: 'recorded', but the agent compacted nothing",
        "no probe to put at message 6 of 'tiny'",
    ]
    with pytest.raises(DataError, match="compacted nothing"):
        small.run(log_dir, tmp_path / "data" / "never.json", **given)


def test_a_parquet_file_gives_the_same_task_as_its_files(tmp_path: Path) -> None:
    path = corpus(tmp_path, "one", "two")
    tasks = [
        compression_task(TaskArguments(fixtures=str(name), compressor="full"))
        for name in (path, tmp_path / "files")
    ]
    assert tasks[0].version == tasks[1].version
    assert [s.model_dump() for s in tasks[0].dataset] == [s.model_dump() for s in tasks[1].dataset]


def test_parts_of_a_corpus_make_the_whole(tmp_path: Path) -> None:
    path = str(corpus(tmp_path, "one", "three", "two"))
    whole = compression_task(TaskArguments(fixtures=path, compressor="full"))
    parts = [
        compression_task(TaskArguments(fixtures=path, compressor="full", shard=f"{n}/2"))
        for n in (1, 2)
    ]
    samples = {s.id: s.model_dump() for part in parts for s in part.dataset}
    assert samples == {s.id: s.model_dump() for s in whole.dataset}
    assert {s["metadata"]["cluster"] for s in samples.values()} == {"one", "two", "three"}
    assert len({task.version for task in (whole, *parts)}) == 3
    for given in ("3/2", "x", "0/1", 1):
        with pytest.raises(DataError, match="shard: "):
            compression_task(TaskArguments(fixtures=path, shard=given))


def test_of_several_fixtures_those_without_a_bank_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small.write(tmp_path, "asked")
    alone = small.write(tmp_path, "unasked")
    alone.with_name("unasked.probes.json").unlink()
    task = compression_task(TaskArguments(fixtures=str(tmp_path), compressor="full"))
    assert {small.names(sample).split("/")[0] for sample in task.dataset} == {"asked"}
    # One fixture is left: an error over it as the only cluster would be 0.
    assert {(s.metadata or {})["cluster"] for s in task.dataset} == {s.id for s in task.dataset}
    (reason,) = (task.metadata or {})["passed_over"]
    assert reason.startswith(f"{alone}: no probe bank")
    assert f"skipped (1):\n  {reason}" in caplog.text
    with pytest.raises(DataError, match=r"unasked\.json: no probe bank"):
        compression_task(TaskArguments(fixtures=str(alone), compressor="full"))
