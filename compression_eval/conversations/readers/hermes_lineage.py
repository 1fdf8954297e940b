"""Which sessions of Hermes are one conversation.

A compaction can end a session and go on in a new one; a branch and a sub-agent also name the
session they come from, but are conversations of their own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compression_eval.conversations.fields import mapping_of, text_of

Kind = Literal["main", "branch", "delegate", "child"]


@dataclass(frozen=True)
class Session:
    """What is needed of a session to place it; not its messages."""

    number: int
    """Its position in the file, from 0."""
    id: str
    parent: str
    end_reason: str
    branch: bool
    delegate: bool
    started: float
    model: str


@dataclass(frozen=True)
class Thread:
    """The sessions of one conversation, in order."""

    sessions: tuple[Session, ...]
    kind: Kind


def session_of(number: int, value: Mapping[str, Any]) -> Session:
    """Return a session as stored or exported."""
    config = _config(value)
    started = value.get("started_at")
    is_number = isinstance(started, int | float) and not isinstance(started, bool)
    return Session(
        number=number,
        id=text_of(value, "id") or text_of(value, "session_id"),
        parent=text_of(value, "parent_session_id"),
        end_reason=text_of(value, "end_reason"),
        branch=config.get("_branched_from") is not None,
        delegate=config.get("_delegate_from") is not None,
        started=float(started or 0) if is_number else 0.0,
        model=text_of(value, "model"),
    )


def threads(sessions: Sequence[Session]) -> Iterator[Thread]:
    """Yield every session in exactly one thread, main threads and what came of them by age."""
    known = {session.id: session for session in sessions if session.id}
    follower = _followers(sessions, known)
    followers = set(follower.values())
    done: set[Session] = set()
    by_age = sorted(sessions, key=lambda session: (session.started, session.number))
    # Those left over after the first round name each other as parents, which no agent writes.
    for session in (*(one for one in by_age if one not in followers), *by_age):
        if session in done:
            continue
        line: list[Session] = []
        member: Session | None = session
        while member is not None and member not in done:
            done.add(member)
            line.append(member)
            member = follower.get(member)
        yield Thread(tuple(line), _kind(session, known))


def _followers(sessions: Sequence[Session], known: Mapping[str, Session]) -> dict[Session, Session]:
    """Return which session goes on with another after a compaction."""
    children: dict[Session, list[Session]] = {}
    for session in sessions:
        parent = known.get(session.parent)
        if parent is not None and _kind(session, known) == "child" and parent is not session:
            children.setdefault(parent, []).append(session)
    return {
        parent: min(
            found,
            key=lambda child: (child.end_reason != "compression", child.started, child.number),
        )
        for parent, found in children.items()
        if parent.end_reason == "compression"
    }


def _kind(session: Session, known: Mapping[str, Session]) -> Kind:
    if session.delegate:
        return "delegate"
    parent = known.get(session.parent)
    if session.branch or (parent is not None and parent.end_reason == "branched"):
        return "branch"
    return "child" if session.parent else "main"


def _config(value: Mapping[str, Any]) -> dict[str, Any]:
    config = value.get("model_config")
    if isinstance(config, str) and config:
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            return {}
    return mapping_of({"config": config}, "config")
