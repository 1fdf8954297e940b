"""A conversation of a dozen messages with a bank of three probes, and runs on it."""

import json
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample

from compression_eval.record import ProbeRecord, SampleRecord, StateRecord
from tests.e2e.scripted import ANSWERS, COMPRESSES, GRADES

TASK = "compression_eval/compression"
PROBES = 3
EPOCHS = 3
ROLES: dict[str, Any] = {"grader": f"scripted/{GRADES}", "compressor": f"scripted/{COMPRESSES}"}
BUDGETS = {"tail_tokens": 60, "summary_tokens": 200}
"""So small that something of a short conversation is left to be summarised."""


def call(id_: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool call in the OpenAI chat form."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": id_, "type": "function", "function": function}


def conversation(name: str = "tiny") -> dict[str, Any]:
    """Return a fixture as its file contains it; two calls of message 7 have results in 8 and 9."""
    listing = "\n".join(f"line {n}: session check of worker {n} passed" for n in range(30))
    return {
        "name": name,
        "messages": [
            {"role": "system", "content": "You are a coding agent."},
            {"role": "user", "content": "Logins fail. Find out why; never touch vendor/."},
            {
                "role": "assistant",
                "content": "I look at the log first.",
                "tool_calls": [call("c1", "bash", command="tail login.log")],
            },
            {"role": "tool", "tool_call_id": "c1", "content": f"{listing}\nerror code E4401"},
            {
                "role": "assistant",
                "content": "The session store rejects stale connections.",
                "tool_calls": [call("c2", "edit_file", path="auth/session.py", retries=3)],
            },
            {"role": "tool", "tool_call_id": "c2", "content": "edited auth/session.py"},
            {"role": "user", "content": "Set the retry limit to 7, not 3."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    call("c3", "edit_file", path="auth/session.py", retries=7),
                    call("c4", "bash", command="python -m unittest"),
                ],
            },
            {"role": "tool", "tool_call_id": "c3", "content": "edited auth/session.py"},
            {"role": "tool", "tool_call_id": "c4", "content": "Ran 14 tests\nOK"},
            {"role": "assistant", "content": "All green. Next I document it in docs/retry.md."},
        ],
    }


def bank(name: str = "tiny") -> dict[str, Any]:
    """Return the bank that belongs to `conversation`."""
    return {
        "fixture": name,
        "probes": [
            {
                "id": "code",
                "type": "recall",
                "question": "Which error code stood in the log?",
                "expected_facts": [{"fact": "E4401", "evidence": [3]}],
            },
            {
                "id": "file",
                "type": "artifact",
                "question": "Which source file was edited?",
                "expected_facts": [{"fact": "auth/session.py", "evidence": [4, 5]}],
            },
            {
                "id": "next",
                "type": "continuation",
                "question": "Which document is to be written next?",
                "expected_facts": [{"fact": "docs/retry.md", "evidence": [10]}],
            },
        ],
    }


def write(
    folder: Path,
    name: str = "tiny",
    *,
    fixture: dict[str, Any] | None = None,
    probes: dict[str, Any] | None = None,
) -> Path:
    """Write a fixture and its bank side by side; returns the fixture's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(fixture or conversation(name)), encoding="utf-8")
    bank_path = folder / f"{name}.probes.json"
    bank_path.write_text(json.dumps(probes or bank(name)), encoding="utf-8")
    return path


def run(log_dir: Path, fixtures: Any, *, epochs: int | None = None, **given: Any) -> EvalLog:
    """Run the task on scripted models, or on those given as ``model`` and ``model_roles``.

    Args:
        log_dir: Where the log goes.
        fixtures: A file of a fixture or several, or whatever else the argument is to be.
        epochs: Epochs instead of the task's own.
        given: ``model``, ``model_roles`` and ``options`` (of ``eval()``); the rest are arguments
            of the task, where states are not read by the grader unless that is asked for.
    """
    if isinstance(fixtures, Path):
        fixtures = str(fixtures)
    elif isinstance(fixtures, list):
        fixtures = [str(item) if isinstance(item, Path) else item for item in fixtures]
    model = given.pop("model", f"scripted/{ANSWERS}")
    roles = given.pop("model_roles", ROLES)
    # Nobody watches: without the buffer for a live viewer a run costs a quarter less.
    options: dict[str, Any] = {"log_realtime": False, **given.pop("options", {})}
    given.setdefault("compressor_args", BUDGETS)
    given.setdefault("state_facts", "match")
    logs = inspect_eval(
        TASK,
        task_args={"fixtures": fixtures, **given},
        model=model,
        model_roles=roles,
        epochs=epochs,
        log_dir=str(log_dir),
        display="log",
        **options,
    )
    return logs[0]


def record(sample: EvalSample) -> SampleRecord:
    """Return what a sample's store contains."""
    found = sample.store_as(ProbeRecord).sample
    assert found is not None, "the sample has no record"
    return found


def state(sample: EvalSample) -> StateRecord:
    """Return the state that a sample was about."""
    return record(sample).state


def samples(log: EvalLog, status: str = "success") -> list[EvalSample]:
    """Return the samples of a run that went well, or ended as is said."""
    assert log.status == status, log.error
    return log.samples or []


def values(sample: EvalSample, scorer: str) -> dict[str, float]:
    """Return what a scorer gave a sample, by key."""
    assert sample.scores is not None
    return {
        key: float(value)
        for key, value in sample.scores[scorer].as_dict().items()
        if isinstance(value, int | float)
    }


def means(log: EvalLog) -> dict[str, float]:
    """Return the mean (or the count) under every key of every scorer."""
    assert log.results is not None
    return {score.name: next(iter(score.metrics.values())).value for score in log.results.scores}


def names(sample: EvalSample | Sample) -> str:
    """Return the fixture, probe and cut that a sample's id ends with."""
    return str(sample.id).partition("/")[2]
