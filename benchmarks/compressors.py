"""Wall time and peak memory of every strategy on the long fixture and on one ten times as long.

    python -m benchmarks.compressors                 # all strategies
    python -m benchmarks.compressors masking pi      # these

Each strategy runs in a process of its own, for each length, three times or more, of which the
fastest counts; memory is measured in a further run, because measuring it costs time. What is
measured is a whole compression as a run does it: the strategy, token counts, regions, checks, and
the search for the probes' facts. The model is local and instant. The longer conversation is the
fixture's messages repeated ten times with new call ids and a line of its own in every message, so
that no cache of texts can make it cheaper than a real one. A ratio of ten is linear. On a machine
that is busy with other things the ratio of processor time says more than that of wall time.
"""

import argparse
import json
import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import anyio
from inspect_ai.model import get_model

import benchmarks.models  # noqa: F401 - registers the model
from compression_eval.compressors.names import SUFFIX
from compression_eval.compressors.registry import COMPRESSORS, compressor_spec
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.tokens import token_counter
from compression_eval.facts.records import track
from compression_eval.fixtures.conversation import declared_tools
from compression_eval.fixtures.loading import load_pairs
from compression_eval.fixtures.models import Fixture

FIXTURE = "401-debug"
MODEL = "bench/0-0"
TIMES = 10
ROUNDS = 3
MOST_ROUNDS = 20
ENOUGH = 4.0
"""Seconds after which more rounds are not worth waiting for."""
WIDTH = 26
SECONDS = 300
"""Time limit of one process."""


def repeated(fixture: Fixture, times: int) -> Fixture:
    """Return a fixture whose conversation is had several times, each time a little different."""
    plain = fixture.model_dump(mode="json", exclude_none=True)
    system = [message for message in plain["messages"] if message["role"] == "system"]
    copies = [message for number in range(times) for message in _copy(plain["messages"], number)]
    return Fixture.model_validate({**plain, "messages": [*system, *copies], "cuts": []})


def _copy(messages: list[dict[str, Any]], number: int) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message["role"] == "system":
            continue
        changed = json.loads(json.dumps(message))
        changed["content"] = f"{message.get('content') or ''}\n({number})"
        for call in changed.get("tool_calls") or []:
            call["id"] = f"{call['id']}-{number}"
        if "tool_call_id" in changed:
            changed["tool_call_id"] += f"-{number}"
        yield changed


async def measured(name: str, times: int) -> dict[str, Any]:
    """Return seconds, peak memory and status of one strategy on one length."""
    (pair,) = load_pairs([FIXTURE], None)
    fixture = repeated(pair.fixture, times)
    cut = len(fixture.messages)
    plan = CompressionPlan(
        fixture=fixture,
        tools=declared_tools(fixture, cut),
        cuts=(cut,),
        spec=compressor_spec(name),
        tracked=track(fixture, cut, pair.bank.probes),
    )
    await plan.history()
    model = get_model(MODEL)
    seconds = processor = strategy = math.inf
    rounds = 0
    begun = time.perf_counter()
    while rounds < ROUNDS or (rounds < MOST_ROUNDS and time.perf_counter() - begun < ENOUGH):
        rounds += 1
        _forget_counts()
        started, used = time.perf_counter(), time.process_time()
        state = await compress(plan, 0, model)
        seconds = min(seconds, time.perf_counter() - started)
        processor = min(processor, time.process_time() - used)
        strategy = min([strategy, *(cycle.seconds for cycle in state.cycles)])
    _forget_counts()
    tracemalloc.start()
    await compress(plan, 0, model)
    return {
        "messages": cut,
        "tokens": state.original_tokens,
        "seconds": seconds,
        "processor": processor,
        "strategy": strategy if state.cycles else None,
        "megabytes": tracemalloc.get_traced_memory()[1] / 1e6,
        "status": state.status,
        "failure": state.failure,
    }


def _forget_counts() -> None:
    """Have every round count its tokens again; the vocabulary is loaded before the clock runs."""
    token_counter.cache_clear()
    token_counter().count("")


def in_process(name: str, times: int) -> dict[str, Any]:
    """Return what `measured` does, from a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.compressors", "--child", name, str(times)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "error", "failure": f"not done after {SECONDS} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"status": "error", "failure": last}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def row(name: str) -> str:
    """Return one line of the table."""
    short, long = in_process(name, 1), in_process(name, TIMES)
    if "seconds" not in short or "seconds" not in long:
        failed = long if "seconds" in short else short
        return f"{name:{WIDTH}}not measured: {failed['failure'][:120]}"
    for result in (short, long):
        if result["status"] != "ok":
            return f"{name:{WIDTH}}not measured: {result['status']}, {result['failure'][:120]}"
    cells = f"{name:{WIDTH}}"
    for key, scale, width in (
        ("seconds", 1e3, 9),
        ("processor", 1e3, 9),
        ("strategy", 1e3, 9),
        ("megabytes", 1, 8),
    ):
        if short[key] and long[key]:
            cells += f"{short[key] * scale:{width}.1f}{long[key] * scale:{width}.1f}"
            cells += f"{long[key] / short[key]:7.1f}"
        else:
            cells += " " * (2 * width + 7)
    return cells


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*COMPRESSORS, f"anchored{SUFFIX}"])
    parser.add_argument("--child", nargs=2, metavar=("NAME", "TIMES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, times = arguments.child
        print(json.dumps(anyio.run(measured, name, int(times))))
        return
    for name in arguments.names:
        if name.removesuffix(SUFFIX) not in COMPRESSORS:
            raise SystemExit(f"{name}: unknown strategy, expected {', '.join(COMPRESSORS)}")
    print(f"{FIXTURE} and {TIMES} times as long; tokens counted by {token_counter().name}")
    print(f"model {MODEL}, instant; strategy: without counts, checks and facts")
    heads = (("wall, ms", 18), ("processor, ms", 18), ("strategy, ms", 18), ("peak, MB", 16))
    print(" " * WIDTH + "".join(f"{head:>{width}}{'ratio':>7}" for head, width in heads))
    for name in arguments.names:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
