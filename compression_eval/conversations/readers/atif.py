"""ATIF trajectories (versions 1.0 to 1.8): steps in one JSON document.

An agent that compacts its context goes on in a continuation file, which begins with copies of
what it went on with. Such a file is followed only if it lies beside the first one.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compression_eval.conversations.drafts import (
    NO_TOOLS,
    Compaction,
    Content,
    Conversation,
    Draft,
    Image,
    Line,
)
from compression_eval.conversations.fields import Json, entries, label, origin, tool_definitions
from compression_eval.conversations.readers.base import (
    TEXT_ACTIONS,
    Format,
    KnownDrafts,
    Reader,
    document_of,
    sign,
    with_replaced,
    without_thinking,
)
from compression_eval.conversations.sources import SourceFile, source_file
from compression_eval.errors import DataError

_EXPECTED = "an ATIF trajectory: an object with schema_version ATIF-v1.x and steps"
_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
_MAX_FILES = 1000
_NOTES = "steps of the system after the first turn stand as user messages"
_NO_CALL_IDS = "observations that answer no call stand as user messages"


class _Trajectory(Reader):
    """A trajectory that is being read, with its continuations."""

    format = "atif"
    lacks = ()

    def __init__(self, document: Json, start: str, part: str) -> None:
        agent = document.entry("agent")
        product = origin("ATIF:", agent.text("name"), agent.text("version"))
        super().__init__(product, document.text("session_id"), part)
        self.tools, without = tool_definitions(agent.listed("tool_definitions"))
        if not self.tools:
            self.caveat(NO_TOOLS)
        if without:
            self.caveat(f"{without} tools are named without a schema")
        if not _KNOWN.fullmatch(document.text("schema_version")):
            self.caveat("the version of the format is not known")
        self._agents_model = origin(agent.text("model_name"))
        self.add(document, start)

    def add(self, document: Json, start: str, *, continues: bool = False) -> None:
        """Take the steps of a file; copies in one that continues another tell its compaction."""
        copied = list[Draft]()
        before = list(self.drafts)
        unsettled = [item for item in self.compactions if item.state is None]
        for number, value in enumerate(document.listed("steps"), 1):
            step = Json.of(value)
            copy = step.at("is_copied_context") is True
            compacts = step.text("extra", "context_management", "type") == "compaction"
            kind = ":compaction" if compacts else ":copied" if copy else ""
            place = f"{start}step {number}"
            line = self.enter(place, label(step.text("source")) + kind)
            if not isinstance(value, dict):
                line.is_unknown("expected an object")
            elif compacts:
                if step.entry("observation"):
                    why = "it names the files of the compaction's own sub-agents"
                    line.leave_out("observation", why)
                self.compact()
            elif copy and continues:
                copied.extend(_drafts(step, Line(), opening=False))
            elif copy:
                line.skip("a copy out of the file that this one continues")
            else:
                self._step(step, line)
        if copied:
            self._leave(copied, before, unsettled[-1] if unsettled else None)

    def finish(self) -> Conversation:
        super().finish()
        self.model = self._agents_model or self.model
        self.name_missing(tools=False)
        if _NO_CALL_IDS in self.caveats and not self.called:
            self.caveat(TEXT_ACTIONS)
        return self

    def _step(self, step: Json, line: Line) -> None:
        opening = all(draft.role == "system" for draft in self.drafts)
        drafts = _drafts(step, line, opening=opening)
        self.say(line, *drafts)
        if drafts and drafts[0].role == "user" and step.text("source") == "system":
            self.caveat(_NOTES)
        if any(draft.role == "user" for draft in drafts[1:]):
            self.caveat(_NO_CALL_IDS)
        self.models[origin(step.text("model_name"))] += 1

    def _leave(self, copied: list[Draft], before: list[Draft], last: Compaction | None) -> None:
        """Say of the last compaction what the agent went on with, as its copies tell."""
        compaction = last or self.compact(after=before[-1] if before else None)
        known = KnownDrafts(before)
        state = [(known.match(draft), draft) for draft in copied if draft.role != "system"]
        made = [draft.text for same, draft in state if same is None and draft.text]
        compaction.state = [same or draft for same, draft in state]
        compaction.kind = "summary" if made else "clear"
        compaction.summary = "\n\n".join(made) or None


def _drafts(step: Json, line: Line, *, opening: bool) -> list[Draft]:
    """Return the messages of a step: what was said, then what was observed."""
    source = step.text("source")
    if source not in ("system", "user", "agent"):
        line.is_unknown("expected a step of the source system, user or agent")
        return []
    said = Draft("user", _content(step.at("message"), line))
    if source == "system" and opening:  # later it is a note of the environment
        said.role = "system"
    elif source == "agent":
        said.role, said.content = "assistant", without_thinking(said.content, line)
        for call in line.objects(step.listed("tool_calls"), "tool call"):
            name = call.text("function_name")
            said.call(call.name("tool_call_id"), name, call.at("arguments"))
        if step.at("reasoning_content"):
            line.leave_out_thinking()
    return [said, *_observed(step, said, line)]


def _content(value: Any, line: Line) -> Content:
    if isinstance(value, str):
        return [value] if value else []
    if value is not None and not isinstance(value, list):
        line.leave_out("content", "expected a text or a list of parts")
    found: Content = []
    for part in entries(value):
        match part.text("type"):
            case "text":
                found.append(part.text("text"))
            case "image":  # its path is not followed: it may lead anywhere
                found.append(Image(part.text("source", "media_type")))
            case kind:
                line.leave_out(f"part {label(kind)}", "unknown kind of content")
    return found


def _observed(step: Json, said: Draft, line: Line) -> Iterator[Draft]:
    """Yield results of calls, and, as the agent saw them, user messages for other observations."""
    values = step.listed("observation", "results")
    named = [result.name("source_call_id") for result in entries(values)]
    open_calls = [call.id for call in said.calls if call.id not in named]
    by_order = iter(open_calls if len(open_calls) == named.count("") else ())
    for result in line.objects(values, "observation"):
        if result.listed("subagent_trajectory_ref"):
            line.leave_out("sub-agent", "its trajectory is a conversation of its own")
        content = _content(result.at("content"), line)
        if call_id := result.name("source_call_id") or next(by_order, ""):
            yield Draft("tool", content, call_id=call_id)
        elif content:
            yield Draft("user", content)


def _is_trajectory(document: Any) -> bool:
    value = Json.of(document)
    own = value.text("schema_version").startswith("ATIF-v")
    return own and isinstance(value.at("steps"), list)


def _recognise(source: SourceFile) -> str | None:
    seen = "a JSON object with a schema_version of ATIF and steps"
    return sign([source.document], _is_trajectory, seen)


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
    document, seen = Json(source.document), {source.path.resolve()}
    for number in range(1, _MAX_FILES):
        reference, fault = document.at("continued_trajectory_ref"), ""
        if reference is None:
            return
        path = _beside(source.path, reference)
        if path is None:
            fault = "a continuation outside the folder was not followed"
        elif not path.is_file() or path.resolve() in seen:
            fault = "the continuation is not beside the file"
        else:
            seen.add(path.resolve())
            try:
                document = Json(document_of(source_file(path), _EXPECTED, _is_trajectory))
            except DataError:
                document = Json()
            if not document or document.text("session_id") not in ("", trajectory.session):
                fault = "the file beside it is no continuation of this session"
        if fault:
            trajectory.caveat(fault)
            return
        trajectory.add(document, f"continuation {number}, ", continues=True)


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = Json(document_of(source, _EXPECTED, _is_trajectory))
    trajectory = _Trajectory(document, "", "")
    _continue(source, trajectory)
    yield with_replaced(trajectory.finish(), source)
    for number, inner in enumerate(document.entries("subagent_trajectories"), 1):
        if isinstance(inner.at("steps"), list):
            part = inner.name("trajectory_id") or f"subagent-{number}"
            child = _Trajectory(inner, f"subagent {number}, ", part).finish()
            child.session = child.session or document.text("session_id")
            yield with_replaced(child, source)


FORMAT = Format("atif", _recognise, _read)
