"""Replay recorded traffic and print the access log, a summary, or both.

    python -m scripts.replay --summary
    python -m scripts.replay --worker w2 --until 06:20 --debug
"""

import argparse
import logging
from collections import Counter

from scripts.common import Outcome, Replay, at_time, log_to_stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="prod")
    parser.add_argument("--worker", help="print only this worker (all of them run)")
    parser.add_argument("--until", help="stop at this time, for example 06:20")
    parser.add_argument("--redis-timeout-s", type=int, help="instead of the value in ops/")
    parser.add_argument("--skip-middleware", action="append", default=[])
    parser.add_argument("--summary", action="store_true", help="print only the summary")
    parser.add_argument("--debug", action="store_true", help="print internal reasons as well")
    options = parser.parse_args()

    replay = Replay(
        options.env,
        redis_timeout_s=options.redis_timeout_s,
        skip=frozenset(options.skip_middleware),
    )
    if not options.summary:
        log_to_stdout(replay.clock, logging.DEBUG if options.debug else logging.INFO)
        if options.worker:
            names = (f"{options.worker} ", f"req={options.worker}-")
            handler = logging.getLogger("ferrygate").handlers[0]
            handler.addFilter(lambda record: record.getMessage().startswith(names))
    else:
        logging.getLogger("ferrygate").setLevel(logging.CRITICAL)
    until = at_time(replay, options.until) if options.until else None
    outcomes = list(replay.run(until, options.worker))
    if options.summary:
        print_summary(replay, outcomes)


def print_summary(replay: Replay, outcomes: list[Outcome]) -> None:
    server = replay.server
    print(f"redis: timeout {server.timeout_s} s, maxclients {server.maxclients}, "
          f"closed idle {server.closed_idle}, refused {server.refused}")
    print(f"requests: {len(outcomes)} answered, {replay.skipped} left out (user not signed in)")
    for title, path in (("login", "/api/auth/login"), ("other", None)):
        chosen = [o for o in outcomes if (o.request.path == "/api/auth/login") == (path is not None)]
        print(f"\n{title:8s}" + "".join(f"{worker:>8s}" for worker in replay.settings.workers))
        counts = Counter((o.response.status, o.worker) for o in chosen)
        for status in sorted({o.response.status for o in chosen}):
            row = "".join(f"{counts[status, w]:8d}" for w in replay.settings.workers)
            print(f"  {status}   {row}")
    refused = [o for o in outcomes if o.response.status == 401]
    issued = sum(any(stage == "token" for stage, _ in o.request.notes) for o in refused)
    print(f"\n401 in all: {len(refused)}, of them with a token already issued: {issued}")


if __name__ == "__main__":
    main()
