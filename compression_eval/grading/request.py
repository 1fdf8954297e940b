"""What the grader reads about one answer.

Two rules shape it. It is blind: neither the compressor nor any model, file or id is named, so two
arms with the same state and the same answer ask the grader the same thing, byte for byte. And it
begins with what many requests share (rubric, then state), so that a provider's prompt cache helps.

Everything that came from a conversation or a model is JSON on a line of its own. A line break or
quotation mark inside is escaped there, so no text can end its line and speak to the grader.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentText,
)

from compression_eval.compressors.material import one_line_json
from compression_eval.fixtures.banks import Probe
from compression_eval.grading.rubric import Criterion, Rubric
from compression_eval.probing.record import StateRecord
from compression_eval.probing.rendering import render_messages

GraderContext = Literal["state", "none"]


@dataclass(frozen=True)
class GradingRequest:
    """One answer to grade, and how."""

    rubric: Rubric
    criteria: tuple[Criterion, ...]
    messages: tuple[ChatMessage, ...]
    prefix_key: str
    """Equal for requests that begin alike."""

    @property
    def ids(self) -> list[str]:
        """The ids of the criteria to grade, in the rubric's order."""
        return [criterion.id for criterion in self.criteria]


def grading_request(
    *,
    rubric: Rubric,
    criteria: list[Criterion],
    probe: Probe,
    answer: str,
    state: StateRecord,
    context: Sequence[ChatMessage],
    grader_context: GraderContext = "state",
) -> GradingRequest:
    """Build the request for one answer.

    Args:
        rubric: The rubric in the language to grade in.
        criteria: Those of its criteria that the answer is graded on.
        probe: The question with its ground truth.
        answer: The text to grade.
        state: How the state came about.
        context: The messages of the state: what the answering model was shown.
        grader_context: ``state`` shows the grader the state too, if it can be read.
    """
    system = f"{rubric.text.grader.instructions}\n{rubric.as_text()}"
    content: list[Content] = []
    if grader_context == "state" and state.readable:
        shown = {"compacted_context": render_messages(context)}
        # All probes of a state share what comes before this mark.
        content.append(ContentText(text=one_line_json(shown), cache_breakpoint=True))
    question = {
        "probe_question": probe.question,
        "ground_truth": ground_truth(probe),
        "rubric_criteria": [criterion.id for criterion in criteria],
        "model_response": answer,
    }
    content.append(ContentText(text=one_line_json(question)))
    return GradingRequest(
        rubric=rubric,
        criteria=tuple(criteria),
        messages=(ChatMessageSystem(content=system), ChatMessageUser(content=content)),
        prefix_key=f"grade:{rubric.language}:{state.state_id}",
    )


def ground_truth(probe: Probe) -> dict[str, Any]:
    """Return what is known to be true about a probe, as the grader is told it."""
    return {
        "expected_facts": [
            {"fact": item.fact, "also_accepted": item.any_of, "superseded": item.superseded}
            for item in probe.expected_facts
        ],
        "must_not_appear": [
            {"fact": item.fact, "also_accepted": item.any_of} for item in probe.forbidden_facts
        ],
        "reference_answer": probe.reference_answer,
        "answer_key": {
            "files_created": probe.answer_key.files_created,
            "files_modified": probe.answer_key.files_modified,
            "files_read": probe.answer_key.files_read,
            "open_tasks": probe.answer_key.open_tasks,
            "reasons": probe.answer_key.reasons,
        },
        "requested_format": None
        if probe.format is None
        else {
            "kind": probe.format.kind,
            "description": probe.format.description,
            "keys": probe.format.keys,
            "items": probe.format.items,
        },
        "standing_constraint": None
        if probe.constraint is None
        else {"text": probe.constraint.text, "violated_by": probe.constraint.violated_by},
    }
