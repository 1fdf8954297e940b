"""The embedded model: an Inspect model provider that runs no language model.

The request alone tells what is wanted. A response schema named ``criterion_results`` asks for
grades, one named ``anchored_operations`` for operations on a memory; a line with a budget, an order
to summarise, or a long text that keeps speaking of a summary asks for a summary. Anything else is a
question about the messages before it. The same request always gets the same reply.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo
from pydantic import TypeAdapter, ValidationError

from compression_eval.embedded.extracts import (
    LEAST,
    SECTIONS,
    SURE,
    Index,
    Note,
    estimate_tokens,
    notes,
    within,
)
from compression_eval.embedded.grading import grade
from compression_eval.fixtures.conversation import message_text
from compression_eval.text.ranking import terms

Record = dict[str, Any]
"""A JSON object that fills a line of a request."""

_SPEAKS_OF = re.compile(r"\bsummar(?:y|i[sz])|\bcompact(?:ion|ing)?\b", re.IGNORECASE)
_ORDER = re.compile(
    r"\bsummari[sz]e (?:the|this|our|all|what)\b"
    r"|\b(?:write|create|provide|give)\b[^.?]{0,40}\bsummary of (?:the|this|our)\b[^?]*\Z"
    r"|(?:总结|概括)[^。？]{0,12}(?:对话|会话)|会話[^。？]{0,12}要約",
    re.IGNORECASE,
)
_UNKNOWN = "The context does not contain this."
_MAX_INDICES = 24
"""Conversations whose indices are kept: those of a run's current states."""
_SUMMARY_TOKENS = 1_200
"""Tokens of a summary if the request names no budget."""
_HEADINGS = 60
"""Tokens of a summary's headings."""
_ALIKE = 0.6
"""Share of words that a note and an entry have in common where one supersedes the other."""
_MESSAGE: TypeAdapter[ChatMessage] = TypeAdapter(ChatMessage)


class EmbeddedAPI(ModelAPI):
    """Answers, summarises and grades lexically; needs no network, credentials or GPU."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as its base class has it
        **model_args: object,
    ) -> None:
        """Create the model.

        Raises:
            ValueError: There is no embedded model of that name, or arguments were given.
        """
        if model_name != "lexical":
            raise ValueError(f"embedded/{model_name}: no such model; there is embedded/lexical")
        if model_args:
            raise ValueError(
                f"embedded/lexical takes no arguments, but got {', '.join(model_args)}"
            )
        super().__init__(model_name, base_url, api_key, [], config)
        self._indices: OrderedDict[tuple[tuple[str, str], ...], Index] = OrderedDict()

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - named by Inspect
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the reply to a request, with an estimate of its tokens as usage."""
        schema = config.response_schema.name if config.response_schema else ""
        if schema == "criterion_results":
            output = ModelOutput.from_content("embedded/lexical", grade(records_of(input)))
        elif schema == "anchored_operations":
            output = ModelOutput.from_content("embedded/lexical", _operations(records_of(input)))
        else:
            offered = set() if tool_choice == "none" else {tool.name for tool in tools}
            output = self._reply(input, offered)
        read = sum(estimate_tokens(message_text(message)) for message in input)
        written = estimate_tokens(message_text(output.message))
        output.usage = ModelUsage(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
        return output

    def _reply(self, messages: list[ChatMessage], offered: set[str]) -> ModelOutput:
        """Summarise, or answer; where nothing fits a question, search and read what is found."""
        # The last message of the user is the request.
        at = max((n for n, each in enumerate(messages) if each.role == "user"), default=0)
        history, since = messages[:at], messages[at + 1 :]
        parts = _parts(messages[at])
        records = json_lines("\n".join(parts))
        if _asks_for_summary("\n".join(parts), records):
            text = _summary(messages_in(records) or history, records)
            return ModelOutput.from_content("embedded/lexical", text)
        question = parts[-1]  # parts before the last one introduce it
        turns = sum(message.role == "assistant" for message in since)
        found = [
            record for each in since if each.role == "tool" for record in json_lines(each.text)
        ]
        numbers = list(dict.fromkeys(record["number"] for record in found if "number" in record))
        answer = self._answer([*history, *messages_in(found)], question, LEAST if turns else SURE)
        if not turns and not answer and "search_history" in offered:
            return _calling(ToolCall("fetch-0", "search_history", {"query": question}))
        if turns == 1 and numbers and "read_message" in offered:
            return _calling(
                *(
                    ToolCall(f"fetch-{n}", "read_message", {"number": number})
                    for n, number in enumerate(numbers[:3], 1)
                )
            )
        answer = answer or self._answer(history, question, LEAST)
        return ModelOutput.from_content("embedded/lexical", answer or _UNKNOWN)

    def _answer(self, history: Sequence[ChatMessage], question: str, least: float) -> str | None:
        key = tuple((message.role, message_text(message)) for message in history)
        index = self._indices.pop(key, None) or Index(history)
        self._indices[key] = index
        if len(self._indices) > _MAX_INDICES:
            self._indices.popitem(last=False)
        return index.answer(question, least)

    async def count_text_tokens(self, text: str) -> int:
        """Return the same estimate that usage is given in: no vocabulary has to be downloaded."""
        return estimate_tokens(text)


def _calling(*calls: ToolCall) -> ModelOutput:
    output = ModelOutput.from_content("embedded/lexical", "", stop_reason="tool_calls")
    output.message.tool_calls = list(calls)
    return output


def _parts(message: ChatMessage) -> list[str]:
    """Return the texts of a message's content, of which there is at least one."""
    if isinstance(message.content, str):
        return [message.content]
    return [part.text for part in message.content if isinstance(part, ContentText)] or [""]


def _asks_for_summary(request: str, records: Sequence[Record]) -> bool:
    if any("budget_tokens" in record for record in records) or _ORDER.search(request):
        return True
    return len(request) >= 1_200 and len(_SPEAKS_OF.findall(request)) > 2


def json_lines(text: str) -> list[Record]:
    """Return the JSON objects that fill a line of a text; only a line feed ends a line."""
    found = []
    for line in map(str.strip, text.split("\n")):
        if line.startswith("{") and line.endswith("}"):
            try:
                found.append(json.loads(line))
            except (json.JSONDecodeError, RecursionError):
                continue
    return found


def records_of(messages: Sequence[ChatMessage]) -> list[Record]:
    """Return the JSON lines of the user's messages; no other text of theirs is looked at."""
    texts = [part for each in messages if each.role == "user" for part in _parts(each)]
    return json_lines("\n".join(texts))


def messages_in(records: Iterable[Record]) -> list[ChatMessage]:
    """Return the messages among JSON lines: those with a role and a text.

    Lines of another shape are left out: they are data from a conversation, and a summary of the
    rest is better than an error. Results belong to the calls before them, in order.
    """
    messages: list[ChatMessage] = []
    waiting: list[str] = []
    for at, record in enumerate(records):
        fields: Record = {"role": record.get("role"), "content": record.get("text")}
        try:
            calls = [
                {"id": f"{at}-{n}", "function": call["name"], "arguments": call["arguments"]}
                for n, call in enumerate(record.get("calls") or [])
            ]
            if fields["role"] == "tool":
                fields["tool_call_id"] = waiting.pop(0) if waiting else None
            message = _MESSAGE.validate_python(fields | ({"tool_calls": calls} if calls else {}))
        except (ValidationError, TypeError, KeyError):
            continue
        waiting = [call["id"] for call in calls] or waiting
        messages.append(message)
    return messages


def _budget(records: Iterable[Record]) -> int:
    """Return the tokens for the notes of a summary, without its headings."""
    stated = (record.get("budget_tokens") for record in records)
    return next((n for n in stated if isinstance(n, int)), _SUMMARY_TOKENS) - _HEADINGS


def _text(records: Iterable[Record], *keys: str) -> str:
    """Return the first text under one of some keys; empty if there is none."""
    values = (record.get(key) for record in records for key in keys)
    return next((value for value in values if isinstance(value, str)), "")


def _summary(messages: Sequence[ChatMessage], records: Sequence[Record]) -> str:
    """Return a summary in Markdown; an earlier one's entries keep their sections."""
    earlier, section = [], ""
    for line in _text(records, "earlier_summary", "previous_summary").splitlines():
        if line.startswith("## "):
            section = line[3:].casefold().replace(" ", "_")
        elif line.startswith("- "):
            earlier.append(Note(section, line[2:], -1, 2.0))
    new = notes(messages, _text(records, "focus_topic"))
    kept = within([*earlier, *new], _budget(records))
    blocks = []
    for section in SECTIONS:
        lines = [f"- {note.text}" for note in kept if note.section == section] or ["(none)"]
        blocks.append("\n".join([f"## {section.replace('_', ' ').capitalize()}", *lines]))
    return "\n\n".join(blocks)


def _operations(records: Sequence[Record]) -> str:
    """Return operations on a memory as JSON: each note is added, or supersedes what is like it."""
    entries: list[tuple[str, dict[str, str]]] = [
        (section, entry)
        for record in records
        for section, own in record.get("current_summary", {}).get("sections", {}).items()
        for entry in own
    ]
    budget = _budget(records)
    room = max(budget - sum(estimate_tokens(each["text"]) for _, each in entries), budget // 3)
    operations: list[dict[str, str]] = []
    new = notes(messages_in(records), _text(records, "focus_topic"))
    for note in within(new, room):
        like = next((each for each in entries if _alike(note, each[0], each[1]["text"])), None)
        if like is None:
            operations.append({"op": "add", "section": note.section, "text": note.text})
        elif like[1]["text"] != note.text:
            operations.append({"op": "supersede", "id": like[1]["id"], "text": note.text})
            entries.remove(like)
    return json.dumps({"operations": operations}, ensure_ascii=False)


def _alike(note: Note, section: str, text: str) -> bool:
    """Return whether a note and an entry are about one file, or have mostly the same words."""
    if section == note.section == "files":
        return note.text.partition(": ")[0] == text.partition(": ")[0]
    ours, theirs = set(terms(note.text)), set(terms(text))
    return section == note.section and len(ours & theirs) >= _ALIKE * len(ours | theirs)
