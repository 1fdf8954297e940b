"""Trace one request of the recorded traffic through the middleware.

    python -m scripts.trace_login --at 06:14:07
"""

import argparse
import logging

from infra.clock import show
from scripts.common import Replay, at_time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", required=True, help="first request at or after this time")
    parser.add_argument("--worker")
    parser.add_argument("--path", default="/api/auth/login")
    parser.add_argument("--redis-timeout-s", type=int)
    parser.add_argument("--count", type=int, default=1)
    options = parser.parse_args()
    logging.getLogger("ferrygate").setLevel(logging.CRITICAL)

    replay = Replay(redis_timeout_s=options.redis_timeout_s)
    start = at_time(replay, options.at)
    left = options.count
    for outcome in replay.run(worker=options.worker):
        if outcome.at < start or outcome.request.path != options.path:
            continue
        request, response = outcome.request, outcome.response
        print(f"{show(outcome.at)} {outcome.worker} {request.id} {request.method} {request.path}")
        print(f"  origin   {request.headers.get('origin', '(none)')}")
        print(f"  client   {request.client}")
        depth = 0
        for stage, text in request.notes:
            depth -= text.startswith(("leave", "raised"))
            print(f"  {'  ' * depth}{stage}: {text}")
            depth += text == "enter"
        data = response.data() or {}
        shown = data if "error" in data else f"fields {', '.join(sorted(data))} (hidden)"
        print(f"  answer   {response.status} {shown}")
        for name in sorted(response.headers):
            value = response.headers[name]
            if name == "Set-Cookie":
                value = value.partition("=")[0] + "=(hidden)"
            print(f"  header   {name}: {value}")
        left -= 1
        if not left:
            break


if __name__ == "__main__":
    main()
