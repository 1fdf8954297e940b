"""Play the recorded day against a database.

``python -m tools.replay --db PATH --env ENV [--until HH:MM] [--job MODULE:FUNCTION --every S]``

The recording has API calls and cron jobs with their second. A job given by hand is called with the
connection and the settings every S seconds until it returns 0, as a migration would run beside the
traffic. Times are UTC.
"""

import argparse
import importlib
import json
from collections import Counter
from dataclasses import replace
from typing import Any

from tollwick import clock
from tollwick.api import Api
from tollwick.config import ROOT, load
from tollwick.db import connect
from tollwick.jobs import expire, loyalty
from tools.replica import ReplicaModel

TRAFFIC = ROOT / "data" / "traffic-2026-02-27.jsonl"


def play(options: argparse.Namespace) -> None:
    settings = load(options.env)
    if options.mode:
        settings = replace(settings, returns_mode=options.mode)
    connection = connect(options.db, foreign_keys=settings.foreign_keys)
    api = Api(connection, settings)
    replica = ReplicaModel(settings.replica)
    job = None
    if options.job:
        module, _, name = options.job.partition(":")
        job = getattr(importlib.import_module(module), name)
    events = [json.loads(line) for line in TRAFFIC.read_text().splitlines()]
    first = events[0]["at"]
    last = clock.parse(f"2026-02-27 {options.until}:00") if options.until else events[-1]["at"] + 60
    answers: Counter[str] = Counter()
    ids: dict[str, int] = {}
    seen = connection.total_changes
    job_calls = 0
    waiting = iter(events)
    event = next(waiting, None)
    for second in range(first, last):
        while event is not None and event["at"] <= second:
            answers[run(api, settings, event, ids, options.verbose)] += 1
            event = next(waiting, None)
        if job is not None and (second - first) % options.every == 0:
            job_calls += 1
            if not job(connection, settings):
                print(f"job done at {clock.show(second)} after {job_calls} calls")
                job = None
        replica.second(second, connection.total_changes - seen)
        seen = connection.total_changes
    for answer, number in sorted(answers.items()):
        print(f"{number:5} {answer}")
    if job is not None:
        print(f"job not done after {job_calls} calls")
    print(replica.report())


def run(api: Api, settings: Any, event: dict[str, Any], ids: dict[str, int], verbose: bool) -> str:
    """Carry out one event; a return that was opened in the recording is known by its key."""
    if "job" in event:
        if event["job"] == "expire":
            return f"expire: {expire.run(api.connection, settings, event['at'])} returns"
        pairs = [tuple(pair) for pair in event["merges"]]
        return f"loyalty: {loyalty.run(api.connection, settings, pairs)} returns"
    arguments = dict(event["arguments"])
    if "key" in arguments:
        arguments["return_id"] = ids.get(arguments.pop("key"), -1)
    answer = api.call(event["call"], arguments, event["at"])
    if event["call"] == "start" and answer["ok"]:
        ids[event["key"]] = answer["return_id"]
    if verbose or not answer["ok"]:
        print(clock.show(event["at"]), event["call"], json.dumps(answer))
    return event["call"] + (" ok" if answer["ok"] else f" {answer['code']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--db", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--mode", help="returns_mode in place of the configured one")
    parser.add_argument("--until", help="HH:MM, UTC")
    parser.add_argument("--job")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--verbose", action="store_true")
    play(parser.parse_args())
