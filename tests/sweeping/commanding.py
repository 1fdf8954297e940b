"""The two commands, run as a user runs them, on a fixture of a dozen messages."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from inspect_ai.log import EvalSample, list_eval_logs, read_eval_log_samples

from compression_eval.cli import main
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, COMPRESSES, GRADES

EMBEDDED = "embedded/lexical"


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    output: str
    errors: str


def run(*arguments: str) -> Ended:
    """Run ``compression-eval`` with arguments."""
    result = CliRunner().invoke(main, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def settings_file(folder: Path, fixture: Path, **settings: Any) -> Path:
    """Write settings for a small fixture: two arms, two compressions, no controls."""
    content: dict[str, Any] = {
        "arms": [
            {"compressor": "anchored", "args": small.BUDGETS},
            {"compressor": "tail", "args": {"tail_tokens": 60}},
        ],
        "controls": False,
        "epochs": 2,
        "fixtures": [str(fixture)],
        "log_dir": str(folder / "sweep"),
    }
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(content | settings), encoding="utf-8")
    return path


def scripted_models() -> dict[str, Any]:
    """Return settings that bind every role to a scripted model."""
    return {
        "models": [f"scripted/{ANSWERS}"],
        "roles": {"grader": f"scripted/{GRADES}", "compressor": f"scripted/{COMPRESSES}"},
    }


def samples(folder: Path) -> list[EvalSample]:
    """Return all samples of all logs in a folder."""
    return [sample for log in list_eval_logs(str(folder)) for sample in read_eval_log_samples(log)]
