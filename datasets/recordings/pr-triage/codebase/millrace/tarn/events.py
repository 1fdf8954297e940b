"""Inbound Tarn webhooks: from envelope to Event."""

from dataclasses import dataclass


class UnsupportedEnvelope(ValueError):
    """The envelope version is one this adapter does not know."""


@dataclass(frozen=True)
class Event:
    kind: str
    delivery_id: str
    room: str
    message_id: str
    author: str
    text: str


def parse_event(envelope):
    version = envelope.get("envelope", 1)
    if version not in (1, 2):
        raise UnsupportedEnvelope(f"envelope version {version!r}")
    data = envelope["data"]
    return Event(
        kind=envelope["type"],
        delivery_id=envelope["delivery_id"],
        room=data["room"],
        message_id=data["message"],
        author=data.get("author", ""),
        text=data.get("text", ""),
    )
