"""Anthropic with its context management, as the vendor documents it, for a loopback server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from anthropic.types.beta import BetaMessage

from tests.e2e.vendors import anthropic_wire
from tests.e2e.vendors.wire import Asked, Broken, Failed, Part, RefusedError, Said, need

Body = dict[str, Any]

ON_DEMAND = "compact-2026-09-04"
THRESHOLD = "compact-2026-01-12"
CLEARING = "context-management-2025-06-27"
SUMMARY = "Logins failed with E4401; auth/session.py was edited; docs/retry.md is next."
STUB: Body = {"type": "text", "text": "(compaction block)"}


@dataclass
class AnthropicRules:
    """A vendor that signs its blocks and checks what comes back.

    It serves as the wire of `tests.e2e.vendors.server.serving`, and `speak` as its models' speech.
    """

    failed: Failed | Broken | None = None
    """What a request for compaction is answered instead."""
    block: Body | None = field(default_factory=lambda: {"content": SUMMARY})
    """The block to return; None for a reply without content."""
    blocks: int = 1
    signs: bool = True
    stop_reason: str = "compaction"
    tokens: int = 60_000
    """Input tokens that it counts in any conversation."""
    miscounts: int = 0
    """Tool uses that it says it cleared, beside those it did."""
    signed: dict[str, str] = field(default_factory=dict)
    """Content by signature."""
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
        body = asked.body
        headers = {name.lower(): value for name, value in asked.headers.items()}
        betas = set(headers.get("anthropic-beta", "").split(","))
        try:
            self._check_features(body, betas)
            self._check_blocks(body, betas)
        except RefusedError as problem:
            self.refused.append(str(problem))
            return Failed(400, "invalid_request_error", str(problem))
        if self.failed and ("compaction" in body or _edits(body)):
            return self.failed
        return f"The code was E4401 (reply {asked.number})."

    def _check_features(self, body: Body, betas: set[str]) -> None:
        edits = _edits(body)
        if "compaction" in body:
            need(ON_DEMAND in betas, "compaction: Extra inputs are not permitted")
            need("context_management" not in body, "compaction: not with context_management")
            need("stop_sequences" not in body, "compaction: not with stop_sequences")
            choice = body.get("tool_choice", {}).get("type", "auto")
            need(choice not in ("any", "tool"), "compaction: not with a forced tool choice")
            need(body["max_tokens"] >= 4_096, "max_tokens: at least 4096 for compaction")
            need(body["compaction"]["type"] == "summarize", "compaction.type: unknown")
        for edit in edits:
            wanted = THRESHOLD if edit["type"].startswith("compact_") else CLEARING
            need(wanted in betas, "context_management: Extra inputs are not permitted")
            if edit["type"].startswith("compact_"):
                trigger = edit.get("trigger", {"value": 150_000})
                need(trigger["value"] >= 50_000, "trigger.value: at least 50000")
        prefilled = body["messages"][-1]["role"] == "assistant" and "compaction" not in body
        need(not prefilled, "This model does not accept an assistant message prefill.")

    def _check_blocks(self, body: Body, betas: set[str]) -> None:
        blocks = _blocks(body["messages"])
        need(len(blocks) <= 1, "compaction_block_ambiguous: more than one compaction block")
        if not blocks:
            return
        (block,) = blocks
        need(None not in block.values(), "compaction: null fields are not permitted")
        compacting = any(edit["type"].startswith("compact_") for edit in _edits(body))
        first = anthropic_wire.blocks(body["messages"][0])[0]
        if THRESHOLD in betas:
            need(compacting, "compaction: block without context_management")
            need("signature" not in block, "compaction: a signed block beside an edit")
            return
        need(ON_DEMAND in betas, "messages: Input tag 'compaction' found")
        need(not compacting, "compaction: a signed block beside an edit")
        need(first is block, "compaction_block_misplaced: the block must come first")
        signature = block.get("signature")
        need(signature in self.signed, "compaction_signature_invalid: no valid signature")
        need(self.signed[str(signature)] == block["content"], "compaction_content_mismatch")

    def reply(self, asked: Asked, said: Said) -> Body:
        """Put a reply into the vendor's form: a summary, an ordinary reply, or both counts."""
        whole = anthropic_wire.reply(asked, said)
        edits = _edits(asked.body)
        if "compaction" in asked.body:
            whole = self._compacted(whole, signed=self.signs)
        elif any(
            edit["type"].startswith("compact_") and edit["trigger"]["value"] <= self.tokens
            for edit in edits
        ):
            whole = self._compacted(whole, signed=False)
        for edit in edits:
            if edit["type"].startswith("clear_tool_uses"):
                whole["context_management"] = {"applied_edits": self._cleared(asked, edit)}
        BetaMessage.model_validate(whole, strict=True)
        return whole

    def _compacted(self, whole: Body, *, signed: bool) -> Body:
        content: list[Body] = []
        if self.block is not None:
            block = {"type": "compaction", **self.block}
            if signed:
                signature = f"sig-{len(self.signed)}"
                self.signed[signature] = block["content"]
                block["signature"] = signature
            content = [block] * self.blocks
        iteration = {
            "type": "compaction",
            "input_tokens": 900,
            "output_tokens": 40,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 100,
        }
        usage = {**whole["usage"], "input_tokens": 0, "output_tokens": 0}
        return {
            **whole,
            "content": content,
            "stop_reason": self.stop_reason,
            "usage": {**usage, "iterations": [iteration]},
        }

    def _cleared(self, asked: Asked, edit: Body) -> list[Body]:
        spared = set(edit.get("exclude_tools", []))
        names = {part.id: part.name for part in asked.parts if part.kind == "call"}
        uses = [names[part.id] for part in asked.parts if part.kind == "result"]
        counted = len(uses) if edit["trigger"]["type"] == "tool_uses" else self.tokens
        old = uses[: max(len(uses) - edit["keep"]["value"], 0)]
        gone = sum(name not in spared for name in old) + self.miscounts
        if counted < edit["trigger"]["value"] or not gone:
            return []
        return [{"type": edit["type"], "cleared_tool_uses": gone, "cleared_input_tokens": 99}]

    def stream(self, whole: Body) -> Iterator[tuple[str, Body]]:
        """Yield a reply as the events that it is streamed in."""
        return anthropic_wire.stream(whole)

    def error(self, failed: Failed) -> Body:
        """Put an error into the vendor's form."""
        return anthropic_wire.error(failed)


def _edits(body: Body) -> list[Body]:
    found: list[Body] = (body.get("context_management") or {}).get("edits", [])
    return found


def _blocks(messages: list[Body]) -> list[Body]:
    found = [block for message in messages for block in anthropic_wire.blocks(message)]
    return [block for block in found if block["type"] == "compaction"]


def size(body: Body) -> int:
    """Return the characters of a request's conversation."""
    return len(json.dumps(body["messages"]))
