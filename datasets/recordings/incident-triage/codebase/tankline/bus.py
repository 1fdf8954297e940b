"""The bus: topics in memory, with retries at fixed distances and a place for what is given up.

Topics of the results:

    lab.results          fresh from the file
    lab.results.retry    tried and not matched, waiting
    lab.results.parked   given up after `max_attempts`; a person has to look (since labfeed 2.7.0)
    lab.results.dead     the same until labfeed 2.6; nothing is written there any more
"""

from datetime import datetime, timedelta

from tankline.model import Message


class Bus:
    def __init__(self) -> None:
        self.topics: dict[str, list[Message]] = {}
        self.waiting: list[tuple[datetime, int, Message]] = []
        self._serial = 0

    def put(self, topic: str, message: Message) -> None:
        self.topics.setdefault(topic, []).append(message)

    def depth(self, topic: str) -> int:
        return len(self.topics.get(topic, []))

    def later(self, at: datetime, minutes: int, message: Message) -> None:
        self._serial += 1
        self.waiting.append((at + timedelta(minutes=minutes), self._serial, message))

    def due(self, at: datetime) -> list[Message]:
        """Take what is due, oldest first."""
        ready = sorted((w for w in self.waiting if w[0] <= at), key=lambda w: (w[0], w[1]))
        self.waiting = [w for w in self.waiting if w[0] > at]
        return [message for _, _, message in ready]
