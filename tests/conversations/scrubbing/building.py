"""Small conversations for the scrubber, and what is left of them."""

import json
from collections.abc import Sequence
from typing import Any

from compression_eval.conversations.scrubbing import (
    PROFILES,
    Pseudonyms,
    Scrubbed,
    ScrubSettings,
    audit,
    scrub,
)
from compression_eval.fixtures.models import Fixture

Json = dict[str, Any]


def conversation(*messages: Json, **fields: Any) -> Fixture:
    data = {"name": "demo", "messages": list(messages), **fields}
    return Fixture.model_validate(data)


def said(text: str) -> Fixture:
    """A conversation of one user message."""
    return conversation({"role": "user", "content": text})


def scrubbed(fixture: Fixture, *, only: Sequence[str] = (), **settings: Any) -> Scrubbed:
    if only:
        settings["skip"] = {*PROFILES["default"]} - {*only}
    return scrub(fixture, ScrubSettings.of(**settings), Pseudonyms())


def cleaned(text: str, **settings: Any) -> str:
    """What is left of one message; a second look and a second scrub find nothing in it."""
    chosen = ScrubSettings.of(**settings)
    done = scrub(said(text), chosen, Pseudonyms())
    assert audit(done.fixture, chosen, done) == []
    assert scrub(done.fixture, chosen, Pseudonyms()).fixture == done.fixture
    return done.fixture.messages[0].text


def arguments(done: Scrubbed, index: int) -> Any:
    return json.loads(done.fixture.messages[index].calls[0].function.arguments)
