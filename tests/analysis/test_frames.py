"""Frames of real logs recompute from the logs, and say what failed instead of counting it as 0."""

import math
from multiprocessing import active_children
from pathlib import Path
from zipfile import ZipFile

import pytest
from click.testing import CliRunner
from inspect_ai.log import read_eval_log, write_eval_log

from compression_eval.analysis import (
    criteria_frame,
    gradings_frame,
    samples_frame,
    states_frame,
)
from compression_eval.analysis.columns import FOLDED, SAMPLE_COLUMNS
from compression_eval.analysis.frames import read_rows
from compression_eval.analysis.logs import find_logs
from compression_eval.cli import main
from compression_eval.errors import DataError
from compression_eval.grading.rubric import structure
from tests.analysis.embedded import TAIL, embedded
from tests.e2e import small


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frames")
    tiny, logs = small.write(folder / "data"), folder / "logs"
    embedded(logs, tiny, epochs=2, **TAIL)
    embedded(logs, tiny, epochs=2, compressor="tail", compressor_args={"tail_tokens": 90})
    embedded(logs, tiny, epochs=2, compressor="anchored", compressor_args=small.BUDGETS)
    failing = {"compressor": "trim", "compressor_args": {"preserve": 0.9}}
    embedded(logs, tiny, epochs=2, status="error", **failing)
    return logs


def test_samples_recompute_what_the_log_says(folder: Path) -> None:
    frame = samples_frame(folder)
    assert len(frame) == 4 * 2 * small.PROBES
    arms = {"tail (tail_tokens=60)", "tail (tail_tokens=90)", "anchored", "trim"}
    assert set(frame["arm"]) == arms
    assert set(frame["unit"]) == {"tiny@11"}
    scored = frame[frame["scored"]]
    dimensions = scored[list(structure().dimensions)].astype(float)
    assert (scored["overall"].astype(float) - dimensions.mean(axis=1)).abs().max() < 0.002


def test_knowledge_of_older_logs_comes_from_their_dimensions(folder: Path, tmp_path: Path) -> None:
    now = samples_frame(folder).set_index("sample_uuid")["knowledge"].dropna()
    for path in folder.rglob("*.eval"):
        log = read_eval_log(str(path))
        for sample in log.samples or []:
            for score in (sample.scores or {}).values():
                if isinstance(score.value, dict):
                    score.value.pop("knowledge", None)
        write_eval_log(log, str(tmp_path / path.name))
    frame = samples_frame(tmp_path).set_index("sample_uuid")
    older = frame["knowledge"].dropna()
    assert set(older.index) == set(now.index)
    assert (older - now.loc[older.index]).abs().max() < 0.002
    five = [name for name in structure().dimensions if name != "instruction_following"]
    assert (older - frame.loc[older.index, five].mean(axis=1)).abs().max() < 0.002
    again = gradings_frame(tmp_path).set_index("sample_uuid")["knowledge"].dropna()
    assert again.to_dict() == older.to_dict()


def test_a_failed_compression_is_a_reason_and_never_a_number(folder: Path) -> None:
    frame = samples_frame(folder)
    failed = frame[frame["arm"] == "trim"]
    assert not failed["scored"].any()
    assert failed["failure"].str.startswith("compression_failed").all()
    assert failed["overall"].isna().all()
    assert failed["tokens_removed"].isna().all()
    assert failed["answer_output_tokens"].isna().all()


def test_the_cost_of_a_compression_stands_on_one_sample(folder: Path) -> None:
    frame = samples_frame(folder)
    anchored = frame[frame["arm"] == "anchored"]
    assert anchored["compress_calls"].notna().sum() == anchored["state_id"].nunique() == 2
    states = states_frame(folder)
    assert states.groupby("arm").size().to_dict()["anchored"] == 2
    assert states["compress_input_tokens"].sum() == frame["compress_input_tokens"].sum()


def test_criteria_add_up_to_the_dimensions(folder: Path) -> None:
    criteria = criteria_frame(folder)
    weights = {each.id: each.weight for each in structure().criteria}
    graded = criteria[criteria["score"].notna() & (criteria["grader"] == "panel")]
    keys = ["sample_uuid", "dimension"]
    weight = graded["criterion"].map(weights)
    parts = graded.assign(weight=weight, part=weight * graded["score"].astype(float))
    sums = parts.groupby(keys)[["part", "weight"]].sum()
    found = (sums["part"] / sums["weight"]).unstack()
    samples = samples_frame(folder).set_index("sample_uuid")
    for dimension in structure().dimensions:
        expected = samples.loc[found.index, dimension].astype(float)
        assert (found[dimension] - expected).abs().max() < 0.002


def test_nothing_and_what_is_no_log_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none were given"):
        samples_frame([])
    (tmp_path / "x.eval").write_text("no zip", encoding="utf-8")
    with pytest.raises(DataError, match="not a log of Inspect"):
        samples_frame(tmp_path / "x.eval")


def test_a_log_that_has_lost_samples_is_refused(folder: Path, tmp_path: Path) -> None:
    whole, path = next(folder.glob("*anchored*.eval")), tmp_path / "lost.eval"
    with ZipFile(whole) as source, ZipFile(path, "w") as target:
        for each in source.infolist():
            if not each.filename.endswith("_epoch_2.json"):
                target.writestr(each, source.read(each))
    kept, all_ = small.PROBES, 2 * small.PROBES
    done = CliRunner().invoke(main, ["report", str(path), "--out", str(tmp_path / "report")])
    assert done.exit_code == 1
    said = f"lost.eval: cannot be read (only {kept} of {all_} samples are left in it)"
    assert said in done.stderr
    log = read_eval_log(str(path))
    log.eval.config.log_samples = False
    write_eval_log(log, str(path))
    assert len(samples_frame(path)) == kept, "what was not to be logged is not lost"


@pytest.mark.parametrize(
    ("scorer", "key", "value"),
    [
        ("six_dimensions", "overall", "5"),
        ("six_dimensions", "criterionResults", 50),
        ("fact_retention", "fact_violations", -math.inf),
    ],
)
def test_a_score_that_no_scorer_gives_is_refused(
    folder: Path, tmp_path: Path, scorer: str, key: str, value: float | str
) -> None:
    log = read_eval_log(str(next(folder.glob("*anchored*.eval"))))
    score = ((log.samples or [])[0].scores or {})[scorer]
    if key == "criterionResults":
        (score.metadata or {})[key][0]["score"] = value
    else:
        score.as_dict()[key] = value
    path, out = tmp_path / "odd.eval", tmp_path / "out"
    other = next(folder.glob("*tail=60_*.eval"))
    write_eval_log(log, str(path))
    for command in (
        ["report", str(path), "--out", str(out)],
        ["compare", str(path), "--to", str(other)],
        ["facts", str(path)],
    ):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == (2 if command[0] == "compare" else 1)
        assert f"{path}: " in done.stderr
        assert scorer in done.stderr
    assert not out.exists()


def test_logs_of_qualify_runs_beside_others_are_passed_over_unless_named(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path, tag in zip(sorted(folder.rglob("*.eval")), ("mine", "qualify"), strict=False):
        log = read_eval_log(str(path))
        log.eval.tags = [tag]
        (tmp_path / tag).mkdir()
        write_eval_log(log, str(tmp_path / tag / path.name))
    (kept,) = find_logs([str(tmp_path)])
    assert kept.header.eval.tags == ["mine"]
    assert caplog.messages[-1] == f"{tmp_path}: skipped 1 logs of probes qualify"
    (named,) = (tmp_path / "qualify").iterdir()
    assert len(find_logs([str(tmp_path), str(named)])) == 2
    assert len(find_logs([str(named.parent)])) == 1


@pytest.mark.slow
def test_several_processes_read_what_one_does(folder: Path) -> None:
    names = (*SAMPLE_COLUMNS, *FOLDED)
    logs = find_logs([str(folder)]) * 5
    one, two = (read_rows(logs, names, processes=n) for n in (1, 2))
    assert one.equals(two)
    started = []
    read_rows(logs[:2], names, processes=3, progress=lambda _: started.append(active_children()))
    assert len(started[0]) == 2
    assert two["arm"].nunique() == 4
