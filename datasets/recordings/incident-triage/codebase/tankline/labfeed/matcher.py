"""From a result to its pick-up."""

from datetime import datetime

from tankline.bus import Bus
from tankline.intake.register import Register
from tankline.labfeed.bottles import LabelError, normalise
from tankline.log import Log
from tankline.model import Message, Pickup


class Matcher:
    def __init__(self, register: Register, bus: Bus, log: Log, env: str, settings: dict[str, dict]) -> None:
        self.register = register
        self.bus = bus
        self.log = log
        self.env = env
        self.labfeed = settings["labfeed"]
        self.window_h = settings["match"]["window_h"]

    def handle(self, at: datetime, message: Message) -> Pickup | None:
        """Try to attach a result; return the pick-up it went to."""
        result = message.result
        message.attempts += 1
        try:
            bottle = normalise(result.label)
        except LabelError as error:
            self._park(at, message, "label", str(error))
            return None
        pickup = self.register.by_bottle(bottle, at, self.window_h)
        if pickup is None:
            self._again(at, message, bottle)
            return None
        earlier = self.register.result_of(pickup.id)
        if earlier is not None:
            # The lab sends a file again now and then.
            self.log.write(at, "labfeed", self.env, "debug", "result.duplicate",
                           result=result.id, bottle=bottle, pickup=pickup.id, kept=earlier[0])
            return None
        self.register.attach(pickup, result)
        self.log.write(at, "labfeed", self.env, "info", "result.matched",
                       result=result.id, bottle=bottle, pickup=pickup.id, tries=message.attempts)
        return pickup

    def _again(self, at: datetime, message: Message, bottle: str) -> None:
        waits = self.labfeed["retry_min"]
        if message.attempts >= self.labfeed["max_attempts"]:
            self._park(at, message, "unmatched", bottle)
            return
        wait = waits[min(message.attempts, len(waits)) - 1]
        self.bus.later(at, wait, message)
        self.log.write(at, "labfeed", self.env, "info", "result.retry",
                       result=message.result.id, bottle=bottle, attempt=message.attempts, wait_min=wait)

    def _park(self, at: datetime, message: Message, reason: str, detail: str) -> None:
        self.bus.put(self.labfeed["park_topic"], message)
        self.log.write(at, "labfeed", self.env, "warning", "result.parked",
                       result=message.result.id, reason=reason, detail=detail, code="LF-31")
