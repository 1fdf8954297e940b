"""ATIF trajectories (versions 1.0 to 1.8): steps in one JSON document.

An agent that compacts its context goes on in a continuation file, which begins with copies of
what it went on with. Such a file is followed only if it lies beside the first one.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    RECORDED,
    Compaction,
    Content,
    Conversation,
    Draft,
    DraftCall,
    Image,
)
from compression_eval.conversations.fields import (
    as_text,
    identifier,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
    value_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    TEXT_ACTIONS,
    Entry,
    KnownDrafts,
    Reader,
    document_of,
    leave_out_thinking,
    nowhere,
    tool_definitions,
    with_replaced,
    without_thinking,
)
from compression_eval.conversations.sources import SourceFile, source_file
from compression_eval.fixtures.errors import DataError

_EXPECTED = "an ATIF trajectory: an object with schema_version ATIF-v1.x and steps"
_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
_MAX_FILES = 1000
_NOTES = "steps of the system after the first turn stand as user messages"
_NO_CALL_IDS = "observations that answer no call stand as user messages"


class _Trajectory(Reader):
    """A trajectory that is being read, with its continuations."""

    format = "atif"
    lacks = ()

    def __init__(self, document: Entry, start: str, part: str) -> None:
        agent = mapping_of(document, "agent")
        product = origin("ATIF:", text_of(agent, "name"), text_of(agent, "version"))
        super().__init__(product, text_of(document, "session_id"), part)
        conversation = self.conversation
        conversation.tools, without = tool_definitions(list_of(agent, "tool_definitions"))
        if not conversation.tools:
            conversation.caveats.append(NO_TOOLS)
        if without:
            conversation.caveats.append(f"{without} tools are named without a schema")
        if not _KNOWN.fullmatch(text_of(document, "schema_version")):
            conversation.caveats.append("the version of the format is not known")
        self._model = origin(text_of(agent, "model_name"))
        self.add(document, start)

    def add(self, document: Entry, start: str, *, continues: bool = False) -> None:
        """Take the steps of a file.

        Args:
            document: The file.
            start: What stands before a step's number in its place.
            continues: Whether the file before has been read, so that copies tell its compaction.
        """
        conversation, copied = self.conversation, list[Draft]()
        before = list(conversation.drafts)
        unsettled = [item for item in conversation.compactions if item.state is None]
        for number, step in enumerate(list_of(document, "steps"), 1):
            copy = value_of(step, "is_copied_context") is True
            compacts = text_of(step, "extra", "context_management", "type") == "compaction"
            kind = ":compaction" if compacts else ":copied" if copy else ""
            line = conversation.ledger.enter(
                f"{start}step {number}", label(text_of(step, "source")) + kind
            )
            if not isinstance(step, dict):
                line.is_unknown("expected an object")
            elif compacts:
                line.skip(RECORDED)
                if mapping_of(step, "observation"):
                    why = "it names the files of the compaction's own sub-agents"
                    line.leave_out("observation", why)
                conversation.compact()
            elif copy and continues:
                line.skip("a copy of what the agent went on with, recorded with the compaction")
                copied.extend(_drafts(step, nowhere(), opening=False))
            elif copy:
                line.skip("a copy out of the file that this one continues")
            else:
                self._step(step, line)
        if copied:
            self._state(copied, before, unsettled[-1] if unsettled else None)

    def finish(self) -> Conversation:
        conversation = super().finish()
        conversation.model = self._model or conversation.model
        if conversation.system is None:
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        called = any(draft.calls for draft in conversation.drafts)
        if _NO_CALL_IDS in conversation.caveats and not called:
            conversation.caveats.append(TEXT_ACTIONS)
        conversation.caveats[:] = dict.fromkeys(conversation.caveats)
        return conversation

    def _step(self, step: Entry, line: Line) -> None:
        conversation = self.conversation
        opening = all(draft.role == "system" for draft in conversation.drafts)
        drafts = _drafts(step, line, opening=opening)
        conversation.say(line, *drafts)
        if drafts and drafts[0].role == "user" and text_of(step, "source") == "system":
            conversation.caveats.append(_NOTES)
        if any(draft.role == "user" for draft in drafts[1:]):
            conversation.caveats.append(_NO_CALL_IDS)
        self.models[origin(text_of(step, "model_name"))] += 1

    def _state(
        self, copied: list[Draft], before: list[Draft], compaction: Compaction | None
    ) -> None:
        """Say of a compaction what the agent went on with.

        Args:
            copied: The copies that a continuation begins with.
            before: The messages before it.
            compaction: What the file before ended with; None if it did not say that it compacted.
        """
        if compaction is None:
            compaction = self.conversation.compact(after=before[-1] if before else None)
        known = KnownDrafts(before)
        state = [(known.match(draft), draft) for draft in copied if draft.role != "system"]
        made = [draft.text for same, draft in state if same is None and draft.text]
        compaction.state = [same or draft for same, draft in state]
        compaction.kind = "summary" if made else "clear"
        compaction.summary = "\n\n".join(made) or None


def _drafts(step: Entry, line: Line, *, opening: bool) -> list[Draft]:
    """Return the messages of a step: what was said, then what was observed.

    Args:
        step: A step that is no compaction.
        line: Settled if there is no message.
        opening: Whether nobody has spoken yet, so that a step of the system is the prompt.
    """
    source = text_of(step, "source")
    content = _content(step.get("message"), line) if source in ("system", "user", "agent") else []
    match source:
        case "user":
            said = Draft("user", content)
        case "system":
            # In the middle of a conversation it is a note of the environment, not the prompt.
            said = Draft("system" if opening else "user", content)
        case "agent":
            said = Draft("assistant", without_thinking(content, line), list(_calls(step, line)))
            if step.get("reasoning_content"):
                leave_out_thinking(line)
        case _:
            line.is_unknown("expected a step of the source system, user or agent")
            return []
    return [said, *_observed(step, said, line)]


def _content(value: Any, line: Line) -> Content:
    """Return texts and images of a message, a text or a list of parts."""
    if isinstance(value, str):
        return [value] if value else []
    if value is not None and not isinstance(value, list):
        line.leave_out("content", "expected a text or a list of parts")
    found: Content = []
    for part in list_of(value):
        match text_of(part, "type"):
            case "text":
                found.append(text_of(part, "text"))
            case "image":  # its path is not followed: it may lead anywhere
                found.append(Image(text_of(part, "source", "media_type")))
            case kind:
                line.leave_out(f"part {label(kind)}", "unknown kind of content")
    return found


def _calls(step: Entry, line: Line) -> Iterator[DraftCall]:
    for call in list_of(step, "tool_calls"):
        if isinstance(call, dict):
            name, arguments = text_of(call, "function_name"), as_text(call.get("arguments"))
            yield DraftCall(identifier(call, "tool_call_id"), name, arguments)
        else:
            line.leave_out("tool call", "expected an object")


def _observed(step: Entry, said: Draft, line: Line) -> Iterator[Draft]:
    """Yield results of calls, and, as the agent saw them, user messages for other observations."""
    results = list_of(step, "observation", "results")
    named = [identifier(result, "source_call_id") for result in results]
    open_calls = [call.id for call in said.calls if call.id not in named]
    by_order = iter(open_calls if len(open_calls) == named.count("") else ())
    for result, name in zip(results, named, strict=True):
        if not isinstance(result, dict):
            line.leave_out("observation", "expected an object")
            continue
        if list_of(result, "subagent_trajectory_ref"):
            line.leave_out("sub-agent", "its trajectory is a conversation of its own")
        content = _content(result.get("content"), line)
        if call_id := name or next(by_order, ""):
            yield Draft("tool", content, call_id=call_id)
        elif content:
            yield Draft("user", content)


def _is_trajectory(document: Any) -> bool:
    version = text_of(document, "schema_version")
    return version.startswith("ATIF-v") and isinstance(document.get("steps"), list)


def _recognise(source: SourceFile) -> str | None:
    if _is_trajectory(source.document):
        return "a JSON object with a schema_version of ATIF and steps"
    return None


def _beside(path: Path, reference: Any) -> Path | None:
    """Return the file that a reference names, if it lies in the same folder."""
    if not isinstance(reference, str) or not reference.isprintable() or "\\" in reference:
        return None
    if not reference or Path(reference).name != reference:
        return None
    found = path.parent / reference
    try:
        inside = found.resolve().parent == path.parent.resolve()
        return found if inside and (found.is_file() or not found.is_symlink()) else None
    except (OSError, RuntimeError):  # a name that is too long, or links in a circle
        return None


def _continue(source: SourceFile, trajectory: _Trajectory) -> None:
    """Read the files that a trajectory goes on in, one after the other."""
    conversation = trajectory.conversation
    document, seen = source.document, {source.path.resolve()}
    for number in range(1, _MAX_FILES):
        reference = document.get("continued_trajectory_ref")
        if reference is None:
            return
        path = _beside(source.path, reference)
        if path is None:
            conversation.caveats.append("a continuation outside the folder was not followed")
            return
        if not path.is_file() or path.resolve() in seen:
            conversation.caveats.append("the continuation is not beside the file")
            return
        seen.add(path.resolve())
        try:
            document = document_of(source_file(path), _EXPECTED, _is_trajectory)
        except DataError:
            document = None
        session = text_of(document, "session_id")
        if document is None or session not in ("", conversation.session):
            conversation.caveats.append("the file beside it is no continuation of this session")
            return
        trajectory.add(document, f"continuation {number}, ", continues=True)


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = document_of(source, _EXPECTED, _is_trajectory)
    trajectory = _Trajectory(document, "", "")
    _continue(source, trajectory)
    yield with_replaced(trajectory.finish(), source)
    for number, inner in enumerate(list_of(document, "subagent_trajectories"), 1):
        if isinstance(value_of(inner, "steps"), list):
            part = identifier(inner, "trajectory_id") or f"subagent-{number}"
            child = _Trajectory(inner, f"subagent {number}, ", part).finish()
            child.session = child.session or text_of(document, "session_id")
            yield with_replaced(child, source)


FORMAT = Format("atif", "ATIF trajectories (JSON)", _recognise, _read)
