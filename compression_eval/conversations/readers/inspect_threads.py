"""Which model calls of an Inspect sample belong to which conversation.

A sample's events hold the calls of the agent, of sub-agents, of scorers and of what summarises.
A call belongs to a conversation if its answer is a message of it, or was part of what a later
call of it was given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compression_eval.conversations.readers.inspect_messages import give_ids, key_of

if TYPE_CHECKING:
    from inspect_ai.event import CompactionEvent, Event, ModelEvent
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessage


_Break = tuple[int, str | None]
"""Place of a compaction among the events, and its span."""


@dataclass(eq=False)
class Call:
    """A model call that was answered, and where it stands among the events."""

    index: int
    event: "ModelEvent"
    agent: str | None
    """The innermost span of an agent that it was made in."""

    @property
    def answer(self) -> "ChatMessage":
        """The message that came of it."""
        return self.event.output.message


@dataclass(eq=False)
class Thread:
    """The model calls of one conversation, and how it ended."""

    calls: list[Call] = field(default_factory=list)
    messages: list["ChatMessage"] = field(default_factory=list)
    """Its last state, as logged; empty if the log has none."""
    compactions: list[tuple[int, "CompactionEvent", Call | None]] = field(default_factory=list)
    """Their places among the events, and the first call after each."""
    summarised: dict[Call, list["ChatMessage"]] = field(default_factory=dict)
    """What was to be summarised before a call, but for the prompt that asked for it."""


def threads_of(sample: "EvalSample") -> list[Thread]:
    """Return the conversations of a sample, the main one first; messages without an id get one."""
    give_ids(sample.messages)
    calls = _calls(sample.events)
    breaks = [
        (index, event.span_id)
        for index, event in enumerate(sample.events)
        if event.event == "compaction"
    ]
    main = Thread(messages=list(sample.messages))
    rest = list(calls)
    if main.messages:
        main.calls = _chain(rest, main.messages, breaks)
    elif rest:
        main.calls = _chain(rest, _ending(rest[-1]), breaks)
    taken = set(main.calls)
    threads = [main]
    main_agents = {call.agent for call in main.calls}
    by_agent: dict[str, list[Call]] = {}
    for call in calls:
        if call not in taken and call.agent is not None and call.agent not in main_agents:
            by_agent.setdefault(call.agent, []).append(call)
    for group in by_agent.values():
        threads.append(Thread(_chain(group, _ending(group[-1]), breaks)))
    _add_compactions(sample.events, threads)
    for thread in threads:
        _add_summarised(thread, calls)
    return threads


def _calls(events: Sequence["Event"]) -> list[Call]:
    agents: dict[str, str | None] = {}
    calls: list[Call] = []
    for index, event in enumerate(events):
        if event.event == "span_begin":
            outer = agents.get(event.parent_id or "")
            agents[event.id] = event.id if event.type == "agent" else outer
        elif event.event == "model" and event.output.choices:
            give_ids([*event.input, event.output.message])
            calls.append(Call(index, event, agents.get(event.span_id or "")))
    return calls


def _ending(call: Call) -> list["ChatMessage"]:
    return [*call.event.input, call.answer]


def _chain(
    calls: Sequence[Call], messages: Iterable["ChatMessage"], breaks: Sequence[_Break]
) -> list[Call]:
    """Return the calls that led to some messages, in order.

    A compaction breaks the chain: what was said before it may be in nothing that comes after.
    There the last call before it goes on that was made at the same place with the same tools;
    that is not the call which summarised.
    """
    known = {key_of(message) for message in messages}
    chain: list[Call] = []
    for call in reversed(calls):
        goes_on = bool(chain) and _goes_on(call, chain[-1], breaks)
        if goes_on or key_of(call.answer) in known:
            known.update(key_of(message) for message in call.event.input)
            known.add(key_of(call.answer))
            chain.append(call)
    return chain[::-1]


def _goes_on(call: Call, later: Call, breaks: Sequence[_Break]) -> bool:
    """Whether only a compaction lies between a call and a later one."""
    place = later.event.span_id
    if call.event.span_id != place or _tools(call) != _tools(later):
        return False
    return any(call.index < index < later.index and span == place for index, span in breaks)


def _tools(call: Call) -> set[str]:
    return {info.name for info in call.event.tools}


def _add_compactions(events: Sequence["Event"], threads: Sequence[Thread]) -> None:
    """Give every compaction to the conversation whose call comes next where it happened."""
    owners = sorted(
        ((call, thread) for thread in threads for call in thread.calls),
        key=lambda pair: pair[0].index,
    )
    for index, event in enumerate(events):
        if event.event != "compaction":
            continue
        later = [pair for pair in owners if pair[0].index > index]
        near = [pair for pair in later if pair[0].event.span_id == event.span_id]
        before = [
            pair
            for pair in owners
            if pair[0].index < index and pair[0].event.span_id == event.span_id
        ]
        if near:
            near[0][1].compactions.append((index, event, near[0][0]))
        elif before or not later:
            (before[-1][1] if before else threads[0]).compactions.append((index, event, None))
        else:
            later[0][1].compactions.append((index, event, later[0][0]))


def _add_summarised(thread: Thread, calls: Sequence[Call]) -> None:
    """Find what the last call before a compaction was followed by, where a model summarised it."""
    own = set(thread.calls)
    for index, _, following in thread.compactions:
        before = [call for call in thread.calls if call.index < index]
        if following is None or not before:
            continue
        answer = key_of(before[-1].answer)
        for call in calls:
            if before[-1].index < call.index < index and call not in own:
                given = call.event.input[:-1]
                if any(key_of(message) == answer for message in given):
                    thread.summarised[following] = given
