"""A state as people read it in the log viewer."""

import re

from compression_eval.compressors.state import State
from compression_eval.probing.rendering import render_messages


def state_overview(state: State) -> str:
    """Return a Markdown account of a compression: how it went, and the state it left."""
    lines = [
        "| cycle | strategy | tokens before | tokens after | messages before | messages after "
        "| model calls | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number, cycle in enumerate(state.cycles, 1):
        lines.append(
            f"| {number} (cut {cycle.cut}) | {cycle.applied} | {cycle.tokens_before:,} "
            f"| {cycle.tokens_after:,} | {cycle.messages_before} | {cycle.messages_after} "
            f"| {cycle.model_calls} | {cycle.seconds:.2f} |"
        )
    head = f"State `{state.state_id}`"
    if state.status != "ok":
        return "\n".join([f"{head}: **{state.status}**", "", fenced(state.failure), "", *lines])
    removed = f"{state.tokens_removed:.1%} of {state.original_tokens:,} tokens removed"
    counted = f"{state.state_tokens:,} tokens left, counted by {state.token_counter}"
    body = fenced(render_messages(state.messages))
    suspect = ["", "**Suspect**", "", fenced("\n".join(state.suspect))] if state.suspect else []
    return "\n".join(
        [f"{head}: {removed}; {counted}.", *suspect, "", *lines, "", "**The state**", "", body]
    )


def fenced(text: str) -> str:
    """Return a text as a Markdown code block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
