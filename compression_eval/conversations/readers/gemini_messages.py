"""Messages of Gemini CLI sessions: content in parts, calls that hold their own results."""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Draft, DraftCall, Image
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.values import identifier, leave_out_thinking

_FOR_THE_SCREEN = ("info", "warning", "error")

SPEAKERS = ("user", "gemini")
KINDS = (*SPEAKERS, *_FOR_THE_SCREEN)


def drafts_of(record: dict[str, Any], line: Line) -> list[Draft]:
    """Return the messages of a record: a turn, and the results of its calls.

    Args:
        record: One message of the file.
        line: Settled if there is no message.
    """
    kind = text_of(record, "type")
    if kind in _FOR_THE_SCREEN:
        line.skip("a notice on the screen, which the model does not see")
        return []
    if kind not in SPEAKERS:
        line.is_unknown("expected a message of type user, gemini, info, warning or error")
        return []
    if "displayContent" in record and record.get("displayContent") is not None:
        line.leave_out("displayContent", "the screen showed it; the model got the content")
    parts = parts_of(record.get("content"), line)
    content = list(content_of(parts, line))
    if kind == "user":
        results = [response_of(part) for part in parts if "functionResponse" in part]
        return results + ([Draft("user", content)] if content or not results else [])
    return _turn(record, content, parts, line)


def _turn(
    record: dict[str, Any], content: list[str | Image], parts: list[dict[str, Any]], line: Line
) -> list[Draft]:
    if list_of(record, "thoughts"):
        leave_out_thinking(line)
    name = identifier(record, "id")
    turn, results = Draft("assistant", content), []
    calls = [call for call in list_of(record, "toolCalls") if isinstance(call, dict)]
    if len(calls) < len(list_of(record, "toolCalls")):
        line.leave_out("tool call", "expected an object")
    # Newer sessions repeat the calls as parts of the content; without records these are all.
    if not calls:
        calls = [part["functionCall"] for part in parts if mapping_of(part, "functionCall")]
    for number, call in enumerate(calls, 1):
        call_id = identifier(call, "id") or f"{name}-{number}"
        turn.calls.append(DraftCall(call_id, text_of(call, "name"), as_text(call.get("args"))))
        result = _result(call, call_id, line)
        if result is not None:
            results.append(result)
        if call.get("resultDisplay"):
            line.leave_out("resultDisplay", "what the screen showed of a result")
    return [turn, *results]


def parts_of(value: Any, line: Line) -> list[dict[str, Any]]:
    """Return the parts of a content, which may be a text, a part, or a list of both."""
    found: list[dict[str, Any]] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str):
            found.append({"text": part})
        elif isinstance(part, dict):
            found.append(part)
        elif part is not None:
            line.is_unknown("expected content that is a text or parts")
    return found


def content_of(parts: list[dict[str, Any]], line: Line) -> Iterator[str | Image]:
    """Yield the texts and images of parts."""
    for part in parts:
        if part.get("thought"):
            leave_out_thinking(line)
        elif isinstance(part.get("text"), str):
            if part["text"]:
                yield part["text"]
        elif (image := _media(part)) is not None:
            yield image
        elif not {"functionCall", "functionResponse"} & part.keys():
            line.leave_out(f"part {label(next(iter(part), ''))}", "unknown kind of content")


def _media(part: dict[str, Any]) -> Image | None:
    data, file = mapping_of(part, "inlineData"), mapping_of(part, "fileData")
    if data:
        media_type = text_of(data, "mimeType")
        return Image(media_type, f"data:{media_type};base64,{text_of(data, 'data')}")
    return Image(text_of(file, "mimeType"), text_of(file, "fileUri")) if file else None


def response_of(part: dict[str, Any]) -> Draft:
    """Return the result that a part holds."""
    response = mapping_of(part, "functionResponse")
    return Draft("tool", list(_answer(response)), call_id=identifier(response, "id"))


def _result(call: dict[str, Any], call_id: str, line: Line) -> Draft | None:
    result = call.get("result")
    if not result:
        return None
    content: list[str | Image] = []
    for part in parts_of(result, line):
        response = mapping_of(part, "functionResponse")
        if response and identifier(response, "id") in ("", call_id):
            content.extend(_answer(response))
        elif not response:
            content.extend(content_of([part], line))
    return Draft("tool", content, call_id=call_id)


def _answer(response: dict[str, Any]) -> Iterator[str | Image]:
    fields = mapping_of(response, "response")
    said = [fields[key] for key in ("output", "error") if fields.get(key) not in (None, "")]
    if len(said) == len(fields) == 1 and isinstance(said[0], str):
        yield said[0]
    elif said or fields.keys() - {"output", "error"}:
        yield as_text(fields)
    for part in list_of(response, "parts"):
        image = _media(part) if isinstance(part, dict) else None
        if image is not None:
            yield image
