"""The request to a grader about one answer.

Two rules shape it. It is blind: neither the compressor nor any model, file or id is named, so two
arms with the same state and the same answer ask the grader the same thing, byte for byte. And it
begins with what many requests share (rubric, then state), so that a provider's prompt cache helps.

Everything that came from a conversation or a model is JSON on a line of its own. A line break or
quotation mark inside is escaped there, so no text can end its line and speak to the grader.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentText,
)

from compression_eval.errors import DataError
from compression_eval.facts.life import wrong_values
from compression_eval.fixtures.banks import AnswerKey, Probe, RequestedFormat
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import (
    FORM_DIMENSION,
    CriteriaMode,
    Criterion,
    Rubric,
    structure,
)
from compression_eval.record import StateRecord, render_messages
from compression_eval.text.printable import one_line_json

GraderContext = Literal["state", "none"]


@dataclass(frozen=True)
class GradingSettings:
    """The arguments of every scorer that grades.

    Raises:
        DataError: One is not among its choices.
    """

    criteria: CriteriaMode = "by_type"
    """``by_type`` grades the criteria that fit the probe, ``all`` every one."""
    grader_context: GraderContext = "state"
    """``state`` shows the grader the compressed context, ``none`` does not."""
    language: Language | None = None
    """Of the rubric; by default that of the fixture."""

    def __post_init__(self) -> None:
        check_choice("criteria", self.criteria, get_args(CriteriaMode))
        check_choice("grader_context", self.grader_context, get_args(GraderContext))
        check_choice("language", self.language, (*get_args(Language), None))


def check_choice(name: str, value: str | None, allowed: Sequence[str | None]) -> None:
    """Refuse a value of a scorer's argument that is not among its choices."""
    if value not in allowed:
        raise DataError(f"{name}: {value!r} is not one of {', '.join(filter(None, allowed))}")


@dataclass(frozen=True)
class GradingRequest:
    """One answer to grade, and how."""

    rubric: Rubric
    criteria: list[Criterion]
    messages: tuple[ChatMessage, ...]
    answer: str
    """The text to grade, as the messages have it."""
    prefix_key: str
    """Equal for requests with a shared prefix."""
    facts: tuple[str, ...]
    """Ids of the expected facts, ``f1`` and up in the probe's order."""
    wrong: tuple[str, ...]
    """Ids of the superseded and forbidden values, ``w1`` and up in the order of `wrong_values`."""
    applicable: frozenset[str]
    """Ids of the criteria that need a score; those on form may lack one."""

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
    mode: CriteriaMode = "by_type",
) -> GradingRequest:
    """Build the request for one answer.

    Args:
        rubric: The rubric in the language to grade in.
        criteria: Those of its criteria that the answer is graded on.
        probe: The question with its ground truth.
        answer: The text to grade.
        state: The record of the state.
        context: The messages of the state: what the answering model was shown.
        grader_context: ``state`` shows the grader the state too, if it can be read.
        mode: How the criteria were chosen; any may be without a score if it is ``all``.
    """
    system, shown = shared_beginning(rubric, context)
    truth = ground_truth(probe)
    question = {
        "probe_question": probe.question,
        "ground_truth": truth,
        "rubric_criteria": [criterion.id for criterion in criteria],
        "model_response": answer,
    }
    # How to grade a question of a rarer kind is said next to the JSON, in which nothing is
    # followed.
    notes = [rubric.grader.unanswerable] if probe.unanswerable else []
    if probe.rubric or not (probe.expected_facts or probe.unanswerable):
        notes.append(rubric.grader.free_text)
    content: list[Content] = [ContentText(text="\n".join([one_line_json(question), *notes]))]
    if grader_context == "state" and state.readable:
        content.insert(0, shown)
    return GradingRequest(
        rubric=rubric,
        criteria=criteria,
        messages=(system, ChatMessageUser(content=content)),
        answer=answer,
        prefix_key=f"grade:{rubric.language}:{state.state_id}",
        facts=tuple(fact["id"] for fact in truth["expected_facts"]),
        wrong=tuple(value["id"] for value in truth.get("wrong_values", ())),
        applicable=frozenset(
            item.id
            for item in structure().criteria
            if mode == "by_type" and not item.needs and item.dimension != FORM_DIMENSION
        ),
    )


def shared_beginning(
    rubric: Rubric, context: Sequence[ChatMessage]
) -> tuple[ChatMessageSystem, ContentText]:
    """Return the shared prefix of requests about one state: the rubric, and the state as data.

    The second part is the first one of the user message; a provider may cache all up to its end.

    Args:
        rubric: The rubric in the language to grade in.
        context: The messages of the state.
    """
    system = f"{rubric.grader.instructions}\n{rubric.as_text()}"
    shown = one_line_json({"compacted_context": render_messages(context)})
    return ChatMessageSystem(content=system), ContentText(text=shown, cache_breakpoint=True)


def ground_truth(probe: Probe) -> dict[str, Any]:
    """Return a probe's ground truth as the grader is shown it.

    Fields are listed explicitly, so that neither evidence nor unknown fields of a bank are shown.
    Those that few probes have are left out of the others.
    """
    rare = {
        "wrong_values": [
            {"id": f"w{number}", "value": value, "also_accepted": others}
            for number, (value, *others) in enumerate(wrong_values(probe), start=1)
        ],
        "question_rubric": probe.rubric,
        "unanswerable": probe.unanswerable,
    }
    return {
        "expected_facts": [
            {
                "id": f"f{number}",
                "fact": item.fact,
                "also_accepted": item.any_of,
                "superseded": item.superseded,
                **({"derived": True} if item.derived else {}),
            }
            for number, item in enumerate(probe.expected_facts, start=1)
        ],
        "must_not_appear": [
            {"fact": item.fact, "also_accepted": item.any_of} for item in probe.forbidden_facts
        ],
        "reference_answer": probe.reference_answer,
        "answer_key": probe.answer_key.model_dump(include=set(AnswerKey.model_fields)),
        "requested_format": probe.format
        and probe.format.model_dump(include=set(RequestedFormat.model_fields)),
        "standing_constraint": probe.constraint
        and probe.constraint.model_dump(include={"text", "violated_by"}),
        **{name: value for name, value in rare.items() if value},
    }
