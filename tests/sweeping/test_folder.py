"""What a kill leaves in a folder is told from what counts, and nothing is lost."""

import errno
import json
import re
import shutil
from pathlib import Path

import pytest
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, read_eval_log

from compression_eval.analysis.logs import find_logs
from compression_eval.errors import DataError
from compression_eval.sweeping.folder import (
    MANIFEST,
    finished_samples,
    folder_logs,
    fresh_folder,
    repair,
    settle,
)
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, Call, Scripts, proper_answer
from tests.sweeping.commanding import run, settings_file


class OddError(Exception):
    """What a store raises that knows errors of its own."""


@pytest.fixture
def retried(scripts: Scripts, tiny: Path, tmp_path: Path) -> Path:
    """A folder with a run that broke and the one that finished it."""

    def breaks(call: Call) -> str:
        if call.number == 1:
            raise RuntimeError("the connection is gone")
        return proper_answer(call)

    scripts[ANSWERS].reply = breaks
    folder = tmp_path / "sweep"
    first = small.run(folder, tiny, epochs=1)
    assert first.status == "error"
    (second,) = eval_retry(first, log_dir=str(folder), display="none")
    assert second.status == "success"
    return folder


def test_a_superseded_log_is_set_aside_whole(retried: Path) -> None:
    before = {log.path: log.path.read_bytes() for log in folder_logs(retried)}
    assert len(before) == 2
    assert settle(retried) == 1
    (left,) = folder_logs(retried)
    assert left.header.status == "success"
    (aside,) = (retried / "superseded").iterdir()
    (gone,) = before.keys() - {left.path}
    assert aside.read_bytes() == before[gone]
    assert settle(retried) == 0


def test_an_unfinished_task_keeps_its_logs(retried: Path) -> None:
    for log in folder_logs(retried):
        if log.header.status == "success":
            log.path.unlink()
    assert settle(retried) == 0
    assert len(folder_logs(retried)) == 1


def test_analysis_reads_only_the_current_log_of_a_folder(retried: Path) -> None:
    (log,) = find_logs([str(retried)])
    assert log.header.status == "success"
    every = [str(each.path) for each in folder_logs(retried)]
    assert len(find_logs(every)) == 2, "what is named is read"


def test_a_copy_of_a_log_with_other_scores_stays(retried: Path) -> None:
    (log,) = find_logs([str(retried)])
    path = Path(log.path.removeprefix("file://"))
    shutil.copy(path, path.with_name(f"{path.stem}-scored.eval"))
    assert len(find_logs([str(retried)])) == 2


def test_half_a_log_is_set_aside_before_a_run(retried: Path) -> None:
    whole = folder_logs(retried)[0].path
    half = whole.with_name("2001-01-01T00-00-00-00-00_compression_half.eval")
    half.write_bytes(whole.read_bytes()[:1000])
    (retried / ".eval-set-id").write_text("", encoding="utf-8")
    repair(retried)
    assert not half.exists()
    assert [path.name for path in (retried / "superseded").iterdir()] == [f"{half.name}.old"]
    assert not (retried / ".eval-set-id").exists()
    assert len(folder_logs(retried)) == 2
    assert read_eval_log(str(whole)).samples


@pytest.mark.parametrize(
    "refusal", [OSError(errno.EMFILE, "Too many open files"), TimeoutError(), OddError("denied")]
)
def test_a_log_that_cannot_be_read_now_is_named_and_left_where_it_is(
    refusal: Exception, retried: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(retried.iterdir())
    first = folder_logs(retried)[0].path

    def refuses(place: str, header_only: bool) -> EvalLog:
        if place.endswith(first.name):
            raise refusal
        return read_eval_log(place, header_only=header_only)

    monkeypatch.setattr("compression_eval.sweeping.folder.read_eval_log", refuses)
    for asks in (repair, settle, finished_samples):
        with pytest.raises(DataError, match=rf"{first}: cannot be read \({type(refusal).__name__}"):
            asks(retried)
    assert sorted(retried.iterdir()) == before


def test_headers_are_not_written_and_those_that_were_still_count(
    tiny: Path, tmp_path: Path
) -> None:
    arms = [{"compressor": "edit", "args": {"keep_tool_uses": 1}}]
    file = str(settings_file(tmp_path, tiny, epochs=1, arms=arms))
    given = {"extra_headers": {"X-Key": "s3cr3t"}, "extra_body": {"user": {"pin": "s3cr3t"}}}
    options = [part for each in given.items() for part in ("-G", "{}={}".format(*each))]
    assert run("sweep", file, *options).code == 0
    manifest = tmp_path / "sweep" / MANIFEST
    content = json.loads(manifest.read_text("utf-8"))
    assert set(content["generate"]) == {*given}
    assert "s3cr3t" not in manifest.read_text("utf-8")
    manifest.write_text(json.dumps(content | {"generate": given}), "utf-8")
    assert not run("sweep", file, *options, "--dry-run").errors
    other = run("sweep", file, *options, "-G", "extra_headers={X-Key: another}", "--dry-run")
    assert re.search(r"generation option extra_headers: \w{12}, now \w{12}\n", other.errors)


def test_a_fresh_folder_lies_beside(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a-2").mkdir()
    assert fresh_folder(tmp_path / "a") == tmp_path / "a-3"
