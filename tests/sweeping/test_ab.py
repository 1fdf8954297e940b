"""Two prompts of one strategy, run and compared by one command."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main


class _Refusing(BaseHTTPRequestHandler):
    """A provider to which no key is right."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


EMBEDDED = ("--model", "embedded/lexical")


@pytest.fixture
def prompts(tmp_path: Path) -> tuple[Path, Path]:
    files = tmp_path / "old.md", tmp_path / "new.md"
    for file in files:
        file.write_text(f"Summarise it, in the way of {file.stem}.", encoding="utf-8")
    return files


def ab(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["ab", *map(str, arguments)])


def test_both_prompts_are_run_and_compared(tmp_path: Path, prompts: tuple[Path, Path]) -> None:
    folder = tmp_path / "logs"
    given = [*prompts, "--fixtures", "feature-impl", "--probe-types", "decision", *EMBEDDED]
    given += ["--log-dir", folder, "--epochs", "2", "--budget", "2000"]
    dry = ab(*given, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "compressor" in dry.stdout
    assert not folder.exists()

    done = ab(*given)
    logs = sorted(folder.glob("*.eval"))
    assert len(logs) == 5, "both prompts and the three controls of a sweep"
    arms = ["--base-arm", "old.md", "--to", str(folder), "--new-arm", "new.md"]
    compared = CliRunner().invoke(main, ["compare", str(folder), *arms])
    assert done.exit_code == compared.exit_code == 3, done.output
    assert compared.stdout in done.stdout

    again = ab(*given)
    assert sorted(folder.glob("*.eval")) == logs, "what was done is not run again"
    assert again.exit_code == 3


def test_an_edited_prompt_takes_the_next_folder_and_the_controls_that_are_there(
    tmp_path: Path, prompts: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [*prompts, "--fixtures", "feature-impl", "--probe-types", "decision", *EMBEDDED]
    given += ["--epochs", "1", "--budget", "2000"]
    assert ab(*given).exit_code == 3
    prompts[1].write_text("Summarise it otherwise.", encoding="utf-8")
    assert ab(*given, "--controls", "logs/ab").exit_code == 3
    assert len(list((tmp_path / "logs" / "ab-2").glob("*.eval"))) == 2, "the prompts alone"
    named = ab(*given, "--log-dir", "logs/ab")
    assert named.exit_code == 2
    assert "--log-dir" in named.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([*EMBEDDED, "--compressor", "tail"], "takes no prompt"),
        ([*EMBEDDED, "--fixtures", "nowhere"], "nowhere"),
        ([], "name a language model"),
        ([*EMBEDDED, "--controls", "."], "--controls"),
        ([*EMBEDDED, "--model-role", "grader=openai/absent"], "grader: 'openai/absent'"),
        ([*EMBEDDED, "--model-role", "compressor=openai/absent"], "compressor: 'openai/absent'"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(
    tmp_path: Path,
    prompts: tuple[Path, Path],
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    with HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        Thread(target=server.serve_forever, daemon=True).start()
        done = ab(*prompts, "--log-dir", tmp_path / "logs", *options)
        server.shutdown()
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "logs").exists()


def test_one_prompt_is_no_comparison(tmp_path: Path, prompts: tuple[Path, Path]) -> None:
    done = ab(prompts[0], prompts[0], "--log-dir", tmp_path / "logs")
    assert done.exit_code == 2
    assert "the same prompt" in done.stderr
