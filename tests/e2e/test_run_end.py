"""What a run says when it has ended, and while it waits: what failed, why, and what to do."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput

from compression_eval.grading.scorers import MODEL_KEYS
from tests.e2e import command, small
from tests.e2e.scripted import (
    ANSWERS,
    COMPRESSES,
    GRADES,
    Call,
    Script,
    Scripts,
    output,
    proper_answer,
    proper_compression,
    proper_grading,
)

FAILING = """
def failing(messages):
    raise RuntimeError("no quota\\x1b[31m\\nleft\\u2028today")
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[command.Ended, Path]:
    """A run of Inspect's command in which every compression fails."""
    folder = tmp_path_factory.mktemp("failed")
    fixture = small.write(folder / "data")
    (folder / "mine.py").write_text(FAILING)
    arguments = ["-T", f"fixtures={fixture}", "-T", f"compressor={folder}/mine.py@failing"]
    result = command.inspect(
        ["eval", "tasks/compression.py", *arguments, "--epochs", "2"], folder / "logs"
    )
    return result, folder / "logs"


@pytest.mark.slow
class TestEverythingFailed:
    REASON = "RuntimeError: no quota [31m left today"

    def test_the_command_says_why_and_fails(self, ended: tuple[command.Ended, Path]) -> None:
        result, _ = ended
        assert result.code == 1
        assert f"2 of 2 compressions failed: {self.REASON}" in result.errors
        assert "none of the 6 samples has a grade" in result.errors.splitlines()[-1]
        assert "\x1b" not in result.errors
        assert "Traceback" not in result.errors

    def test_the_log_is_an_error_with_all_samples(self, ended: tuple[command.Ended, Path]) -> None:
        log = read_eval_log(str(command.logs(ended[1])[-1]))
        assert len(small.samples(log, "error")) == 6
        assert log.error is not None
        assert "none of the 6 samples has a grade" in log.error.message
        assert log.metadata["failures"] == [f"2 of 2 compressions failed: {self.REASON}"]
        assert log.results is not None
        assert {score.name for score in log.results.scores} >= {"overall", "failed_states"}


@pytest.mark.slow
def test_a_log_without_samples_is_an_error_too(tmp_path: Path) -> None:
    fixture = small.write(tmp_path / "data")
    (tmp_path / "mine.py").write_text(FAILING)
    arguments = ["-T", f"fixtures={fixture}", "-T", f"compressor={tmp_path}/mine.py@failing"]
    result = command.inspect(
        ["eval", "tasks/compression.py", *arguments, "--no-log-samples"], tmp_path / "logs"
    )
    assert result.code == 1
    assert "none of the 9 samples has a grade" in result.errors.splitlines()[-1]


def test_failures_are_counted_where_the_log_keeps_no_samples(
    scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[COMPRESSES].reply = one_fails
    for max_failed, status in ((0.3, "error"), (1 / 3, "success")):
        scripts[COMPRESSES].calls.clear()
        log = small.run(log_dir, tiny, max_failed=max_failed, options={"log_samples": False})
        assert (log.status, log.samples) == (status, [])
        assert log.metadata["failures"][0].startswith("1 of 3 compressions failed: ")


@pytest.mark.slow
def test_a_run_without_failures_says_so(tmp_path: Path, log_dir: Path) -> None:
    fixture = small.write(tmp_path / "data")
    arguments = ["eval", "tasks/compression.py", "-T", f"fixtures={fixture}", "--epochs", "1"]
    budgets = "{tail_tokens: 60, summary_tokens: 200}"
    result = command.inspect(
        [*arguments, "-T", f"compressor_args={budgets}"], log_dir, COLUMNS="160"
    )
    assert result.code == 0, result.errors
    said = result.errors[result.errors.index("compression-anchored-tail=60-summary=200, ") :]
    assert "none of 1 compression, 3 answers and 3 gradings failed" in said
    assert all(len(line) <= 80 for line in said.splitlines()[1:])
    for key in small.means(read_eval_log(str(command.logs(log_dir)[-1]))):
        assert f" {key} " in said or key in MODEL_KEYS


def one_fails(call: Call) -> str:
    return "" if call.number == 1 else proper_compression(call)


@pytest.mark.parametrize(
    ("max_failed", "status"), [(None, "success"), (0.3, "error"), (1 / 3, "success"), (0, "error")]
)
def test_so_many_failures_make_an_error(
    max_failed: float | None, status: str, scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[COMPRESSES].reply = one_fails
    given: dict[str, Any] = {} if max_failed is None else {"max_failed": max_failed}
    log = small.run(log_dir, tiny, **given)
    assert log.status == status
    stored = read_eval_log(log.location)
    assert (stored.status, len(stored.samples or [])) == (status, 9)
    assert stored.metadata["failures"][0].startswith("1 of 3 compressions failed: ")
    assert stored.metadata["failures"][1] == "0 of 6 answers failed"
    assert small.means(stored)["overall"] == 4, "what could be graded keeps its scores"
    if status == "error":
        assert stored.error is not None
        assert "3 of 9 samples have no grade, more than max_failed" in stored.error.message


def test_answers_and_gradings_are_counted_where_they_failed(
    scripts: Scripts, tiny: Path, log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(call: Call) -> str | ModelOutput:
        if "Which error code" in call.last:
            return output("", "content_filter")
        return proper_answer(call)

    def grade(call: Call) -> str:
        return "{}" if "Which source file" in call.text else proper_grading(call)

    scripts[ANSWERS].reply = answer
    scripts[GRADES].reply = grade
    log = small.run(log_dir, tiny, epochs=2)
    assert log.status == "success"
    compressions, answers, gradings = log.metadata["failures"]
    assert compressions == "0 of 2 compressions failed"
    assert answers.startswith("2 of 6 answers failed: ")
    assert gradings.startswith("2 of 4 gradings failed: ")
    assert answers in caplog.text
    assert "failures" not in (small.run(log_dir / "b", tiny, epochs=1, **CLEAN).metadata)


CLEAN = {"model": "embedded/lexical", "model_roles": {"grader": "embedded/lexical"}}


def unreachable(times: int) -> Script:
    def reply(call: Call) -> str:
        if call.number < times:
            raise ConnectionRefusedError("nothing listens there")
        return proper_grading(call)

    return Script(reply)


@pytest.mark.parametrize("bound", [{}, {"max_retries": 9}])
def test_what_is_waited_for_is_said_once(
    bound: dict[str, int],
    scripts: Scripts,
    tiny: Path,
    log_dir: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripts[GRADES] = unreachable(4)
    small.run(log_dir, tiny, epochs=1, options={"max_samples": 1, **bound})
    said = [record.getMessage() for record in caplog.records if "waiting for" in record.message]
    assert len(said) == (0 if bound else 1)
    for text in said:
        assert "waiting for the model grades: 2 attempts failed" in text
        assert "ConnectionRefusedError" in text
        assert "--max-retries N or --timeout SECONDS" in text


def test_names_and_tags_show_no_paths_or_texts_of_own_code(
    tiny: Path, log_dir: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.py"
    own.write_text("def keep(messages, key, last=5):\n    return messages[-last:]\n")
    arguments = {"key": "sk-live-51Habc", "last": 4}
    log = small.run(
        log_dir, tiny, epochs=1, compressor=f"{own}@keep", compressor_args=arguments, **CLEAN
    )
    command = {"command": ["/usr/bin/env", "TOKEN=sk-live-51Habc", "cat"]}
    other = small.run(
        log_dir, tiny, epochs=1, compressor="command", compressor_args=command, **CLEAN
    )
    shown = [str(each) for it in (log, other) for each in (it.eval.task, *(it.eval.tags or ()))]
    assert {"own.py@keep", "last=4", "command=env"} <= set(shown)
    assert not [each for each in shown if "sk-live" in each or "/" in each]
