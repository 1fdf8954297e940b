"""Precision and recall of the files that an artifact answer names."""

import math
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.scorer import Score

from compression_eval.file_ops.naming import history_files
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_pair
from compression_eval.grading.artifact_files import KEYS, artifact_files, file_findings, key_of
from tests.grading.samples import (
    answer_record,
    only_score,
    probe,
    record,
    run,
    state_record,
    values,
)

HISTORY = {
    "src/pool.py": "created",
    "src/retry.py": "created",
    "src/app.py": "modified",
    "docs/guide.md": "read",
    "old.py": "deleted",
    "tests/test_pool.py": "mentioned",
}
KEY = {"files_created": ["src/pool.py", "src/retry.py"], "files_modified": ["src/app.py"]}


def asked(**changes: Any) -> Any:
    fields = {"type": "artifact", "question": "Which files changed?", "answer_key": KEY}
    return probe(**(fields | changes))


def scored(tmp_path: Path, answer: Any, **changes: Any) -> Score:
    given = record(**({"asked": asked(), "answer": answer, "files": HISTORY} | changes))
    return only_score(run(artifact_files(), given, tmp_path), "artifact_files")


@pytest.mark.parametrize(
    ("answer", "precision", "recall"),
    [
        ("src/pool.py, src/retry.py, src/app.py", 1, 1),
        ("- `src/pool.py`: new\n- `retry.py`: new\n- `app.py`: wired", 1, 1),
        ("src/pool.py and src/invented.py", 0.5, 0.333),
        ("src/pool.py; old.py was deleted", 1, 0.333),
        ("I do not know.", math.nan, 0),
    ],
)
def test_shares_of_the_key_and_of_the_answer(
    tmp_path: Path, answer: str, precision: float, recall: float
) -> None:
    found = values(scored(tmp_path, answer))
    assert list(found) == list(KEYS)
    assert found["artifact_recall"] == recall
    assert found["artifact_precision"] == pytest.approx(precision, nan_ok=True)


def test_kinds_are_kept_apart_and_other_names_are_listed(tmp_path: Path) -> None:
    answer = "src/pool.py, src/app.py, docs/guide.md, tests/test_pool.py, lib/ghost.py, old.py"
    score = scored(tmp_path, answer)
    assert score.metadata == {
        "created": {"named": ["src/pool.py"], "missed": ["src/retry.py"]},
        "modified": {"named": ["src/app.py"], "missed": []},
        "others": {"docs/guide.md": "read", "tests/test_pool.py": "mentioned"},
        "made_up": ["lib/ghost.py"],
        "ambiguous": [],
        "not_judged": ["old.py"],
    }
    text = score.explanation or ""
    assert "| created | 2 | src/pool.py | src/retry.py |" in text
    assert "docs/guide.md (read)" in text
    assert "Made up, nowhere in the history: lib/ghost.py." in text


def test_a_shortened_name_must_be_unique(tmp_path: Path) -> None:
    files = HISTORY | {"lib/pool.py": "read"}
    score = scored(tmp_path, "pool.py", files=files)
    assert values(score)["artifact_recall"] == 0
    assert math.isnan(values(score)["artifact_precision"])
    assert (score.metadata or {})["ambiguous"] == ["pool.py"]


@pytest.mark.parametrize(
    "changes",
    [
        {"asked": probe()},
        {"asked": asked(answer_key={"open_tasks": ["x"]})},
        {"answer": answer_record("", failure="context overflow")},
        {"answer": None},
    ],
)
def test_what_is_not_measured_is_nan(tmp_path: Path, changes: dict[str, Any]) -> None:
    score = scored(tmp_path, changes.pop("answer", "src/pool.py"), **changes)
    assert all(math.isnan(value) for value in values(score).values())
    assert score.reason


def test_a_failed_compression_and_a_missing_record_are_unscored(tmp_path: Path) -> None:
    score = scored(tmp_path, "src/pool.py", state=state_record(status="empty"))
    assert score.reason == "compression_failed: empty"
    assert math.isnan(score.as_float())
    given = record() | {"probe": None}
    log = run(artifact_files(), given, tmp_path)
    assert only_score(log, "artifact_files").reason == "scoring_failed: no record"


@pytest.mark.parametrize("name", shipped_fixtures())
def test_reference_answers_name_the_whole_key_and_nothing_else(name: str) -> None:
    pair = load_pair(shipped_fixtures()[name])
    files = history_files(pair.fixture.messages)
    judged = 0
    for item in pair.bank.probes:
        if item.type != "artifact" or not key_of(item):
            continue
        found = file_findings(item, item.reference_answer, files)
        assert (found.precision, found.recall, found.made_up) == (1, 1, []), item.id
        judged += 1
    assert judged
