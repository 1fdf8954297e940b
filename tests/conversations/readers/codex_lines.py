"""Lines of Codex rollouts, and reading them."""

import json
from pathlib import Path
from typing import Any

from compression_eval.conversations.building import Built
from compression_eval.conversations.formats import format_named
from tests.conversations.readers.reading import json_lines, read_one

FORMAT = format_named("codex")

Line = dict[str, Any]


def line(kind: str, payload: Any) -> Line:
    return {"timestamp": "2030-01-01T00:00:00Z", "type": kind, "payload": payload}


def item(kind: str, **fields: Any) -> Line:
    return line("response_item", {"type": kind, **fields})


def event(kind: str, **fields: Any) -> Line:
    return line("event_msg", {"type": kind, **fields})


def message(role: str, *texts: str) -> Line:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text} for text in texts])


def typed(text: str) -> list[Line]:
    """What Codex writes where the user types something."""
    return [message("user", text), event("user_message", message=text, images=[])]


def call(call_id: str, **arguments: Any) -> Line:
    return item("function_call", name="shell", arguments=json.dumps(arguments), call_id=call_id)


def output(call_id: str, text: Any) -> Line:
    return item("function_call_output", call_id=call_id, output=text)


def tokens(total: int) -> Line:
    usage = {"total_tokens": total}
    return event("token_count", info={"last_token_usage": usage, "model_context_window": 1000})


HEAD = line(
    "session_meta",
    {
        "id": "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001",
        "cli_version": "0.140.0",
        "source": "cli",
        "base_instructions": {"text": "You are an agent."},
    },
)
ENVIRONMENT = message("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>")


def read(path: Path, *lines: Any) -> Built:
    return read_one(FORMAT, json_lines(path / "rollout.jsonl", *lines))
