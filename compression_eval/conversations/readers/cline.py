"""Tasks of Cline, Roo Code and their forks: the Anthropic messages of a task in one JSON list.

The list is a task folder's ``api_conversation_history.json``. Two files beside it are looked into
if they are there: ``ui_messages.json`` for when the context was cut and for numbers of tokens,
``context_history.json`` for the notices that Cline puts in place of the first two messages.

Cline lets the model call a tool with the summary and goes on behind it, or drops a range of
messages. Roo Code marks the messages that a summary or a truncation hides; which it kept follows
from the times in ``ui_messages.json``, else from what its versions do.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import count_of, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.anthropic_blocks import AssistantTurn, user_drafts
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    SUMMARY_STANDS_IN,
    TEXT_ACTIONS,
    json_document,
    leave_out_thinking,
    origin,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.markers import NO_RESULT

_FILE = "api_conversation_history.json"
_EXPECTED = "a task of Cline or Roo Code: a JSON list of messages"
_ROO_KEYS = ("condenseId", "condenseParent", "truncationId", "truncationParent")
_SUMMARIES = ("summarize_task", "condense")
"""Tools whose call is a compaction."""
_SUMMARY_TEXT = re.compile(
    r"<(summarize_task|condense)>\s*<context>(.*?)</context>.*?</\1>", re.DOTALL
)
"""The same call in a text, as models without tool calls make it."""
_CONTINUED = re.compile(
    r"\[(summarize_task|condense)\] Result:|being continued from a previous conversation"
    r"|accepted the condensed conversation summary"
)
_FEEDBACK = "provided feedback on the condensed conversation"
_RESULT = re.compile(r"\[([\w.-]+)[^\n]*\] Result:")
"""How the results of tools begin: text, even where the call was none."""
_WRITTEN = re.compile("<(feedback|answer|user_message)>|The user provided feedback")
"""Where a result holds what the user wrote."""
_ENVIRONMENT = "<environment_details>"
_ASKS_FOR_SUMMARY = '<explicit_instructions type="summarize_task"'
_RECORDED = "a compaction, recorded beside the messages"
_KEPT_BEHIND_ANSWER = 3
"""Messages that Roo Code kept behind a summary while its summaries were assistant messages."""


@dataclass(eq=False)
class _Entry:
    """A message of the list."""

    line: Line
    message: dict[str, Any]
    drafts: list[Draft] = field(default_factory=list)
    """What it adds to the conversation."""
    made: list[Draft] = field(default_factory=list)
    """What it is in a state, if a compaction made it."""
    call: str = ""
    """The summary, if it is a call of Cline that compacts."""

    @property
    def shown(self) -> list[Draft]:
        return self.made or self.drafts


class _Task:
    """A task that is being read."""

    def __init__(self, shown: list[Any], notices: list[Any]) -> None:
        self.entries: list[_Entry] = []
        self.models: Counter[str] = Counter()
        self.results_in_text = False
        self._shown = [event for event in shown if isinstance(event, dict)]
        self._notices = notices
        self.conversation = Conversation(
            "cline", "", "", Ledger(), caveats=[NO_SYSTEM_PROMPT, NO_TOOLS]
        )

    def feed(self, message: Any) -> None:
        """Enter a message of the list."""
        line = self.conversation.ledger.enter(
            f"message {len(self.entries)}",
            label(text_of(message, "role") or text_of(message, "type")),
        )
        entry = _Entry(line, message if isinstance(message, dict) else {})
        self.entries.append(entry)
        role = text_of(message, "role")
        if not role and text_of(message, "type") == "reasoning":
            line.skip("thinking is left out")
        elif role not in ("user", "assistant") or not isinstance(
            entry.message.get("content"), str | list
        ):
            line.is_unknown("expected the role user or assistant, and content as text or blocks")
        elif entry.message.get("isTruncationMarker") is True:
            line.skip(_RECORDED)
        elif entry.message.get("isSummary") is True and self._replaces(entry):
            line.skip(_RECORDED)
            entry.made = self._drafts(entry, Line("", ""))
        elif role == "assistant" and (summary := _called_summary(entry.message)):
            self._summarised(entry, summary)
        elif role == "user" and self._goes_on(entry):
            line.skip("what a compaction put behind its summary, recorded beside the messages")
            entry.made = self._drafts(entry, Line("", ""))
        else:
            self._say(entry)

    def _say(self, entry: _Entry) -> None:
        if entry.message.get("isSummary") is True:
            self.conversation.caveats.append(SUMMARY_STANDS_IN)
        self.models[text_of(mapping_of(entry.message, "modelInfo"), "modelId")] += 1
        entry.drafts = self._drafts(entry, entry.line)
        for draft in entry.drafts:
            if draft not in entry.line.drafts:
                entry.line.became(draft)

    def _summarised(self, entry: _Entry, summary: str) -> None:
        entry.call = summary
        entry.line.skip(_RECORDED)
        entry.made = self._drafts(entry, Line("", ""))

    def _goes_on(self, entry: _Entry) -> bool:
        """Whether a user message is the result of the call before that compacted.

        If the user had something to say about the summary, nothing was compacted.
        """
        before = self.entries[-2] if len(self.entries) > 1 else None
        if before is None or not before.call:
            return False
        text = "\n".join(_texts(entry.message))
        for block in list_of(entry.message, "content"):
            if text_of(block, "type") == "tool_result":
                text += "\n".join(_texts(block)) + text_of(block, "content")
        if _FEEDBACK not in text and _CONTINUED.search(text):
            return True
        before.call, before.made, before.line.reason = "", [], None
        self._say(before)
        return False

    def _drafts(self, entry: _Entry, line: Line) -> list[Draft]:
        """Return the messages of the conversation that one of the list is."""
        content = entry.message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        kept: list[Any] = []
        for block in blocks:
            if text_of(block, "type") in ("reasoning", "thoughtSignature"):
                leave_out_thinking(line)
            elif text_of(block, "text").lstrip().startswith(_ASKS_FOR_SUMMARY):
                line.leave_out("instructions", "they asked for the summary of a compaction")
            else:
                kept.append(block)
        try:
            if text_of(entry.message, "role") == "assistant":
                turn = AssistantTurn()
                turn.add(kept, line)
                return turn.drafts
            drafts = user_drafts(self._with_results(kept), line)
            made = entry.message.get("isSummary") is True
            for draft in drafts:
                result = bool(_RESULT.match(draft.text)) and not _WRITTEN.search(draft.text)
                draft.injected = draft.role == "user" and (made or result)
            return drafts
        except RecursionError:
            line.is_unknown("nested too deeply")
            return []

    def _with_results(self, blocks: list[Any]) -> list[Any]:
        """Return blocks with results that stand in texts as what they are, if calls wait for them.

        Where the model called no tool, but wrote what it wanted, there is nothing to link.
        """
        waiting = self._waiting(blocks)
        found: list[Any] = []
        for block in blocks:
            match = _RESULT.match(text_of(block, "text"))
            before = found[-1] if found else {}
            if match:
                self.results_in_text = True
                name = match[1] if match[1] in waiting.values() else ""
                if name or len(waiting) == 1:
                    owner = next(key for key, value in waiting.items() if name in ("", value))
                    del waiting[owner]
                    found.append({"type": "tool_result", "tool_use_id": owner, "content": [block]})
                    continue
            elif (
                text_of(before, "type") == "tool_result"
                and [text.rstrip()[-1:] for text in _texts(before)] == [":"]
                and _RESULT.fullmatch(_texts(before)[0].rstrip())
                and not text_of(block, "text").startswith(_ENVIRONMENT)
            ):
                before["content"].append(block)  # what the head was written for
                continue
            found.append(block)
        return found

    def _waiting(self, blocks: list[Any]) -> dict[str, str]:
        """Return ids and names of the calls before that none of some blocks answers."""
        turn = self.entries[-2].shown if len(self.entries) > 1 else []
        answered = {text_of(block, "tool_use_id") for block in blocks}
        calls = [call for draft in turn for call in draft.calls]
        return {call.id: call.name for call in calls if call.id and call.id not in answered}

    def _replaces(self, summary: _Entry) -> bool:
        name = text_of(summary.message, "condenseId")
        return bool(name) and any(
            text_of(entry.message, "condenseParent") == name for entry in self.entries
        )

    def finish(self) -> Conversation:
        """Return the conversation."""
        conversation, messages = self.conversation, [entry.message for entry in self.entries]
        conversation.drafts = [draft for entry in self.entries for draft in entry.drafts]
        del self.models[""]
        conversation.model = origin(self.models.most_common(1)[0][0]) if self.models else ""
        roo = any(key in message for message in messages for key in (*_ROO_KEYS, "isSummary"))
        roo = roo or any("contextCondense" in event for event in self._shown)
        agent = "Roo Code" if roo else "Cline" if self.models else "Cline or Roo Code"
        conversation.origin = f"{agent} task"
        if self.results_in_text and not any(draft.calls for draft in conversation.drafts):
            conversation.caveats.append(TEXT_ACTIONS)
        found = [*self._summaries(), *self._hidden(), *self._dropped()]
        found.sort(key=lambda numbered: numbered[0])
        conversation.compactions = [compaction for _, compaction in found]
        return conversation

    def _last(self, end: int) -> Draft | None:
        drafts = [draft for entry in self.entries[:end] for draft in entry.drafts]
        return drafts[-1] if drafts else None

    def _summaries(self) -> Iterator[tuple[int, Compaction]]:
        """Yield Cline's compactions with a summary: what goes on behind the first two messages."""
        for number, entry in enumerate(self.entries):
            if not entry.call:
                continue
            behind = self.entries[number + 1] if number + 1 < len(self.entries) else None
            state: list[Draft] | None = None
            if behind is not None and behind.made:
                state = self._opening(number)
                if _called_tool(entry.message) == "condense":
                    asked = self.entries[number - 1].shown if number > 2 else []
                    state += [*asked, *entry.made, *behind.made]
                else:  # the call itself is hidden, so that its result is what the user says
                    parts = [part for draft in behind.made for part in draft.content]
                    state.append(Draft("user", parts, injected=True))
            event = next(
                (at for at, event in enumerate(self._shown) if entry.call in _summary_shown(event)),
                None,
            )
            yield (
                number,
                Compaction(
                    after=self._last(number),
                    summary=entry.call,
                    tokens_before=self._tokens(event),
                    state=state,
                ),
            )

    def _opening(self, end: int) -> list[Draft]:
        """Return the first two messages as Cline sends them; the results behind them are cut."""
        drafts = [draft for at in (0, 1) for draft in self._first(at, end)]
        calls = [call for draft in drafts for call in draft.calls]
        return [*drafts, *(Draft("tool", [NO_RESULT], call_id=call.id) for call in calls)]

    def _first(self, at: int, end: int) -> list[Draft]:
        entry = self.entries[at]
        if at >= end:
            return []
        for notice in self._notices:
            parts = notice if isinstance(notice, list) else []
            texts = dict(_replacements(parts[1])) if len(parts) == 2 and parts[0] == at else {}
            if texts and entry.drafts:
                changed = [
                    {**block, "text": texts[place]} if place in texts else block
                    for place, block in enumerate(list_of(entry.message, "content"))
                    if isinstance(block, dict)
                ]
                copy = _Entry(Line("", ""), {**entry.message, "content": changed})
                return self._drafts(copy, copy.line)
        return entry.shown

    def _dropped(self) -> Iterator[tuple[int, Compaction]]:
        """Yield the places where Cline dropped messages without a summary."""
        compacted = [number for number, entry in enumerate(self.entries) if entry.call]
        known = 1
        for place, event in enumerate(self._shown):
            ends = list_of(event, "conversationHistoryDeletedRange")
            end = ends[1] if len(ends) == 2 and isinstance(ends[1], int) else None
            last = count_of(event, "conversationHistoryIndex")
            if end is None or last is None or last >= len(self.entries) or end == known:
                continue
            forward, known = known < end < last, end
            if not forward or any(abs(number - last) <= 3 for number in compacted):
                continue
            state = self._opening(last)
            state += [draft for entry in self.entries[end + 1 : last + 1] for draft in entry.shown]
            yield (
                last + 1,
                Compaction(
                    after=self._last(last + 1),
                    kind="clear",
                    tokens_before=self._tokens(place),
                    state=state,
                ),
            )

    def _tokens(self, place: int | None) -> int | None:
        """Return the tokens of the request before something that the user was shown."""
        for event in reversed(self._shown[: place or 0]):
            if text_of(event, "say") == "api_req_started":
                try:
                    usage = json.loads(text_of(event, "text"))
                except (ValueError, RecursionError):
                    return None
                counts = [
                    count_of(usage, key) or 0 for key in ("tokensIn", "cacheWrites", "cacheReads")
                ]
                return sum(counts) or None
        return None

    def _hidden(self) -> Iterator[tuple[int, Compaction]]:
        """Yield Roo Code's compactions: what a summary or a truncation hid stays in the list."""
        hiding: set[str] = set()
        for number, entry in enumerate(self.entries):
            summary = bool(entry.made) and entry.message.get("isSummary") is True
            if not summary and entry.message.get("isTruncationMarker") is not True:
                continue
            name = text_of(entry.message, "condenseId" if summary else "truncationId")
            hiding.update([name] if name else [])
            details, time = self._event(name)
            kept = self._kept(number, entry, time)
            end = number + 1 + (kept or 0)
            state: list[Draft] | None = None
            if kept is not None:
                visible = [
                    known
                    for known in self.entries[:end]
                    if text_of(known.message, "condenseParent") not in hiding
                    and text_of(known.message, "truncationParent") not in hiding
                ]
                state = [draft for known in visible for draft in known.shown]
            elif not summary:
                self.conversation.caveats.append("when the agent cut its context is not known")
            written = text_of(details, "summary") or next(iter(_texts(entry.message)), "")
            yield (
                end,
                Compaction(
                    after=self._last(end),
                    kind="summary" if summary else "clear",
                    summary=written if summary else None,
                    tokens_before=count_of(details, "prevContextTokens"),
                    tokens_after=count_of(details, "newContextTokens"),
                    state=state,
                ),
            )

    def _event(self, name: str) -> tuple[dict[str, Any], int | None]:
        """Return what the user was told of a compaction, and when."""
        for event in self._shown:
            for key, identity in (
                ("contextCondense", "condenseId"),
                ("contextTruncation", "truncationId"),
            ):
                details = mapping_of(event, key)
                if name and text_of(details, identity) == name:
                    return details, count_of(event, "ts")
        return {}, None

    def _kept(self, number: int, entry: _Entry, time: int | None) -> int | None:
        """Return how many messages behind a summary or mark were there before it."""
        behind = self.entries[number + 1 :]
        if time is not None:
            times = [count_of(known.message, "ts") for known in behind]
            return sum(at is not None and at <= time for at in times)
        if entry.message.get("isSummary") is not True:
            return None
        answers = text_of(entry.message, "role") == "assistant"
        return min(_KEPT_BEHIND_ANSWER, len(behind)) if answers else 0


def _texts(value: dict[str, Any]) -> list[str]:
    if isinstance(value.get("content"), str):
        return [text_of(value, "content")]
    blocks = list_of(value, "content")
    return [text_of(block, "text") for block in blocks if text_of(block, "type") == "text"]


def _called_tool(message: dict[str, Any]) -> str:
    """Return the tool for compacting that a message calls; empty if none."""
    for block in list_of(message, "content"):
        if text_of(block, "type") == "tool_use" and text_of(block, "name") in _SUMMARIES:
            return text_of(block, "name")
    match = _SUMMARY_TEXT.search("\n".join(_texts(message)))
    return match[1] if match else ""


def _called_summary(message: dict[str, Any]) -> str:
    """Return the summary in a message that calls a tool for compacting; empty if it calls none."""
    for block in list_of(message, "content"):
        if text_of(block, "type") == "tool_use" and text_of(block, "name") in _SUMMARIES:
            return text_of(mapping_of(block, "input"), "context").strip()
    match = _SUMMARY_TEXT.search("\n".join(_texts(message)))
    return match[2].strip() if match else ""


def _summary_shown(event: dict[str, Any]) -> str:
    """Return the summary that the user was shown; empty if it was something else."""
    if text_of(event, "ask") == "condense":
        return text_of(event, "text")
    text = text_of(event, "text")
    if text_of(event, "say") != "tool" or "summarizeTask" not in text:
        return ""
    try:
        return text_of(json.loads(text), "content")
    except (ValueError, RecursionError):
        return ""


def _replacements(value: Any) -> Iterator[tuple[int, str]]:
    """Yield the block and the text of what Cline put in place of a message's texts.

    Args:
        value: As stored: ``[kind, [[block, [[time, "text", [text], …], …]], …]]``.
    """
    blocks = value[1] if isinstance(value, list) and len(value) == 2 else None
    for item in blocks if isinstance(blocks, list) else []:
        match item:
            case [int(block), [[_, "text", [str(text), *_], *_], *_]]:
                yield block, text


def _is_message(value: Any) -> bool:
    return text_of(value, "role") in ("user", "assistant") and isinstance(
        value.get("content"), str | list
    )


def _recognise(source: SourceFile) -> str | None:
    if not isinstance(source.document, list):
        return None
    messages = [message for message in source.document if _is_message(message)]
    for message in messages:
        if any(text_of(message, key) for key in _ROO_KEYS):
            return "a list of messages that summaries or truncations hide, as Roo Code marks them"
        if text_of(mapping_of(message, "modelInfo"), "modelId"):
            return "a list of messages with the modelInfo of Cline"
        if text_of(message, "role") == "user" and any(
            text.startswith(_ENVIRONMENT) for text in _texts(message)
        ):
            return "a list of messages with environment_details, as Cline and Roo Code write them"
    return None


def _beside(source: SourceFile, name: str) -> list[Any]:
    """Return the list in another file of the task's folder; empty if there is none."""
    path = source.path.with_name(name)
    if source.path.name != _FILE or not path.is_file():
        return []
    try:
        document = SourceFile(path).document
    except OSError:
        return []
    return document if isinstance(document, list) else []


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = json_document(source, _EXPECTED)
    if not isinstance(document, list) or not any(map(_is_message, document)):
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    task = _Task(_beside(source, "ui_messages.json"), _beside(source, "context_history.json"))
    for message in document:
        task.feed(message)
    conversation = task.finish()
    if source.document_replaced:
        conversation.caveats.append(REPLACED_BYTES)
    yield conversation


FORMAT = Format(
    name="cline",
    title="Cline and Roo Code tasks (api_conversation_history.json)",
    recognise=_recognise,
    read=_read,
)
