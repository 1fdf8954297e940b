"""ATIF trajectories (versions 1.0 to 1.8): steps in one JSON document.

An agent that compacts its context continues in a continuation file, which begins with copies of
what it continued with. Such a file is followed only if it is next to the first one.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compression_eval.conversations.drafts import (
    NO_TOOLS,
    Compaction,
    Conversation,
    Draft,
    Line,
)
from compression_eval.conversations.fields import Json, entries, label, origin
from compression_eval.conversations.readers.base import (
    TEXT_ACTIONS,
    Format,
    Reader,
    sign,
    with_originals,
    without_thinking,
)
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.sources import SourceFile, source_file
from compression_eval.errors import DataError

_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
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
        self.take_tools(agent.listed("tool_definitions"))
        if not self.tools:
            self.caveat(NO_TOOLS)
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
        """Say of the last compaction what the agent continued with, as its copies tell."""
        compaction = last or self.compact(after=before[-1] if before else None)
        copied = [draft for draft in copied if draft.role != "system"]
        compaction.state = with_originals(copied, before)
        made = [draft.text for draft in compaction.state if draft not in before and draft.text]
        compaction.kind = "summary" if made else "clear"
        compaction.summary = "\n\n".join(made) or None


def _drafts(step: Json, line: Line, *, opening: bool) -> list[Draft]:
    """Return the messages of a step: what was said, then what was observed."""
    source = step.text("source")
    if source not in ("system", "user", "agent"):
        line.is_unknown("expected a step of the source system, user or agent")
        return []
    said = Draft("user", content_of(step.at("message"), line))
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


def _observed(step: Json, said: Draft, line: Line) -> Iterator[Draft]:
    """Yield results of calls, and, as the agent saw them, user messages for other observations."""
    values = step.listed("observation", "results")
    named = [result.name("source_call_id") for result in entries(values)]
    open_calls = [call.id for call in said.calls if call.id not in named]
    by_order = iter(open_calls if len(open_calls) == named.count("") else ())
    for result in line.objects(values, "observation"):
        if result.listed("subagent_trajectory_ref"):
            line.leave_out("sub-agent", "its trajectory is a conversation of its own")
        content = content_of(result.at("content"), line)
        if call_id := result.name("source_call_id") or next(by_order, ""):
            yield Draft("tool", content, call_id=call_id)
        elif content:
            yield Draft("user", content)


def _is_trajectory(value: Json) -> bool:
    own = value.text("schema_version").startswith("ATIF-v")
    return own and isinstance(value.at("steps"), list)


def _recognise(source: SourceFile) -> str | None:
    seen = "a JSON object with a schema_version of ATIF and steps"
    return sign([source.document], _is_trajectory, seen)


def _continue(source: SourceFile, trajectory: _Trajectory) -> None:
    """Read the files that a trajectory continues in, one after the other."""
    folder, seen, document = source.path.resolve().parent, [source.path.resolve()], Json()
    following: Any = source.document
    while reference := Json.of(following).at("continued_trajectory_ref"):
        path = _resolved(folder, reference)
        if path is None or path.parent != folder:
            trajectory.caveat("a continuation outside the folder was not followed")
            return
        try:
            following = source_file(path).document if path not in seen else None
        except DataError:
            following = None
        document = Json.of(following)
        same = document.text("session_id") in ("", trajectory.session)
        if not _is_trajectory(document) or not same:
            trajectory.caveat("the continuation is not next to the file")
            return
        trajectory.add(document, f"continuation {len(seen)}, ", continues=True)
        seen.append(path)


def _resolved(folder: Path, reference: Any) -> Path | None:
    """Return where a reference leads, whatever links are on the way."""
    try:
        return (folder / reference).resolve() if isinstance(reference, str) else None
    except (OSError, RuntimeError, ValueError):  # too long, links in a circle, a zero byte
        return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = Json.of(source.document)
    if not _is_trajectory(document):
        return
    trajectory = _Trajectory(document, "", "")
    _continue(source, trajectory)
    yield trajectory.finish()
    for number, inner in enumerate(document.entries("subagent_trajectories"), 1):
        if isinstance(inner.at("steps"), list):
            part = inner.name("trajectory_id") or f"subagent-{number}"
            child = _Trajectory(inner, f"subagent {number}, ", part)
            child.session = child.session or document.text("session_id")
            yield child.finish()


FORMAT = Format(
    "atif", _recognise, _read, "an ATIF trajectory: an object with schema_version and steps"
)
