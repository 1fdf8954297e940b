"""Play the traffic up to a moment and print pools and server-side clients.

    python -m scripts.pool_stats --at 06:20 --at 06:40
"""

import argparse
import logging

from infra.clock import show
from scripts.common import Replay, at_time

COLUMNS = (
    "pool", "in_use", "idle", "oldest_idle_s", "created", "reused", "evicted_idle",
    "exhausted", "high_water",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", action="append", required=True)
    parser.add_argument("--redis-timeout-s", type=int)
    options = parser.parse_args()
    logging.getLogger("ferrygate").setLevel(logging.CRITICAL)

    for text in options.at:
        replay = Replay(redis_timeout_s=options.redis_timeout_s)
        moment = at_time(replay, text)
        for _ in replay.run(until=moment):
            pass
        replay.clock.move_to(moment)
        print(f"== {show(moment)}  redis timeout {replay.server.timeout_s} s")
        print(" ".join(f"{name:>13s}" for name in COLUMNS))
        for app in replay.apps.values():
            for pool in (app.session_pool, app.limit_pool):
                snapshot = pool.snapshot()
                print(" ".join(f"{snapshot[name]!s:>13s}" for name in COLUMNS))
        known = {client["id"]: client for client in replay.server.client_list()}
        print("idle connections in the session pools, and what the server knows of them:")
        for app in replay.apps.values():
            for client_id in app.session_pool.snapshot()["idle_client_ids"]:
                client = known.get(client_id)
                state = (
                    f"connected, idle {client['idle_s']} s, {client['cmds']} commands"
                    if client
                    else "NOT CONNECTED"
                )
                print(f"  {app.worker} client id={client_id}: {state}")
        print()


if __name__ == "__main__":
    main()
