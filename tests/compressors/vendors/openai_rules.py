"""OpenAI with its compaction endpoint, as the vendor documents both, for a loopback server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from openai.types.responses import CompactedResponse, ResponseInputMessageItem

from tests.e2e.vendors import openai_wire
from tests.e2e.vendors.wire import Asked, Broken, Failed, Part, RefusedError, Said, need

Body = dict[str, Any]
ITEM_TOKENS = 37


@dataclass
class OpenAIRules:
    """A vendor that knows which items it returned, and wants them back whole.

    It serves as the wire of `tests.e2e.vendors.server.serving`, and `speak` as its models' speech.
    """

    window: int = 1_000_000
    """Characters that a conversation may have."""
    failed: Failed | Broken | None = None
    """What the endpoint answers instead."""
    items: int = 1
    content: str | None = None
    """Content of the returned items; made up if None."""
    output_tokens: int = ITEM_TOKENS
    returned: dict[str, tuple[str, list[Body]]] = field(default_factory=dict)
    """By encrypted content: the model it was made for, and all items returned with it."""
    sent: list[Body] = field(default_factory=list)
    """Bodies that the compaction endpoint returned."""
    refused: list[str] = field(default_factory=list)
    """Why requests were not accepted."""

    def parts(self, path: str, body: Body) -> list[Part]:
        """Check the conversation itself; compaction items are left to `speak`."""
        if path.endswith("/responses/input_tokens"):
            return []
        given = body["input"]
        plain = given if isinstance(given, str) else [i for i in given if not _is_item(i)]
        if path.endswith("/responses/compact"):
            need(set(body) <= {"model", "input", "instructions"}, f"unknown in {sorted(body)}")
            need(isinstance(given, list), "input: a list of items is wanted")
        return openai_wire.parts("/responses", {**body, "input": plain})

    def speak(self, asked: Asked) -> str | Said | Failed | Broken:
        """Answer a request, or refuse it as the vendor would."""
        given = asked.body["input"]
        if asked.path.endswith("/input_tokens"):
            return "counted whatever it is"
        if asked.path.endswith("/compact") and self.failed:
            return self.failed
        if len(json.dumps(given)) > self.window:
            text = "Your input exceeds the context window of this model."
            return Failed(400, "invalid_request_error", text, "context_length_exceeded")
        try:
            self._check_items(asked.model, given)
        except RefusedError as problem:
            self.refused.append(str(problem))
            return Failed(400, "invalid_request_error", str(problem), "invalid_value")
        return f"The code was E4401 (reply {asked.number})."

    def _check_items(self, model: str, given: Any) -> None:
        items = [item for item in given if _is_item(item)] if isinstance(given, list) else []
        need(len(items) <= 1, "input: more than one compaction item")
        for item in items:
            need(item["encrypted_content"] in self.returned, "the item could not be decrypted")
            made_for, whole = self.returned[item["encrypted_content"]]
            need(made_for == model, "the item was made for another model")
            wanted = [_essence(part) for part in whole]
            got = [_essence(part) for part in given if part.get("role") != "developer"]
            need(got[: len(wanted)] == wanted, "the returned items must come back unpruned")

    def reply(self, asked: Asked, said: Said) -> Body:
        """Put a reply into the form of the interface that was asked."""
        if asked.path.endswith("/responses/input_tokens"):
            return {"object": "response.input_tokens", "input_tokens": 51}
        if not asked.path.endswith("/compact"):
            return openai_wire.reply(asked, said)
        users = [item for item in asked.body["input"] if item.get("role") == "user"]
        output = [_returned_message(n, item) for n, item in enumerate(users)]
        for number in range(self.items):
            content = f"gAAA-{asked.model}-{asked.number}-{number}"
            content = content if self.content is None else self.content
            item = {"id": f"cmp_{number}", "type": "compaction", "encrypted_content": content}
            output.append(item)
            self.returned[content] = (asked.model, output)
        body = {
            "id": f"resp_{asked.number}",
            "object": "response.compaction",
            "created_at": 1_750_000_000,
            "output": output,
            "usage": {
                "input_tokens": 400,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": self.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 400 + self.output_tokens,
            },
        }
        check_reply(body)
        self.sent.append(body)
        return body

    def stream(self, whole: Body) -> Iterator[tuple[str, Body]]:
        """Nothing is streamed here."""
        raise NotImplementedError

    def error(self, failed: Failed) -> Body:
        """Put an error into the vendor's form."""
        return openai_wire.error(failed)


def check_reply(body: Body) -> None:
    """Check a compaction reply against the types of the installed package.

    The package declares output messages as the assistant's; the user messages that the vendor
    documents and returns are checked against its type for those.
    """
    users = [item for item in body["output"] if item["type"] == "message"]
    for item in users:
        ResponseInputMessageItem.model_validate(item, strict=True)
    rest = [item for item in body["output"] if item["type"] != "message"]
    CompactedResponse.model_validate({**body, "output": rest}, strict=True)


def _is_item(item: Body) -> bool:
    return item.get("type") == "compaction"


def _essence(item: Body) -> Any:
    """Return what must not change of an item."""
    if _is_item(item):
        return item["encrypted_content"], item.get("id")
    content = item.get("content", "")
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return item.get("role"), text


def _returned_message(number: int, item: Body) -> Body:
    text = _essence(item)[1]
    content = [{"type": "input_text", "text": text}]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": content,
    }
