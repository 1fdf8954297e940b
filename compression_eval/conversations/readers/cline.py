"""Tasks of Cline, Roo Code and their forks: the Anthropic messages of a task in one JSON list.

The list is a task folder's ``api_conversation_history.json``. If ``ui_messages.json`` is next to
it, it tells when the context was cut, and numbers of tokens.

Cline lets the model call a tool with the summary and continues after it, or drops a range of
messages. Roo Code marks the messages that a summary or a truncation hides; which it kept follows
from the times in ``ui_messages.json``, else from what its versions do.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.drafts import (
    NO_THINKING,
    SUMMARY_STANDS_IN,
    Compaction,
    Conversation,
    Draft,
    Line,
)
from compression_eval.conversations.fields import Json, entries, from_json, label, origin
from compression_eval.conversations.readers.anthropic import AssistantTurn, text_block, user_drafts
from compression_eval.conversations.readers.base import (
    TEXT_ACTIONS,
    Format,
    Reader,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.models import NO_RESULT

_FILE = "api_conversation_history.json"
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
_RESULT = re.compile(r"\[([\w.-]+)(?: (?:for|in [\w ]+ mode:) '.*?|[^\n]*)\] Result:", re.DOTALL)
"""How the results of tools begin: text, even where the call was none.

What is quoted of the call, a command or a question, may have several lines.
"""
_WRITTEN = re.compile("<(feedback|answer|user_message)>|The user provided feedback")
"""Where a result contains what the user wrote."""
_ENVIRONMENT = "<environment_details>"
_ASKS_FOR_SUMMARY = '<explicit_instructions type="summarize_task"'
_KEPT_BEHIND_ANSWER = 3
"""Messages that Roo Code kept behind a summary while its summaries were assistant messages."""


@dataclass(eq=False)
class _Message:
    """A message of the list."""

    line: Line
    value: Json
    drafts: list[Draft] = field(default_factory=list)
    """What it adds to the conversation."""
    made: list[Draft] = field(default_factory=list)
    """What it is in a state, if a compaction made it: then it adds nothing."""
    call: str = ""
    """The summary, if it is a call of Cline that compacts."""

    @property
    def shown(self) -> list[Draft]:
        return self.made or self.drafts

    @property
    def sums_up(self) -> bool:
        return self.value.at("isSummary") is True


class _Task(Reader):
    format = "cline"

    def __init__(self, shown: list[Any]) -> None:
        super().__init__()
        self._messages: list[_Message] = []
        self._results_in_text = False
        self._shown = [Json(event) for event in shown if isinstance(event, dict)]

    def name_of(self, entry: Json) -> str:
        return label(entry.first("role", "type"))

    def take(self, line: Line, entry: Json) -> None:
        message = _Message(line, entry)
        self._messages.append(message)
        role = entry.text("role")
        if not role and entry.text("type") == "reasoning":
            line.skip(NO_THINKING)
            return
        if not _is_message(entry):
            line.is_unknown("expected the role user or assistant, and content as text or blocks")
            return
        if entry.at("isTruncationMarker") is True:
            return  # a compaction, which `finish` records
        message.call = _called(entry)[1] if role == "assistant" else ""
        hides = message.sums_up and self._replaces(entry.text("condenseId"))
        if hides or message.call or (role == "user" and self._goes_on(message)):
            message.made = self._drafts(message, Line())
        else:
            self._say(message)

    def _say(self, message: _Message) -> None:
        if message.sums_up:
            self.caveat(SUMMARY_STANDS_IN)
        self.models[message.value.text("modelInfo", "modelId")] += 1
        message.drafts = self._drafts(message, message.line)
        for draft in message.drafts:
            message.line.became(draft)

    def _replaces(self, name: str) -> bool:
        hidden = [message.value.text("condenseParent") for message in self._messages]
        return bool(name) and name in hidden

    def _goes_on(self, message: _Message) -> bool:
        """Whether a user message is the result of the call before that compacted.

        If the user had something to say about the summary, nothing was compacted.
        """
        before = self._messages[-2] if len(self._messages) > 1 else None
        if before is None or not before.call:
            return False
        text = "\n".join(draft.text for draft in self._drafts(message, Line()))
        if _FEEDBACK not in text and _CONTINUED.search(text):
            return True
        before.call, before.made = "", []
        self._say(before)
        return False

    def _drafts(self, message: _Message, line: Line) -> list[Draft]:
        """Return the messages of the conversation that one of the list is."""
        content = message.value["content"]
        kept: list[Any] = []
        for value in content if isinstance(content, list) else [text_block(content)]:
            if Json.of(value).text("text").lstrip().startswith(_ASKS_FOR_SUMMARY):
                line.leave_out("instructions", "they asked for the summary of a compaction")
            else:
                kept.append(value)
        if message.value.text("role") == "assistant":
            return AssistantTurn().add(kept, line)
        drafts = user_drafts(self._with_results(kept), line)
        for draft in drafts:
            result = bool(_RESULT.match(draft.text)) and not _WRITTEN.search(draft.text)
            draft.injected = draft.role == "user" and (message.sums_up or result)
        return drafts

    def _with_results(self, blocks: list[Any]) -> list[Any]:
        """Return blocks with results that are in texts as what they are, if calls wait for them.

        Where the model called no tool, but wrote what it wanted, there is nothing to link.
        """
        answered = {block.text("tool_use_id") for block in entries(blocks)}
        turn = self._messages[-2].shown if len(self._messages) > 1 else []
        calls = (call for draft in turn for call in draft.calls)
        waiting = {call.id: call.name for call in calls if call.id and call.id not in answered}
        found: list[Any] = []
        head: list[Any] | None = None
        """Content of a result whose head is alone: what it was written for comes next."""
        for block in blocks:
            text = Json.of(block).text("text")
            match = _RESULT.match(text)
            if head is not None and not match and not text.startswith(_ENVIRONMENT):
                head.append(block)
                head = None
                continue
            head, name = None, ""
            if match:
                self._results_in_text = True
                name = match[1] if match[1] in waiting.values() else ""
            if match and (name or len(waiting) == 1):
                owner = next(key for key, value in waiting.items() if name in ("", value))
                del waiting[owner]
                content = [block]
                found.append({"type": "tool_result", "tool_use_id": owner, "content": content})
                head = content if match.end() == len(text.rstrip()) else None
            else:
                found.append(block)
        return found

    def finish(self) -> Conversation:
        super().finish()
        self.model = origin(self.model)
        self.drafts = [draft for message in self._messages for draft in message.drafts]
        keys = {key for message in self._messages for key in message.value}
        roo = bool(keys & {*_ROO_KEYS, "isSummary"})
        roo = roo or any("contextCondense" in event for event in self._shown)
        agent = "Roo Code" if roo else "Cline" if self.models else "Cline or Roo Code"
        self.origin = f"{agent} task"
        if self._results_in_text and not self.called:
            self.caveat(TEXT_ACTIONS)
        found = [*self._summaries(), *self._hidden(), *self._dropped()]
        for end, compaction in sorted(found, key=lambda numbered: numbered[0]):
            before = [draft for message in self._messages[:end] for draft in message.drafts]
            compaction.after = before[-1] if before else None
            self.compactions.append(compaction)
        return self

    def _summaries(self) -> Iterator[tuple[int, Compaction]]:
        """Yield Cline's compactions with a summary: what continues after the first two messages."""
        for number, message in enumerate(self._messages):
            if not message.call:
                continue
            made = [draft for behind in self._messages[number + 1 :][:1] for draft in behind.made]
            state: list[Draft] | None = None
            if made and _called(message.value)[0] == "condense":
                asked = self._messages[number - 1].shown if number > 2 else []
                state = [*self._opening(number), *asked, *message.made, *made]
            elif made:  # the call itself is hidden, so that its result is what the user says
                parts = [part for draft in made for part in draft.content]
                state = [*self._opening(number), Draft("user", parts, injected=True)]
            events = enumerate(map(_summary_shown, self._shown))
            event = next((place for place, shown in events if message.call in shown), 0)
            tokens = self._tokens(event)
            yield number, Compaction(None, summary=message.call, tokens_before=tokens, state=state)

    def _opening(self, end: int) -> list[Draft]:
        """Return the first two messages as Cline sends them; the results behind them are cut."""
        drafts = [draft for message in self._messages[: min(2, end)] for draft in message.shown]
        calls = [call for draft in drafts for call in draft.calls]
        return [*drafts, *(Draft("tool", [NO_RESULT], call_id=call.id) for call in calls)]

    def _dropped(self) -> Iterator[tuple[int, Compaction]]:
        """Yield the places where Cline dropped messages without a summary."""
        compacted = [number for number, message in enumerate(self._messages) if message.call]
        known = 1
        for place, event in enumerate(self._shown):
            ends = event.listed("conversationHistoryDeletedRange")
            end = ends[1] if len(ends) == 2 and isinstance(ends[1], int) else None
            last = event.count("conversationHistoryIndex")
            if end is None or last is None or last >= len(self._messages) or end == known:
                continue
            forward, known = known < end < last, end
            if not forward or any(abs(number - last) <= 3 for number in compacted):
                continue
            kept = [draft for each in self._messages[end + 1 : last + 1] for draft in each.shown]
            state, tokens = [*self._opening(last), *kept], self._tokens(place)
            yield last + 1, Compaction(None, "clear", tokens_before=tokens, state=state)

    def _tokens(self, place: int) -> int | None:
        """Return the tokens of the request before something that the user was shown."""
        for event in reversed(self._shown[:place]):
            if event.text("say") == "api_req_started":
                usage = Json.of(from_json(event.text("text")))
                keys = ("tokensIn", "cacheWrites", "cacheReads")
                return sum(usage.count(key) or 0 for key in keys) or None
        return None

    def _hidden(self) -> Iterator[tuple[int, Compaction]]:
        """Yield Roo Code's compactions: what a summary or a truncation hid stays in the list."""
        hiding: set[str] = set()
        for number, message in enumerate(self._messages):
            summary = bool(message.made) and message.sums_up
            if not summary and message.value.at("isTruncationMarker") is not True:
                continue
            name = message.value.text("condenseId" if summary else "truncationId")
            hiding.update([name] if name else [])
            details, time = self._event(name)
            kept = self._kept(number, message, time)
            end = number + 1 + (kept or 0)
            state: list[Draft] | None = None
            if kept is not None:
                state = [
                    draft
                    for known in self._messages[:end]
                    if known.value.text("condenseParent") not in hiding
                    and known.value.text("truncationParent") not in hiding
                    for draft in known.shown
                ]
            elif not summary:
                self.caveat("when the agent cut its context is not known")
            written = details.text("summary") or next(iter(_texts(message.value)), "")
            compaction = Compaction(
                None,
                kind="summary" if summary else "clear",
                summary=written if summary else None,
                tokens_before=details.count("prevContextTokens"),
                tokens_after=details.count("newContextTokens"),
                state=state,
            )
            yield end, compaction

    def _event(self, name: str) -> tuple[Json, int | None]:
        """Return what the user was told of a compaction, and when."""
        kinds = (("contextCondense", "condenseId"), ("contextTruncation", "truncationId"))
        for event in self._shown if name else ():
            for key, identity in kinds:
                if event.text(key, identity) == name:
                    return event.entry(key), event.count("ts")
        return Json(), None

    def _kept(self, number: int, message: _Message, time: int | None) -> int | None:
        """Return how many messages behind a summary or mark were there before it."""
        behind = self._messages[number + 1 :]
        if time is not None:
            times = [known.value.count("ts") for known in behind]
            return sum(at is not None and at <= time for at in times)
        if not message.sums_up:
            return None
        answers = message.value.text("role") == "assistant"
        return min(_KEPT_BEHIND_ANSWER, len(behind)) if answers else 0


def _texts(value: Json) -> list[str]:
    if isinstance(value.at("content"), str):
        return [value["content"]]
    blocks = value.entries("content")
    return [block.text("text") for block in blocks if block.text("type") == "text"]


def _called(message: Json) -> tuple[str, str]:
    """Return the tool for compacting that a message calls, and the summary; empty if none."""
    for block in message.entries("content"):
        if block.text("type") == "tool_use" and block.text("name") in _SUMMARIES:
            return block.text("name"), block.text("input", "context").strip()
    match = _SUMMARY_TEXT.search("\n".join(_texts(message)))
    return (match[1], match[2].strip()) if match else ("", "")


def _summary_shown(event: Json) -> str:
    """Return the summary that the user was shown; empty if it was something else."""
    text = event.text("text")
    if event.text("ask") == "condense":
        return text
    if event.text("say") != "tool" or "summarizeTask" not in text:
        return ""
    return Json.of(from_json(text)).text("content")


def _is_message(value: Any) -> bool:
    message = Json.of(value)
    speaks = message.text("role") in ("user", "assistant")
    return speaks and isinstance(message.at("content"), str | list)


def _recognise(source: SourceFile) -> str | None:
    for message in filter(_is_message, entries(source.document)):
        if any(message.text(key) for key in _ROO_KEYS):
            return "a list of messages that summaries or truncations hide, as Roo Code marks them"
        if message.text("modelInfo", "modelId"):
            return "a list of messages with the modelInfo of Cline"
        if message.text("role") == "user" and any(
            text.startswith(_ENVIRONMENT) for text in _texts(message)
        ):
            return "a list of messages with environment_details, as Cline and Roo Code write them"
    return None


def _shown_beside(source: SourceFile) -> list[Any]:
    """Return what the user was shown, from the task's folder; empty if it is not there."""
    path = source.path.with_name("ui_messages.json")
    if source.path.name != _FILE or not path.is_file():
        return []
    try:
        document = SourceFile(path).document
    except OSError:
        return []
    return document if isinstance(document, list) else []


def _read(source: SourceFile) -> Iterator[Conversation]:
    if not any(map(_is_message, entries(source.document))):
        return
    task = _Task(_shown_beside(source))
    task.feed_all("message", source.document)
    yield task.finish()


FORMAT = Format("cline", _recognise, _read, "a task of Cline or Roo Code: a JSON list of messages")
