"""Fields of OpenHands events of version 0, flat in old files and nested in newer ones."""

from typing import Any

from compression_eval.conversations.drafts import Image
from compression_eval.conversations.fields import as_text, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.openai_content import content_of, image_of
from compression_eval.conversations.readers.values import identifier, marked

CALLS = (
    "run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "call_tool_mcp",
    "mcp", "delegate", "think", "task_tracking", "push", "send_pr",
)  # fmt: skip
"""Actions that are tool calls, each answered by an observation."""

ENDS = ("finish", "reject")
"""Actions that end a run with words; the agent itself shows them to the model as text."""

RESULTS = (
    "run", "run_ipython", "read", "write", "edit", "browse", "mcp", "delegate", "think", "error",
    "user_rejected", "success", "chat", "task_tracking", "download", "loop_detection", "message",
)  # fmt: skip
"""Observations that the model sees."""

SKIPPED = {
    "action:null": "nothing was done",
    "action:change_agent_state": "state of the program, not of the conversation",
    "action:start": "a click of the user, without words",
    "action:pause": "a click of the user, without words",
    "action:resume": "a click of the user, without words",
    "action:stop": "a click of the user, without words",
    "action:recall": "a look-up by the program, not by the model",
    "action:condensation_request": "asks for the condensation that follows",
    "action:loop_recovery": "a click of the user, without words",
    "observation:null": "nothing was observed",
    "observation:agent_state_changed": "state of the program, not of the conversation",
    "observation:recall": "what the program looked up; the words shown to the model are not here",
    "observation:workspace_context": "what the program looked up; not in the model's words",
    "observation:microagent": "what the program looked up; not in the model's words",
    "observation:condense": "the summary that its condensation has already",
}
MESSAGES = ("message", "system", "condensation")

_NOT_ARGUMENTS = (
    "action", "id", "timestamp", "source", "message", "thought", "keep_prompt", "is_confirmed",
    "confirmation_state", "action_risk", "security_risk", "kernel_init_code", "hidden", "cause",
    "tool_call_metadata", "timeout", "include_extra", "llm_metrics", "args", "extras",
)  # fmt: skip


def is_event(value: Any) -> bool:
    """Tell whether a value is an event: an action or an observation of a known kind."""
    if (
        not isinstance(value, dict)
        or "role" in value
        or ("action" in value) == ("observation" in value)
    ):
        return False
    kind = event_kind(value)
    name = kind.partition(":")[2]
    known = (*CALLS, *ENDS, *MESSAGES, "summarize") if kind.startswith("action:") else (*RESULTS,)
    return name in known or kind in SKIPPED


def event_kind(event: Any) -> str:
    """Return what an event is, as ``action:run``; empty if it is none."""
    for side in ("action", "observation"):
        if name := text_of(event, side):
            return f"{side}:{name}"
    return ""


def fields_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an action or an observation, wherever they stand."""
    return mapping_of(event, "args") or mapping_of(event, "extras") or event


def arguments_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return what an action was called with, without the program's own notes."""
    fields = fields_of(event)
    found = {
        key: value
        for key, value in fields.items()
        if key not in _NOT_ARGUMENTS and value is not None
    }
    return found or ({"thought": fields["thought"]} if fields.get("thought") else {})


def words_of(event: dict[str, Any]) -> list[str]:
    """Return the words that end a run, each once."""
    fields = fields_of(event)
    outputs = mapping_of(fields, "outputs")
    said = [text_of(fields, "thought"), text_of(fields, "final_thought")]
    said += [text_of(outputs, "content"), text_of(outputs, "reason")]
    return [text for text in dict.fromkeys(said) if text.strip()]


def images_of(event: dict[str, Any]) -> list[str | Image]:
    """Return the images of an event."""
    fields = fields_of(event)
    addresses = list_of(fields, "image_urls") or list_of(fields, "images_urls")
    return [image_of(as_text(address)) for address in addresses if address]


def result_of(event: dict[str, Any], line: Line) -> list[str | Image]:
    """Return what an observation showed, with the exit code if it has one."""
    fields = fields_of(event)
    content = content_of(event.get("content"), line) + images_of(event)
    code = fields.get("exit_code", mapping_of(fields, "metadata").get("exit_code"))
    if text_of(event, "observation") == "run" and isinstance(code, int) and code != -1:
        content.append(marked("exit_code", code=str(code)))
    if fields.get("screenshot"):
        line.leave_out("screenshot", "a picture beside the text of the page")
    return content


def reply_of(event: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the note on the tool call, the model's message with it, and the reply's id."""
    note = mapping_of(event, "tool_call_metadata")
    reply = mapping_of(note, "model_response")
    choices = list_of(reply, "choices")
    message = mapping_of(choices[0], "message") if choices else {}
    return note, message, identifier(reply, "id")
