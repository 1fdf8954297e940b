"""Replay a night from data/: ``python -m tankline.replay --out FOLDER [--until HH:MM]``.

Runs the services of this checkout over the pick-ups, lab files and arrivals of a day and writes
the logs they would have written. No text is sent and nothing is posted.
"""

import argparse
import json
from datetime import datetime, timedelta
from pathlib import Path

from tankline import data
from tankline.bus import Bus
from tankline.config import env_of_bridge, load
from tankline.gate.bridge import Bridge
from tankline.intake.register import Register
from tankline.labfeed.formats import read
from tankline.labfeed.matcher import Matcher
from tankline.log import Log
from tankline.model import Message

LAB_ENV = {"K": "prod-north", "W": "prod-south"}
"""First letter of a lab file to the environment of the labfeed that reads it."""


class Replay:
    """One day, minute by minute."""

    def __init__(self, day: str, folder: Path = data.ROOT / "data/lab") -> None:
        self.day = day
        self.start = datetime.strptime(day, "%Y-%m-%d")
        self.log = Log()
        self.register = Register()
        self.buses = {env: Bus() for env in LAB_ENV.values()}
        self.matchers = {
            env: Matcher(self.register, bus, self.log, env, load(env)) for env, bus in self.buses.items()
        }
        self.arrivals = [a for a in data.arrivals() if a.at.strftime("%Y-%m-%d") == day]
        names = sorted({a.bridge for a in self.arrivals})
        self.bridges = {name: Bridge(name, env_of_bridge(name), self.register, self.log) for name in names}
        self.pickups = sorted(data.pickups(), key=lambda p: (p.registered_at, p.id))
        self.files = sorted((folder / day).glob("*.csv"), key=lambda path: (path.stem[2:], path.name))

    def run(self, until: str = "09:00") -> Log:
        end = self.start + timedelta(hours=int(until[:2]), minutes=int(until[3:]))
        pickups, files, arrivals = list(self.pickups), list(self.files), list(self.arrivals)
        at = self.start
        while at <= end:
            while pickups and pickups[0].registered_at <= at:
                self.register.add(pickups.pop(0))
            while files and files[0].stem[2:] <= at.strftime("%H%M"):
                path = files.pop(0)
                matcher = self.matchers[LAB_ENV[path.name[0]]]
                results = read(path)
                self.log.write(at, "labfeed", matcher.env, "info", "file.read", file=path.name, results=len(results))
                for result in results:
                    matcher.handle(at, Message(result))
            for env, bus in sorted(self.buses.items()):
                for message in bus.due(at):
                    self.matchers[env].handle(at, message)
            while arrivals and arrivals[0].at <= at:
                arrival = arrivals.pop(0)
                self.bridges[arrival.bridge].arrive(arrival)
            if at.minute % 5 == 0:
                for bridge in self.bridges.values():
                    bridge.poll(at)
            self.tick(at)
            at += timedelta(minutes=1)
        return self.log

    def tick(self, at: datetime) -> None:
        """Called at the end of each minute; for those who measure."""

    def summary(self) -> dict[str, int]:
        count: dict[str, int] = {}
        for entry in self.log.entries:
            key = f"{entry['service']}.{entry['env']}.{entry['event']}"
            count[key] = count.get(key, 0) + 1
        for env, bus in self.buses.items():
            count[f"bus.{env}.lab.results.parked"] = bus.depth("lab.results.parked")
        for name, bridge in self.bridges.items():
            count[f"bridge.{name}.standing"] = len(bridge.waiting)
        return dict(sorted(count.items()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--day", default="2026-03-02")
    parser.add_argument("--until", default="09:00")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    replay = Replay(options.day)
    replay.run(options.until).save(options.out, options.day)
    for key, value in replay.summary().items():
        print(f"{value:6d}  {key}")
    parked = replay.buses["prod-north"].topics.get("lab.results.parked", [])
    (options.out / "parked.jsonl").write_text(
        "".join(json.dumps({**vars(m.result), "measured_at": m.result.measured_at.strftime("%Y-%m-%dT%H:%M")}) + "\n" for m in parked)
    )


if __name__ == "__main__":
    main()
