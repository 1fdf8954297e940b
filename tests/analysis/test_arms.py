"""Runs that differ in anything that decides their results are different arms everywhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import CompactionSummary, ModelConfig

from compression_eval.analysis import samples_frame
from compression_eval.versioning import TOOLS
from tests.analysis.comparison.arms import as_json, compared, refused
from tests.analysis.embedded import TAIL, embedded
from tests.e2e import small


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of one arm of the embedded model."""
    folder = tmp_path_factory.mktemp("arms")
    return Path(embedded(folder / "logs", small.write(folder / "data"), **TAIL).location)


def _copy(run: Path, folder: Path, name: str, change: Callable[[EvalLog], None]) -> Path:
    log = read_eval_log(str(run))
    log.eval.task_id = name
    change(log)
    path = folder / f"{name}.eval"
    write_eval_log(log, str(path))
    return path


def _drop(log: EvalLog) -> None:
    log.eval.model_args = {"drop": 0.85}


def _secret(log: EvalLog) -> None:
    log.eval.model_args = {
        "token": "hunter2-hunter2",
        "extra": {"auth": {"value": "abcdef"}, "run": "curl -H 'X: Bearer abcdef'"},
    }
    log.eval.model_base_url = "https://me:hunter2@example.org/v1?key=abcdef"


def _graded_with(log: EvalLog, parameters: dict[str, Any]) -> None:
    for sample in log.samples or []:
        metadata = (sample.scores or {})["six_dimensions"].metadata or {}
        for grader in metadata["graders"]:
            grader["parameters"] = parameters


def _graded_again_warmer(log: EvalLog) -> None:
    log.eval.model_roles = {"grader": ModelConfig(model="embedded/lexical")}
    _graded_with(log, {"temperature": 0.9, "extra_headers": {"X": "hunter2"}})


def _regraded(log: EvalLog) -> None:
    for sample in log.samples or []:
        metadata = (sample.scores or {})["six_dimensions"].metadata or {}
        metadata["graders"][0]["model"] = "vendor/judge"


def _match(log: EvalLog) -> None:
    log.eval.task_args["state_facts"] = "match"


def _rubric(log: EvalLog) -> None:
    for sample in log.samples or []:
        metadata = (sample.scores or {})["six_dimensions"].metadata or {}
        metadata["rubric_digest"] = "ab" * 32


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_drop, "tail [drop=0.85]"),
        (_regraded, "tail [graded by vendor/judge]"),
        (_graded_again_warmer, "tail [graded by embedded/lexical temperature=0.9]"),
        (_rubric, "tail [rubric en #ababab]"),
        (_match, "tail [state_facts match]"),
    ],
)
def test_what_is_told_apart(
    run: Path, tmp_path: Path, change: Callable[[EvalLog], None], name: str
) -> None:
    other = _copy(run, tmp_path, "other", change)
    arms = set(samples_frame([run, other])["arm"])
    assert len(arms) == 2
    assert name in arms
    assert refused(compared(run, other, "--to", run)).startswith("base: the logs are of 2 arms")


def test_secrets_are_digests_wherever_arms_are_named(run: Path, tmp_path: Path) -> None:
    other = _copy(run, tmp_path, "other", _secret)
    frame = samples_frame([run, other])
    done = compared(run, "--to", other, "--format", "json")
    warmer = _copy(run, tmp_path, "warmer", _graded_again_warmer)
    again = compared(run, "--to", warmer, "--allow", "grader", "--format", "json")
    shown = frame.to_json() + done.output + again.output + again.stderr
    assert "temperature" in again.output
    assert "example.org/v1" in shown
    assert not [word for word in ("hunter2", "abcdef") if word in shown]


def test_an_edited_compressor_is_another_arm(run: Path, tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    data = run.parent.parent / "data" / "tiny.json"
    for kept in ("messages[-1:]", "messages[6:7]"):
        code.write_text(f"def mine(messages):\n    return messages[:2] + {kept}\n")
        embedded(tmp_path / "logs", data, compressor=f"{code}@mine")
    arms = set(samples_frame(tmp_path / "logs")["arm"])
    assert len(arms) == 2
    assert all("compressor's source #" in arm for arm in arms)


def test_a_prompt_that_inspect_ships_is_part_of_the_arm_and_its_version_is_not(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = run.parent.parent / "data" / "tiny.json"

    def made(name: str) -> EvalLog:
        return embedded(tmp_path / name, data, compressor="summary")

    logs = [made("as it is")]
    other_text = f"{CompactionSummary.DEFAULT_SUMMARY_PROMPT}\nBe brief."
    monkeypatch.setattr(CompactionSummary, "DEFAULT_SUMMARY_PROMPT", other_text)
    logs.append(made("other prompt"))
    monkeypatch.setitem(TOOLS, "inspect_ai", "0.0.1")
    logs.append(made("other version"))
    assert len({log.eval.task_version for log in logs}) == 3
    first, other, older = (log.location for log in logs)
    assert len(set(samples_frame([first, other])["arm"])) == 2
    done = compared(first, "--to", other)
    assert done.exit_code == 3
    assert "the arms differ in: compressors' prompts (" in done.stdout
    # Another version alone is no other arm; that it is another is said.
    assert len(set(samples_frame([other, older])["arm"])) == 1
    written = read_eval_log(older)
    written.eval.packages["inspect_ai"] = "0.0.1"
    write_eval_log(written, older)
    code, found = as_json(other, "--to", older)
    assert (code, found["outcome"], found["same_arm"]) == (0, "the same answers", True)
    (change,) = found["versions_changed"]
    assert (change["name"], change["new"]) == ("inspect_ai", "0.0.1")
    assert "-> 0.0.1)" in compared(other, "--to", older, "--gate").stdout
