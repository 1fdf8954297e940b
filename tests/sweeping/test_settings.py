"""What is wrong with a sweep's settings is said in one line, before anything is run."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.engine import Engine
from tests.sweeping.commanding import run, settings_file


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epoch": 3}, "sweep.yaml: epoch: there is no such field; did you mean 'epochs'?"),
        ({"arms": [{"compressor": "tail", "epoch": 3}]}, "epoch: there is no such field\n"),
        ({"arms": []}, "sweep.yaml: arms: "),
        ({"arms": [{"compressor": "tail", "arguments": {}}]}, "arguments"),
        ({"arms": ["tial"]}, "did you mean 'tail'"),
        ({"arms": ["edit", "edit"]}, "arms: edit is given twice"),
        ({"arms": [{"compressor": "tail", "args": {"tial_tokens": 1}}]}, "tial_tokens"),
        ({"models": ["a", ""]}, "sweep.yaml: models: an empty name"),
        ({"roles": {"judge": "x/y"}}, "sweep.yaml: roles"),
        ({"roles": {"compressor": ["a/b", "c/d"]}}, "one model, not a list"),
        ({"generate": {"temprature": 1}}, "temprature"),
        ({"arms": ["summary"], "budgets": [2000]}, "summary: not fitted: no argument of it"),
        ({"fixtures": ["no-such-fixture"]}, "Error: fixtures: unknown name 'no-such-fixture'"),
        ({"log_dir": "s3://bucket/logs"}, "a sweep needs a folder on this machine"),
    ],
)
def test_a_wrong_setting_is_named(
    settings: dict[str, Any], said: str, tiny: Path, tmp_path: Path
) -> None:
    ended = run("sweep", str(settings_file(tmp_path, tiny, **settings)))
    assert ended.code != 0
    assert said in ended.errors
    assert "Traceback" not in ended.errors
    assert not (tmp_path / "sweep").exists(), "nothing is half-written"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("arms: [a", "not YAML"),
        ("1: 2", "must be a mapping of settings"),
        ("", "must be a mapping of settings"),
        ("models: x/y", "arms: none are given"),
    ],
)
def test_a_file_that_is_no_settings_is_refused(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    assert "cannot be read" in run("sweep", str(file)).errors
    file.write_text(content, encoding="utf-8")
    ended = run("sweep", str(file))
    assert ended.code != 0
    assert said in ended.errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model-role", "judge=a/b"], "'judge' is no role"),
        (["--model-role", "grader"], "is not of the form NAME=VALUE"),
        (["--budgets", "2k"], "options: budgets"),
        (["--models", "nobody/nothing"], "models: 'nobody/nothing'"),
        ([], "arms: none are given"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], said: str, tiny: Path) -> None:
    given = ["--arms", "tail", "--fixtures", str(tiny)] if arguments else []
    ended = run("sweep", *given, *arguments, "--log-dir", str(tiny.parent / "logs"))
    assert ended.code != 0
    assert said in ended.errors


@pytest.mark.parametrize("mark", ["#", "?", "%41"])
def test_a_folder_whose_logs_inspect_could_not_read_is_refused(
    mark: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, folder = str(settings_file(tmp_path, tiny)), tmp_path / f"a{mark}b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("compression_eval.sweeping.commands.engine_of", lambda *_: Engine())
    for name in ("logs", str(folder), f"memory://bucket/a{mark}b/logs"):
        ended = run("sweep", file, "--engine", "ray", "--log-dir", name)
        assert ended.code == 1
        assert f"a{mark}b" in ended.errors
        assert f"Inspect cannot read logs in a folder with '{mark}' in its path" in ended.errors
    assert not list(folder.iterdir())


def test_a_grader_is_kept_where_the_embedded_model_answers(tiny: Path, tmp_path: Path) -> None:
    given = settings_file(tmp_path, tiny, roles={"grader": "mockllm/model"})
    ended = run("estimate", str(given))
    assert ended.code == 0, ended.errors
    assert "mockllm/model" in ended.output
