"""Anthropic with its compaction, as the vendor documents it, for a loopback server."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.vendors import anthropic_wire
from tests.e2e.vendors.wire import Asked, Broken, Failed, Part, RefusedError, Said, need

Body = dict[str, Any]

BETA = "compact-2026-01-12"
SUMMARY = "Logins failed with E4401; auth/session.py was edited; docs/retry.md is next."
STUB: Body = {"type": "text", "text": "(compaction block)"}


@dataclass
class AnthropicRules:
    """A vendor that compacts above a trigger, and checks what comes back.

    It serves as the wire of `tests.e2e.vendors.server.serving`, and `speak` as its models' speech.
    """

    failed: Failed | Broken | None = None
    """What a request for compaction is answered instead."""
    content: str | None = SUMMARY
    """Content of the returned block."""
    tokens: int = 60_000
    """Input tokens that it counts in any conversation."""
    refused: list[str] = field(default_factory=list)
    """Why requests were not accepted."""

    def parts(self, path: str, body: Body) -> list[Part]:
        """Check the conversation itself; compaction blocks are left to `speak`."""
        messages = [
            {
                **message,
                "content": [
                    STUB if block["type"] == "compaction" else block
                    for block in anthropic_wire.blocks(message)
                ],
            }
            for message in body["messages"]
        ]
        if _blocks(body["messages"][:1]):
            messages.insert(0, {"role": "user", "content": [STUB]})
        return anthropic_wire.parts(path.partition("?")[0], {**body, "messages": messages})

    def speak(self, asked: Asked) -> str | Said | Failed | Broken:
        """Answer a request, or refuse it as the vendor would."""
        try:
            self._check(asked)
        except RefusedError as problem:
            self.refused.append(str(problem))
            return Failed(400, "invalid_request_error", str(problem))
        if self.failed and _wants_pause(asked.body):
            return self.failed
        return f"The code was E4401 (reply {asked.number})."

    def _check(self, asked: Asked) -> None:
        headers = {name.lower(): value for name, value in asked.headers.items()}
        knows = BETA in headers.get("anthropic-beta", "").split(",")
        for edit in _edits(asked.body):
            need(knows, "context_management: Extra inputs are not permitted")
            need(edit["trigger"]["value"] >= 50_000, "trigger.value: at least 50000")
        last = asked.body["messages"][-1]["role"]
        need(last == "user", "This model does not accept an assistant message prefill.")
        blocks = _blocks(asked.body["messages"])
        need(len(blocks) <= 1, "more than one compaction block")
        need(not blocks or _edits(asked.body), "compaction: block without context_management")

    def reply(self, asked: Asked, said: Said) -> Body:
        """Put a reply into the vendor's form: a block, or an ordinary reply."""
        whole = anthropic_wire.reply(asked, said)
        triggers = [edit["trigger"]["value"] for edit in _edits(asked.body)]
        if not _wants_pause(asked.body) or min(triggers) > self.tokens:
            return whole
        iteration = {
            "type": "compaction",
            "input_tokens": 900,
            "output_tokens": 40,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 100,
        }
        return {
            **whole,
            "content": [{"type": "compaction", "content": self.content}],
            "stop_reason": "compaction",
            "usage": {**whole["usage"], "iterations": [iteration]},
        }

    def stream(self, whole: Body) -> Iterator[tuple[str, Body]]:
        """Yield a reply as the events that it is streamed in."""
        return anthropic_wire.stream(whole)

    def error(self, failed: Failed) -> Body:
        """Put an error into the vendor's form."""
        return anthropic_wire.error(failed)


def _edits(body: Body) -> list[Body]:
    found: list[Body] = (body.get("context_management") or {}).get("edits", [])
    return found


def _wants_pause(body: Body) -> bool:
    return any(edit.get("pause_after_compaction") for edit in _edits(body))


def _blocks(messages: list[Body]) -> list[Body]:
    found = [block for message in messages for block in anthropic_wire.blocks(message)]
    return [block for block in found if block["type"] == "compaction"]
