"""What agents fetched again after compactions, as a scanner for Inspect Scout.

A transcript becomes a conversation as a log does on import, and is measured as a session is.
"""

from inspect_ai.log import EvalSample
from inspect_scout import Result, Scanner, Transcript, scanner

from compression_eval.postmortem.sessions import SessionRow, Told, sample_rows


@scanner(messages="all", events=["model", "tool", "compaction", "span_begin", "span_end"])
def fetched_again() -> Scanner[Transcript]:
    """Say what an agent fetched again after each of its compactions, beside its usual.

    There is one result for each compaction of the agent and of its sub-agents, none for a
    transcript without any. The value is the tokens of results in the ten calls after it that the
    agent had already been shown or had written; the label is the verdict of a post-mortem. No model
    is called.
    """

    async def scan(transcript: Transcript) -> list[Result]:
        rows = sample_rows(_sample(transcript), transcript.model or "")
        return [_result(row, told) for row in rows for told in row.compactions]

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


def _result(row: SessionRow, told: Told) -> Result:
    found, window = told.compaction, told.compaction.window
    usual = "unknown" if found.usual is None else f"{found.usual:,.0f}"
    again = "too few calls follow" if window is None else f"{window.held:,.0f} tokens"
    return Result(
        value=window.held if window else None,
        label=told.verdict,
        explanation=f"after message {found.cut}: {again}, usual {usual}",
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
