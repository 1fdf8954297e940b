"""What agents fetched again after compactions, as a scanner for Inspect Scout.

A transcript becomes a conversation as a log does on import, and is measured as a session is.
"""

from collections.abc import Mapping

from inspect_ai.log import EvalSample
from inspect_scout import Reference, Result, Scanner, Transcript, scanner

from compression_eval.postmortem.sessions import SessionRow, Told, sample_rows


@scanner(messages="all", events=["model", "tool", "compaction", "span_begin", "span_end"])
def fetched_again() -> Scanner[Transcript]:
    """Say what an agent fetched again after each of its compactions, next to its usual.

    There is one result for each compaction of the agent and of its sub-agents, none for a
    transcript without any. The value is the tokens of results in the ten calls after it that the
    agent had already been shown or had written; the label is the verdict of a post-mortem. The
    calls that fetched again are referred to. No model is called.
    """

    async def scan(transcript: Transcript) -> list[Result]:
        rows = sample_rows(_sample(transcript), transcript.model or "")
        places = _places(transcript)
        return [_result(row, told, places) for row in rows for told in row.compactions]

    return scan


def _sample(transcript: Transcript) -> EvalSample:
    return EvalSample(
        id=transcript.task_id or transcript.transcript_id,
        epoch=transcript.task_repeat or 1,
        uuid=transcript.transcript_id,
        input="",
        target="",
        messages=transcript.messages,
        events=transcript.events,
    )


def _places(transcript: Transcript) -> dict[str, Reference]:
    """Return where each call is: in a message, or for sub-agents in an event."""
    found: dict[str, Reference] = {}
    for message in transcript.messages:
        if message.role == "assistant" and message.id:
            for call in message.tool_calls or ():
                found.setdefault(call.id, Reference(type="message", id=message.id))
    for event in transcript.events:
        if event.event == "tool" and event.uuid:
            found.setdefault(event.id, Reference(type="event", id=event.uuid))
    return found


def _result(row: SessionRow, told: Told, places: Mapping[str, Reference]) -> Result:
    found, window = told.compaction, told.compaction.window
    usual = "unknown" if found.usual is None else f"{found.usual:,.0f}"
    again = "too few calls follow" if window is None else f"{window.held:,.0f} tokens"
    fetching = zip(window.by_call, window.calls, strict=True) if window else ()
    references = [
        places[call].model_copy(update={"cite": f"[call {number}]"})
        for number, (tokens, call) in enumerate(fetching, 1)
        if tokens and call in places
    ]
    by = f"; by {', '.join(each.cite or '' for each in references)} after it" if references else ""
    return Result(
        value=window.held if window else None,
        label=told.verdict,
        explanation=f"after message {found.cut}: {again}, usual {usual}{by}",
        references=references,
        metadata={
            "conversation": row.name,
            "message": found.cut,
            "kind": found.kind,
            "usual": found.usual,
            "shown_again": window.shown_again if window else None,
            "files": [each.path for each in window.rereads] if window else [],
            "controls": len(found.controls),
        },
    )
