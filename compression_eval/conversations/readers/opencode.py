"""Sessions of OpenCode: ``opencode export`` and its database.

Both contain the same: a session, its messages, and the parts of each. A compaction is a user
message with a part of that name and the assistant message behind it, whose text is the summary.
"""

from collections.abc import Iterator
from pathlib import Path

from compression_eval.conversations.drafts import (
    NO_THINKING,
    Compaction,
    Content,
    Conversation,
    Draft,
    Image,
    Line,
)
from compression_eval.conversations.fields import Json, from_json, label, origin
from compression_eval.conversations.readers.base import Format, Reader, prevails
from compression_eval.conversations.readers.sqlite import (
    UNREADABLE,
    has_tables,
    is_database,
    opened,
    stored_object,
)
from compression_eval.conversations.sources import SourceFile

_QUESTION = "What did we do so far?"
"""What OpenCode shows the model for the message that asked for a compaction."""
_TEXT_FILES = ("text/plain", "application/x-directory")
_SKIPPED = {
    "step-start": "a mark of a step's course",
    "step-finish": "an account of tokens",
    "snapshot": "a snapshot of the files for undoing",
    "patch": "a list of the files that a step changed",
    "agent": "the name of the agent that the user chose",
    "retry": "a failed request that was tried again",
    "unreadable": UNREADABLE,
}


class _Thread(Reader):
    format = "opencode"

    def __init__(self, info: Json) -> None:
        super().__init__(origin("OpenCode", info.text("version")), info.text("id"))
        if info.first("parentID", "parent_id"):
            self.name_subagent("session")
        self._reverted = info.text("revert", "messageID")
        self._undone = False
        self._starts: dict[str, int] = {}
        """How many drafts there were before a message, by its id."""
        self._asked: dict[str, Json] = {}
        """Parts that ask for a compaction, by the ids of their messages."""
        self._fresh: Compaction | None = None
        """The compaction that no request has followed yet."""
        self._tokens: int | None = None
        self._pruned = 0
        self._count = 0

    def message(self, info: Json, parts: list[Json], problem: str = "") -> None:
        """Enter a message and its parts, or why it cannot be read."""
        role, name = info.text("role"), info.text("id")
        self._count += 1
        self.recognised = True
        head = self.enter(f"message {self._count}", f"message:{label(role)}")
        lines = [
            self.enter(f"{head.place}, part {number}", f"part:{label(part.text('type'))}")
            for number, part in enumerate(parts, 1)
        ]
        self._starts.setdefault(name, len(self.drafts))
        self._undone = self._undone or bool(name and name == self._reverted)
        if problem:
            head.skip(problem)
        elif self._undone:
            _skip([head, *lines], "undone by the user")
        elif role == "user":
            self._user(head, lines, info, parts)
        elif role == "assistant" and info.at("summary") is True:
            self._summary(head, lines, info, parts)
        elif role == "assistant":
            self._assistant(head, lines, info, parts)
        else:
            head.is_unknown("expected a message of the role user or assistant")
            _skip(lines, "a part of a message that is not known")

    def finish(self) -> Conversation:
        self.name_injected("OpenCode (files that were named, prompts to go on)")
        if self._pruned:
            self.caveat(
                f"{self._pruned} results were cleared from the context later; they are in the "
                "history, and the clearing is not recorded as a cut"
            )
        return super().finish()

    def _user(self, head: Line, lines: list[Line], info: Json, parts: list[Json]) -> None:
        asked = next((part for part in parts if part.text("type") == "compaction"), None)
        if asked is not None:
            self._asked[info.text("id")] = asked
            return
        typed, made = Draft("user"), Draft("user", injected=True)
        for part, line in zip(parts, lines, strict=True):
            match part.text("type"):
                case "text" if part.at("ignored") is True:
                    line.skip("shown to the user only")
                case "text":
                    draft = made if part.at("synthetic") is True else typed
                    draft.content.append(part.text("text"))
                case "file" if part.text("mime") in _TEXT_FILES:
                    line.skip("a file that was named; its text is a part of its own")
                case "file":
                    typed.content.append(_file(part))
                case "subtask":
                    typed.content.append(part.text("prompt"))
                case kind:
                    _skip_part(kind, line)
        self.say(head, *([draft for draft in (typed, made) if draft.content] or [typed]))

    def _assistant(self, head: Line, lines: list[Line], info: Json, parts: list[Json]) -> None:
        kinds = {part.text("type") for part in parts} - {"step-start", "reasoning"}
        aborted = info.text("error", "name") == "MessageAbortedError" and kinds
        if info.entry("error") and not aborted:
            _skip([head, *lines], "a failed request, which the model does not see again")
            return
        self._take_usage(info)
        draft, results = Draft("assistant"), list[Draft]()
        for part, line in zip(parts, lines, strict=True):
            match part.text("type"):
                case "text":
                    draft.content.append(part.text("text"))
                case "tool":
                    call_id, state = part.text("callID"), part.entry("state")
                    draft.call(call_id, part.text("tool"), state.at("input"))
                    self._pruned += "compacted" in state.entry("time")
                    if (shown := _outcome(state)) is not None:
                        results.append(line.became(Draft("tool", shown, call_id=call_id)))
                case "reasoning":
                    line.leave_out_thinking()
                    line.skip(NO_THINKING)
                case kind:
                    _skip_part(kind, line)
        self.drafts += [head.became(draft), *results]

    def _summary(self, head: Line, lines: list[Line], info: Json, parts: list[Json]) -> None:
        texts = [part.text("text") for part in parts if part.text("type") == "text"]
        summary = "\n".join(text for text in texts if text)
        if not summary or info.entry("error"):
            _skip([head, *lines], "a compaction that failed")
            return
        asked = self._asked.get(info.text("parentID"), Json())
        start = self._starts.get(asked.text("tail_start_id"), len(self.drafts))
        made = [Draft("user", [_QUESTION], injected=True)] if asked else []
        trigger = "auto" if asked.at("auto") is True else "manual"
        self._fresh = self.compact(
            summary,
            [*self.drafts[start:], *made, Draft("assistant", [summary])],
            trigger=trigger if asked else "",
            tokens_before=self._tokens,
        )

    def _take_usage(self, info: Json) -> None:
        """Take how full the context was; the first count after a compaction is its outcome."""
        model = "/".join(filter(None, (info.text("providerID"), info.text("modelID"))))
        self.models[origin(model)] += 1
        tokens = info.entry("tokens")
        cached = [tokens.count("cache", key) or 0 for key in ("read", "write")]
        if sent := (tokens.count("input") or 0) + sum(cached):
            if self._fresh is not None:
                self._fresh.tokens_after, self._fresh = sent, None
            self._tokens = sent + (tokens.count("output") or 0)


def _skip(lines: list[Line], reason: str) -> None:
    for line in lines:
        line.skip(reason)


def _skip_part(kind: str, line: Line) -> None:
    if kind in _SKIPPED:
        line.skip(_SKIPPED[kind])
    else:
        line.is_unknown("a kind of part that OpenCode is not known to write")


def _outcome(state: Json) -> Content | None:
    """Return what the model was shown of a call; None if it had not ended."""
    text = state.text("output")
    match state.text("status"):
        case "completed":
            pass
        case "error":
            stopped = state.at("metadata", "interrupted") is True
            text = (state.text("metadata", "output") if stopped else "") or state.text("error")
        case _:
            return None
    return [text, *(_file(item) for item in state.entries("attachments") if item)]


def _file(part: Json) -> str | Image:
    media_type = part.text("mime")
    if media_type.startswith("image/"):
        return Image(media_type, part.text("url"))
    return f"[file: {part.text('filename') or media_type or 'unnamed'}]"


def _is_export(document: Json) -> bool:
    messages = document.entries("messages")
    return bool(document.text("info", "id")) and prevails(
        messages[:20], lambda message: message.text("info", "role"), _is_whole
    )


def _is_whole(message: Json) -> bool:
    return isinstance(message.at("info"), dict) and isinstance(message.at("parts"), list)


def _recognise(source: SourceFile) -> str | None:
    if has_tables(source, ("session", "message", "part")):
        return "an SQLite database with the tables session, message and part"
    if _is_export(Json.of(source.document)):
        return "an object with info, and messages of info and parts"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = Json.of(source.document)
    if is_database(source):
        yield from _database(source.path)
    elif _is_export(document):
        thread = _Thread(document.entry("info"))
        for value in document.listed("messages"):
            message = Json.of(value)
            problem = "" if isinstance(value, dict) else "expected an object"
            thread.message(message.entry("info"), message.entries("parts"), problem)
        yield thread.finish()


def _database(path: Path) -> Iterator[Conversation]:
    messages = "SELECT id, data FROM message WHERE session_id IS ? ORDER BY time_created, id"
    parts = "SELECT data FROM part WHERE message_id IS ? ORDER BY id"
    with opened(path) as connection:
        for session in map(dict, connection.execute("SELECT * FROM session").fetchall()):
            thread = _Thread(Json({**session, "revert": from_json(session.get("revert"))}))
            for name, data in connection.execute(messages, (session["id"],)):
                info, problem = stored_object(data)
                rows = connection.execute(parts, (name,))
                found = [stored_object(row[0])[0] or Json(type="unreadable") for row in rows]
                thread.message(Json({**info, "id": name}), found, problem)
            if thread.recognised:
                yield thread.finish()


FORMAT = Format("opencode", _recognise, _read, "what opencode export writes, or opencode.db")
