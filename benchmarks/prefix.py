"""How much of what models are sent is in a prefix that the probes of a state share.

    python -m benchmarks.prefix

A provider's prompt cache can serve that part from the second call about a state on. Shares are of
input tokens, counted by the project's own counter, over all calls of a run with the embedded model.
"""

import os
import tempfile
from collections import defaultdict

from inspect_ai import eval  # noqa: A004
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import ChatMessage

from benchmarks.models import BenchAPI
from compression_eval.arguments import TaskArguments
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.conversation import message_text
from compression_eval.record import ProbeRecord
from compression_eval.task import compression_task

ARMS = ("full", "edit", "trim", "tail", "anchored", "regenerative", "none")
MODEL = "bench/0-0"


def run(arm: str, folder: str) -> EvalLog:
    """Return the log of one epoch of an arm, with everything that was sent."""
    (log,) = eval(
        compression_task(TaskArguments(compressor=arm)),
        model=MODEL,
        model_roles={"grader": MODEL, "compressor": MODEL},
        epochs=1,
        log_dir=folder,
        display="none",
    )
    if log.status != "success":
        raise SystemExit(f"{arm}: the run ended with status {log.status}: {log.error}")
    return read_eval_log(log.location, resolve_attachments=True)


def sent(messages: list[ChatMessage]) -> str:
    """Return what a call sends as one text."""
    return "\n".join(f"{message.role}\n{message_text(message)}" for message in messages)


def state_of(sample: EvalSample) -> str:
    """Return the id of the state that a sample is about."""
    record = sample.store_as(ProbeRecord).sample
    if record is None:
        raise SystemExit(f"{sample.id}: no record")
    return record.state.state_id


def shares(log: EvalLog) -> dict[str, float]:
    """Return the shared share of the input tokens of answers and of gradings."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for sample in log.samples or []:
        for event in sample.events:
            if isinstance(event, ModelEvent) and event.role != "compressor":
                kind = "grading" if event.role == "grader" else "answers"
                groups[kind, state_of(sample)].append(sent(event.input))
    count = token_counter().count
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (kind, _), texts in groups.items():
        shared = count(os.path.commonprefix(texts))  # noqa: RUF071 - of texts, not of paths
        totals[kind][0] += shared * len(texts)
        totals[kind][1] += sum(count(text) for text in texts)
    return {kind: shared / whole for kind, (shared, whole) in totals.items()}


def main() -> None:
    """Print one line per arm."""
    print(f"tokens counted by {token_counter().name}; model {MODEL} ({BenchAPI.__name__})")
    print(f"{'arm':14}{'answers':>9}{'grading':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for arm in ARMS:
            found = shares(run(arm, folder))
            print(f"{arm:14}{found['answers']:9.1%}{found['grading']:9.1%}")


if __name__ == "__main__":
    main()
