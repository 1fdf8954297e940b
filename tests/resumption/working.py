"""A small conversation with a code base and two continuation tasks, and agents that go on."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from compression_eval.resumption.bubblewrap import missing
from tests.e2e import small

TASK = "compression_eval/resumption"
LACKS = missing()
"""Why bubblewrap does not work here."""
STORES = {"run": "cat auth/session.py", "contains": ["sessions-b"]}
SOLUTION = "sed -i s/sessions-a/sessions-b/ auth/session.py"
TASKS: dict[str, Any] = {
    "fixture": "tiny",
    "codebase": "code",
    "tasks": [
        {
            "id": "rename",
            "message": "The store is called sessions-b from today. Change it where it is set.",
            "checks": [
                {"what": "the setting", **STORES},
                {"what": "the old name", "run": "grep -r sessions-a auth", "expect_exit": 1},
            ],
            "constraints": [
                {
                    "what": "vendor/ is as it was",
                    "kind": "rule",
                    "probe": "off-limits",
                    "asked": ["Vendor"],
                    "run": "cat vendor/pool.py",
                    "contains": ["sessions-a"],
                    "violation": "sed -i s/sessions-a/sessions-b/ vendor/*.py",
                }
            ],
            "solution": SOLUTION,
        }
    ],
}
BANK: dict[str, Any] = {
    "fixture": "tiny",
    "probes": [
        {
            "id": "off-limits",
            "type": "recall",
            "question": "Which folder must not change?",
            "expected_facts": [{"fact": "never touch vendor/", "evidence": [1]}],
        }
    ],
}


def write(folder: Path, tasks: dict[str, Any] = TASKS, bank: dict[str, Any] | None = BANK) -> Path:
    """Write fixture, code base and tasks with their bank, and return the fixture's file."""
    code = folder / "continuations" / "code"
    for path, text in (
        ("auth/session.py", "STORE = 'sessions-a'\nRETRIES = 7\n"),
        ("vendor/pool.py", "DEFAULT = 'sessions-a'\n"),
    ):
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        (code / path).write_text(text)
    (folder / "continuations" / "tiny.yaml").write_text(yaml.safe_dump(tasks))
    if bank:
        (folder / "continuations" / "tiny.probes.json").write_text(json.dumps(bank))
    fixture = folder / "fixtures" / "tiny.json"
    fixture.parent.mkdir(exist_ok=True)
    fixture.write_text(json.dumps(small.conversation()))
    return fixture


def calls(tool: str, **arguments: Any) -> ModelOutput:
    """Return a reply that calls a tool."""
    return _with_usage(ModelOutput.for_tool_call("mockllm/model", tool, arguments))


def says(text: str) -> ModelOutput:
    """Return a reply that ends the turn."""
    return _with_usage(ModelOutput.from_content("mockllm/model", text))


def _with_usage(output: ModelOutput) -> ModelOutput:
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return output


def agent(*replies: ModelOutput) -> Model:
    """Return a model that gives these replies, one after another."""
    return get_model("mockllm/model", custom_outputs=list(replies))


def resumed(
    fixture: Path | str, model: Model, log_dir: Path, more: Iterable[Any] = (), **arguments: Any
) -> EvalLog:
    """Run the task on this machine, in bubblewrap where it works; nothing is compressed."""
    given = {"fixtures": str(fixture), "compressor": "full", **arguments}
    given = {"sandbox": "local", "unsafe": LACKS is not None, **given}
    options = {"display": "plain", "log_realtime": False, **dict(more)}
    (log,) = inspect_eval(TASK, task_args=given, model=model, log_dir=str(log_dir), **options)
    return log
