"""ATIF trajectories (versions 1.0 to 1.8): steps in one JSON document.

An agent that compacts its context goes on in a continuation file, which begins with copies of
what it went on with. Such a file is followed only if it lies beside the first one.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.atif_steps import drafts_of, is_compaction
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    TEXT_ACTIONS,
    KnownDrafts,
    identifier,
    json_document,
    origin,
)
from compression_eval.conversations.sources import SourceFile, source_file
from compression_eval.fixtures.errors import DataError

_EXPECTED = "an ATIF trajectory: an object with schema_version ATIF-v1.x and steps"
_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
_MOST_FILES = 1000
_NOTES = "steps of the system after the first turn stand as user messages"
_NO_CALL_IDS = "observations that answer no call stand as user messages"


class _Trajectory:
    """A trajectory that is being read, with its continuations."""

    def __init__(self, document: dict[str, Any], start: str, part: str) -> None:
        agent = mapping_of(document, "agent")
        self._models: Counter[str] = Counter()
        self.conversation = Conversation(
            "atif",
            origin("ATIF:", text_of(agent, "name"), text_of(agent, "version")),
            text_of(document, "session_id"),
            Ledger(),
            part=part,
            model=origin(text_of(agent, "model_name")),
        )
        tools, without = tool_definitions(list_of(agent, "tool_definitions"))
        self.conversation.tools = tools
        if not tools:
            self.conversation.caveats.append(NO_TOOLS)
        if without:
            self.conversation.caveats.append(f"{without} tools are named without a schema")
        if not _KNOWN.fullmatch(text_of(document, "schema_version")):
            self.conversation.caveats.append("the version of the format is not known")
        self.add(document, start)

    def add(self, document: dict[str, Any], start: str, *, continues: bool = False) -> None:
        """Take the steps of a file.

        Args:
            document: The file.
            start: What stands before a step's number in its place.
            continues: Whether the file before has been read, so that copies tell its compaction.
        """
        copied: list[Draft] = []
        before = list(self.conversation.drafts)
        open_ones = [item for item in self.conversation.compactions if item.state is None]
        for number, step in enumerate(list_of(document, "steps"), 1):
            line = self.conversation.ledger.enter(f"{start}step {number}", _kind(step))
            if not isinstance(step, dict):
                line.is_unknown("expected an object")
            elif is_compaction(step):
                self._compaction(step, line)
            elif step.get("is_copied_context") is True:
                copied.extend(self._copied(step, line, continues=continues))
            else:
                self._step(step, line)
        if copied:
            self._state(copied, before, open_ones[-1] if open_ones else None)

    def finish(self) -> Conversation:
        """Return the conversation."""
        conversation = self.conversation
        if not conversation.model and self._models:
            conversation.model = self._models.most_common(1)[0][0]
        if not any(draft.role == "system" for draft in conversation.drafts):
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        if _NO_CALL_IDS in conversation.caveats and not any(
            draft.calls for draft in conversation.drafts
        ):
            conversation.caveats.append(TEXT_ACTIONS)
        conversation.caveats[:] = dict.fromkeys(conversation.caveats)
        return conversation

    def _step(self, step: dict[str, Any], line: Line) -> None:
        known = self.conversation.drafts
        opening = all(draft.role == "system" for draft in known)
        drafts = drafts_of(step, line, opening=opening)
        for draft in drafts:
            known.append(line.became(draft))
        if drafts and drafts[0].role == "user" and text_of(step, "source") == "system":
            self.conversation.caveats.append(_NOTES)
        if any(draft.role == "user" for draft in drafts[1:]):
            self.conversation.caveats.append(_NO_CALL_IDS)
        if model := origin(text_of(step, "model_name")):
            self._models[model] += 1

    def _compaction(self, step: dict[str, Any], line: Line) -> None:
        line.skip("a compaction, recorded beside the messages")
        if mapping_of(step, "observation"):
            line.leave_out("observation", "it names the files of the compaction's own sub-agents")
        drafts = self.conversation.drafts
        self.conversation.compactions.append(
            Compaction(after=drafts[-1] if drafts else None, kind="opaque")
        )

    def _copied(self, step: dict[str, Any], line: Line, *, continues: bool) -> list[Draft]:
        """Return the copies of messages; they are no new messages of the conversation."""
        if not continues:
            line.skip("a copy out of the file that this one continues")
            return []
        line.skip("a copy of what the agent went on with, recorded with the compaction")
        return drafts_of(step, Line(line.place, line.kind), opening=False)

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
            compaction = Compaction(before[-1] if before else None)
            self.conversation.compactions.append(compaction)
        known = KnownDrafts(before)
        state = [(known.match(draft), draft) for draft in copied if draft.role != "system"]
        made = [draft.text for same, draft in state if same is None and draft.text]
        compaction.state = [same or draft for same, draft in state]
        compaction.kind = "summary" if made else "clear"
        compaction.summary = "\n\n".join(made) or None


def _kind(step: Any) -> str:
    source = label(text_of(step, "source"))
    if isinstance(step, dict) and is_compaction(step):
        return f"{source}:compaction"
    copied = isinstance(step, dict) and step.get("is_copied_context") is True
    return f"{source}:copied" if copied else source


def _is_trajectory(document: Any) -> bool:
    version = text_of(document, "schema_version")
    return version.startswith("ATIF-v") and isinstance(document.get("steps"), list)


def _recognise(source: SourceFile) -> str | None:
    if _is_trajectory(source.document):
        return "a JSON object with a schema_version of ATIF and steps"
    return None


def _beside(path: Path, reference: str) -> Path | None:
    """Return the file that a reference names, if it lies in the same folder."""
    name = Path(reference).name
    if not name or name != reference or "\\" in reference or not reference.isprintable():
        return None
    found = path.parent / name
    try:
        inside = found.resolve().parent == path.parent.resolve()
        return found if inside and (found.is_file() or not found.is_symlink()) else None
    except (OSError, RuntimeError):  # a name that is too long, or links in a circle
        return None


def _continuations(source: SourceFile, trajectory: _Trajectory) -> None:
    """Read the files that a trajectory goes on in, one after the other."""
    conversation = trajectory.conversation
    document, seen = source.document, {source.path.resolve()}
    for number in range(1, _MOST_FILES):
        reference = document.get("continued_trajectory_ref")
        if reference is None:
            return
        path = _beside(source.path, reference) if isinstance(reference, str) else None
        if path is None:
            conversation.caveats.append("a continuation outside the folder was not followed")
            return
        if not path.is_file() or path.resolve() in seen:
            conversation.caveats.append("the continuation is not beside the file")
            return
        seen.add(path.resolve())
        try:
            document = json_document(source_file(path), _EXPECTED)
        except DataError:
            document = None
        session = text_of(document, "session_id")
        if not _is_trajectory(document) or session not in ("", conversation.session):
            conversation.caveats.append("the file beside it is no continuation of this session")
            return
        trajectory.add(document, f"continuation {number}, ", continues=True)


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = json_document(source, _EXPECTED)
    if not _is_trajectory(document):
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    trajectory = _Trajectory(document, "", "")
    _continuations(source, trajectory)
    yield _with_caveats(trajectory.finish(), source)
    for number, inner in enumerate(list_of(document, "subagent_trajectories"), 1):
        if isinstance(inner, dict) and isinstance(inner.get("steps"), list):
            part = identifier(inner, "trajectory_id") or f"subagent-{number}"
            child = _Trajectory(inner, f"subagent {number}, ", part)
            child.conversation.session = child.conversation.session or text_of(
                document, "session_id"
            )
            yield _with_caveats(child.finish(), source)


def _with_caveats(conversation: Conversation, source: SourceFile) -> Conversation:
    if source.document_replaced:
        conversation.caveats.append(REPLACED_BYTES)
    return conversation


FORMAT = Format(
    name="atif",
    title="ATIF trajectories (JSON)",
    recognise=_recognise,
    read=_read,
)
