"""Tool calls with their results, and how each ended, in the forms that agents record.

Calls are paired with their results by id. Whether one failed follows from the result's error mark,
from an exit code that is written in its text, or from how the client words an error; otherwise it
is unknown.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool

from compression_eval.fixtures.models import NO_RESULT, NOT_RUN, Message

_EXIT_CODE = re.compile(
    r"^\[?(?:error:\s*)?(?:the )?(?:command |process )?(?:exited|completed|finished|failed|exit)"
    r"(?: with)?[ _](?:exit )?(?:code|status):? *(-?\d{1,5})\b"
    r"|<(?:returncode|exit_code)>\s*(-?\d{1,5})\s*</",
    re.IGNORECASE | re.MULTILINE,
)
_EXIT_KEYS = ("exit_code", "exitCode", "returncode", "return_code")
_NESTED_KEYS = ("metadata", "result", "details")
_OUTPUT_KEYS = ("output", "stdout", "content", "aggregated_output")
_FAILED_START = re.compile(
    r"\s*(?:<tool_use_error>|<error>|\[?(?:tool )?error\b|failed\b|failure\b|traceback \(most"
    r"|exception\b|could not\b|cannot\b|can't\b|unable to\b|invalid\b|refused\b|permission denied"
    r"|no (?:match|such file|changes|replacement|occurrence)|string to replace not found"
    r"|(?:the )?file (?:not found|does not exist|has not been read|already exists)"
    r"|apply_patch verification failed|the user doesn't want|user (?:rejected|declined))",
    re.IGNORECASE,
)
_FAILED_WITHIN = re.compile(
    r"no such file|not a text file|outside of the project|is a directory|permission denied"
    r"|was found \d+ times|no replacement was performed|did not appear verbatim"
    r"|string to replace not found|old_string|has not been read|does not exist|not found in"
    r"|multiple (?:matches|occurrences)|failed to (?:find|apply|edit|write|read)",
    re.IGNORECASE,
)
_MAX_JUDGED = 600
"""Maximum characters of a result that may show a file but is judged by its words."""
_MAX_JUDGED_LINES = 4
_MAX_SCANNED = 4_000
_MAX_JSON = 400_000


@dataclass
class Call:
    """One tool call with its result.

    Attributes:
        message: Index of the message that made the call.
        name: The tool's name.
        arguments: Decoded arguments; data from a conversation, of any shape.
        result: The result's text; None if there is no result.
        error: Whether the result is marked as an error.
        id: Its identifier; empty if unknown.
    """

    message: int
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: str | None = ""
    error: bool = False
    id: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    Attributes:
        text: The output without its wrapping.
        exit_code: None where the result names none.
        failed: Whether the result says that the call failed, or that its outcome is unknown.
    """

    text: str
    exit_code: int | None
    failed: bool


_Parts = tuple[list[tuple[str, Call]], tuple[str | None, str, bool] | None]
"""A message's calls with their ids, and its result with the call's id and error mark."""


def calls_of_messages(messages: Sequence[ChatMessage]) -> list[Call]:
    """Return the calls of Inspect's messages; `Call.message` is the position in ``messages``.

    A result belongs to the last call before it that has its id.
    """

    def parts(position: int, message: ChatMessage) -> _Parts:
        if isinstance(message, ChatMessageAssistant):
            return [
                (call.id, Call(position, call.function, dict(call.arguments), None, id=call.id))
                for call in message.tool_calls or []
            ], None
        if not isinstance(message, ChatMessageTool):
            return [], None
        text, error = message.text, message.error
        if error is not None and error.message not in text:
            text = f"{text}\n{error.message}".strip()
        return [], (message.tool_call_id, text, error is not None)

    return _paired(parts(*item) for item in enumerate(messages))


def calls_of_fixture(messages: Sequence[Message]) -> list[Call]:
    """Return the calls of a fixture's messages; `Call.message` is the index there."""

    def parts(position: int, message: Message) -> _Parts:
        return [
            (call.id, Call(position, call.function.name, call.function.parsed(), None, id=call.id))
            for call in message.calls
        ], (message.tool_call_id, message.text, False)

    return _paired(parts(*item) for item in enumerate(messages))


def _paired(messages: Iterable[_Parts]) -> list[Call]:
    """Assign each result to the calls with its id in the last message before it."""
    found: list[Call] = []
    latest: dict[str | None, list[Call]] = {}
    for calls, result in messages:
        found.extend(call for _, call in calls)
        latest |= {identity: [] for identity, _ in calls}
        for identity, call in calls:
            latest[identity].append(call)
        if result is not None:
            answered, text, error = result
            for call in latest.get(answered, ()):
                if call.result is None:
                    call.result, call.error = text, error
    return found


def command_outcome(result: str, error: bool) -> Outcome:
    """Return how a shell command ended: by its exit code, else by the mark on the result."""
    if result in (NO_RESULT, NOT_RUN):
        return Outcome("", None, True)
    if fields := _decoded(result):
        code, text = _exit_code_field(fields), _output_field(fields)
        if code is not None or text is not None:
            failed = error or bool(code) or (code is None and _says_failure(fields))
            return Outcome(result if text is None else text, code, failed)
    # Wrappings are at either end; between them is the command's own output.
    ends = result
    if len(result) > 2 * _MAX_SCANNED:
        ends = result[:_MAX_SCANNED] + result[-_MAX_SCANNED:]
    codes = [int(first or second) for first, second in _EXIT_CODE.findall(ends)]
    last = next((code for code in reversed(codes) if code), codes[-1] if codes else None)
    return Outcome(result, last, error or bool(last))


def file_outcome(result: str, error: bool, *, shows_content: bool) -> Outcome:
    """Return how a file tool ended.

    Args:
        result: Its text.
        error: Whether it is marked as an error.
        shows_content: Whether a success shows a file, so that only a short result is judged by
            its words.
    """
    if result in (NO_RESULT, NOT_RUN):
        return Outcome("", None, True)
    if not shows_content and (fields := _decoded(result)) is not None:
        code, text = _exit_code_field(fields), _output_field(fields)
        failed = error or bool(code) or _says_failure(fields)
        return Outcome(result if text is None else text, code, failed)
    lines = result.strip().split("\n")
    is_long = len(result) > _MAX_JUDGED
    if error or (shows_content and (is_long or len(lines) > _MAX_JUDGED_LINES)):
        return Outcome(result, None, error)
    failed = bool(_FAILED_START.match(lines[0]))
    if not is_long or len(lines) == 1:
        failed = failed or bool(_FAILED_WITHIN.search(lines[0]))
    return Outcome(result, None, failed)


def _decoded(result: str) -> dict[str, Any] | None:
    stripped = result.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or len(stripped) > _MAX_JSON:
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _exit_code_field(fields: dict[str, Any]) -> int | None:
    for place in (fields, *(fields.get(key) for key in _NESTED_KEYS)):
        for code in map(place.get, _EXIT_KEYS) if isinstance(place, dict) else ():
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def _output_field(fields: dict[str, Any]) -> str | None:
    output = next((fields[key] for key in _OUTPUT_KEYS if isinstance(fields.get(key), str)), None)
    more = fields.get("stderr")
    return f"{output}\n{more}" if output is not None and isinstance(more, str) and more else output


def _says_failure(fields: dict[str, Any]) -> bool:
    if fields.get("success") is False or fields.get("ok") is False:
        return True
    return bool(fields.get("error")) or fields.get("status") in ("error", "failed")
