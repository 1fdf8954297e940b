"""Rules that a reading has to keep."""

import json
import logging
from collections import Counter

from sluicework.files import Files
from sluicework.model import Reading, describe

log = logging.getLogger("sluicework.validate")


class Validator:
    """Applies data/rules.json; counts what was thrown out by its reason."""

    def __init__(self, files: Files, night: str) -> None:
        self.files = files
        self.night = night
        self.thrown_out: Counter[str] = Counter()

    def rules(self) -> dict[str, int]:
        return dict(json.loads(self.files.read("data/rules.json"))["limits"])

    def keep(self, reading: Reading) -> bool:
        """Whether a reading keeps all rules."""
        reason = self._reason(reading)
        if reason:
            self.thrown_out[reason] += 1
            log.debug("out: %s %s" % (reason, describe(reading)))
        return not reason

    def _reason(self, reading: Reading) -> str:
        limits = self.rules()
        if not limits["min_litres"] <= reading.litres <= limits["max_litres"]:
            return "litres"
        if reading.taken() > reading.arrived():
            return "taken after arrival"
        if (reading.arrived() - reading.taken()).total_seconds() > limits["max_delay_h"] * 3600:
            return "too late"
        if reading.taken().strftime("%Y-%m-%d") != self.night:
            return "other day"
        return ""
