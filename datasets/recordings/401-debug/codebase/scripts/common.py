"""Replays recorded traffic against in-process workers that share one Redis stand-in."""

import heapq
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.settings import Settings, load
from infra.clock import ManualClock, parse, show
from infra.fake_redis import FakeRedisServer
from web.app import App, build_app
from web.http import Request, Response

ROOT = Path(__file__).resolve().parent.parent
TRAFFIC = ROOT / "data" / "requests-2026-02-27.jsonl"


class ClockFormatter(logging.Formatter):
    """Log lines with the time of the replay instead of the time of day."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__("%(levelname)s %(name)s %(message)s")
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        return f"{show(self._clock.now())} {super().format(record)}"


@dataclass
class Outcome:
    """One replayed request."""

    at: float
    worker: str
    user: str
    request: Request
    response: Response


class Replay:
    """Workers, server and clock of one run."""

    def __init__(
        self,
        environment: str = "prod",
        *,
        redis_timeout_s: int | None = None,
        skip: frozenset[str] = frozenset(),
        traffic: Path = TRAFFIC,
    ) -> None:
        self.events = [json.loads(line) for line in traffic.read_text().splitlines() if line]
        self.clock = ManualClock(parse(self.events[0]["at"]) - 5)
        overrides = {} if redis_timeout_s is None else {"timeout_s": redis_timeout_s}
        conf = ROOT / "ops" / f"redis-{'prod' if environment == 'prod' else 'staging'}.conf"
        self.server = FakeRedisServer.from_conf(conf, self.clock, **overrides)
        self.settings: Settings = load(environment)
        self._skip = skip
        self._deploy = json.loads((ROOT / "ops" / "deploy.json").read_text())["workers"]
        self._generations = dict.fromkeys(self.settings.workers, 0)
        self.apps: dict[str, App] = {name: self._build(name) for name in self.settings.workers}
        self._cookies: dict[str, str] = {}
        self.skipped = 0

    def run(self, until: float | None = None, worker: str | None = None) -> Iterator[Outcome]:
        """Play the traffic in order and yield what came of each request."""
        for at, _, kind, event in self._timeline():
            if until is not None and at > until:
                return
            self.clock.move_to(at)
            if kind == "probe":
                path = self._deploy[event["worker"]]["probe"]
                self.apps[event["worker"]].handle(Request("GET", path, client="balancer"))
            elif kind == "restart":
                name = event["restart"]
                self.apps[name].session_pool.close()
                self.apps[name].limit_pool.close()
                self._generations[name] += 1
                self.apps[name] = self._build(name)
            else:
                outcome = self._request(at, event)
                if outcome and worker in (None, outcome.worker):
                    yield outcome

    def _timeline(self) -> Iterator[tuple[float, int, str, dict[str, Any]]]:
        queue: list[tuple[float, int, str, dict[str, Any]]] = []
        for number, event in enumerate(self.events):
            kind = "restart" if "restart" in event else "request"
            queue.append((parse(event["at"]), number, kind, event))
        last = max(item[0] for item in queue)
        number = len(queue)
        for name in self.settings.workers:
            moment = self.clock.now()
            while moment <= last:
                number += 1
                queue.append((moment, number, "probe", {"worker": name}))
                moment += self._deploy[name]["probe_interval_s"]
        heapq.heapify(queue)
        while queue:
            yield heapq.heappop(queue)

    def _request(self, at: float, event: dict[str, Any]) -> Outcome | None:
        user = event["user"]
        headers = dict(event.get("headers", {}))
        if event.get("signed_in"):
            if user not in self._cookies:
                self.skipped += 1
                return None
            headers["Cookie"] = f"fg_session={self._cookies[user]}"
        body = json.dumps(event["body"]) if "body" in event else ""
        request = Request(event["method"], event["path"], headers, body, client=event["client"])
        response = self.apps[event["worker"]].handle(request)
        cookie = response.headers.get("Set-Cookie", "")
        if cookie:
            self._cookies[user] = cookie.partition(";")[0].partition("=")[2]
        return Outcome(at, event["worker"], user, request, response)

    def _build(self, name: str) -> App:
        return build_app(
            name,
            self.settings,
            self.server,
            self.clock,
            skip=self._skip,
            generation=self._generations[name],
        )


def log_to_stdout(clock: ManualClock, level: int) -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(ClockFormatter(clock))
    root = logging.getLogger("ferrygate")
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False


def at_time(replay: Replay, text: str) -> float:
    """Turn ``06:14`` or ``06:14:30`` into a moment of the replayed day."""
    day = show(replay.clock.now())[:10]
    return parse(f"{day}T{text if text.count(':') == 2 else text + ':59'}Z")
