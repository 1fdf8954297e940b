"""What qualifying some probes will cost, before anything is spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser

from compression_eval.authoring.qualifying import CONDITIONS, Condition
from compression_eval.authoring.qualifying_runs import QualifySettings
from compression_eval.compressors.arguments import WindowArguments
from compression_eval.compressors.budget import plan_window
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.conversation import conversation
from compression_eval.fixtures.loading import FixtureWithBank
from compression_eval.grading.request import grading_request
from compression_eval.grading.rubric import load_rubric
from compression_eval.probing.prompts import question_preamble
from compression_eval.probing.record import StateRecord


@dataclass(frozen=True)
class Cost:
    """Calls of one condition and the tokens they send; answers are not known beforehand."""

    condition: Condition
    calls: int
    tokens: int
    grader_calls: int = 0
    grader_tokens: int = 0
    """Without the answers that are graded."""


async def costs(
    pairs: Sequence[FixtureWithBank], samples: Sequence[Sample], settings: QualifySettings
) -> list[Cost]:
    """Return what each condition costs, all epochs counted.

    Args:
        pairs: The fixtures with their banks.
        samples: Those of the task: one per probe and cut.
        settings: Epochs, tail and grader.
    """
    states = await _state_tokens(pairs, samples, settings.tail_tokens)
    counter = token_counter()
    by_name = {pair.fixture.name: pair for pair in pairs}
    preamble = question_preamble() + "\n\n"
    result = []
    for condition in CONDITIONS:
        sent = judged = 0
        for sample in samples:
            name, cut = _place(sample)
            question = ChatMessageUser(content=f"{preamble}\n{sample.input}")
            sent += states[name, cut][condition] + counter.message(question)
            judged += _grading_tokens(by_name[name], sample) if settings.grader else 0
        calls = len(samples) * settings.epochs
        graded = calls if settings.grader else 0
        result.append(
            Cost(condition, calls, sent * settings.epochs, graded, judged * settings.epochs)
        )
    return result


def _place(sample: Sample) -> tuple[str, int]:
    metadata = sample.metadata or {}
    return str(metadata["fixture"]), int(metadata["cut"])


async def _state_tokens(
    pairs: Sequence[FixtureWithBank], samples: Sequence[Sample], tail_tokens: int
) -> Mapping[tuple[str, int], Mapping[Condition, int]]:
    counter = token_counter()
    places = {_place(sample) for sample in samples}
    result: dict[tuple[str, int], dict[Condition, int]] = {}
    for pair in pairs:
        messages = await conversation(pair.fixture)
        for name, cut in places:
            if name != pair.fixture.name:
                continue
            mark = ChatMessageUser(content=prompt("carrier_empty"))
            arguments = WindowArguments(tail_tokens=tail_tokens)
            window = plan_window(messages[:cut], arguments, mark, counter)
            system = [message for message in messages[:cut] if message.role == "system"]
            result[name, cut] = {
                "full": counter.messages(messages[:cut]),
                "none": counter.messages(system),
                "tail": counter.messages([*window.head, mark, *window.tail]),
            }
    return result


def _grading_tokens(pair: FixtureWithBank, sample: Sample) -> int:
    """Return the tokens of a request to grade an empty answer."""
    identifier = str((sample.metadata or {})["probe_id"])
    probe = next(probe for probe in pair.bank.probes if probe.id == identifier)
    rubric = load_rubric(pair.bank.language or pair.fixture.language)
    request = grading_request(
        rubric=rubric,
        criteria=rubric.criteria_for(probe, "by_type"),
        probe=probe,
        answer="",
        state=StateRecord(state_id="", status="ok"),
        context=[],
        grader_context="none",
    )
    counter = token_counter()
    return sum(counter.message(message) for message in request.messages)
