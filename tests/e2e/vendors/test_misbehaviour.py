"""What becomes of a run whose models break off, refuse, or talk nonsense: never a low score.

One example of each kind; tests/faults/ has all of them, by role and interface.
"""

import math
from pathlib import Path

import pytest
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.scorer import Score

from compression_eval.grading.failures import run_failures
from tests.e2e import small
from tests.e2e.vendors.conftest import Setup, answer, compress, grade
from tests.e2e.vendors.wire import Failed, Said, Speech

SAMPLES = small.PROBES


def graded(log: EvalLog, status: str = "success") -> list[Score]:
    """Return what the rubric made of each sample."""
    return [(sample.scores or {})["six_dimensions"] for sample in small.samples(log, status)]


def unscored(log: EvalLog) -> list[str]:
    """Return the reasons why samples have no score; fails if one has, or the run went well."""
    scores = graded(log, "error")
    assert all(isinstance(s.value, float) and math.isnan(s.value) for s in scores)
    return [score.reason or "" for score in scores]


def too_long(setup: Setup) -> Failed:
    if setup.is_anthropic:
        message = "prompt is too long: 210000 tokens > 200000 maximum"
        return Failed(400, "invalid_request_error", message)
    message = (
        "This model's maximum context length is 128000 tokens. Your messages resulted in more."
    )
    return Failed(400, "invalid_request_error", message, "context_length_exceeded")


def test_a_state_too_long_to_answer_from_is_no_low_score(
    setup: Setup, tiny: Path, log_dir: Path
) -> None:
    setup.vendor.speeches[setup.answers] = lambda _: too_long(setup)
    log = setup.run(log_dir, tiny, compressor="full", compressor_args={})
    assert all("answer_failed" in reason and "context window" in reason for reason in unscored(log))
    assert setup.vendor.of(setup.grades) == []
    facts = [small.values(sample, "fact_retention") for sample in small.samples(log, "error")]
    assert all(math.isnan(values["fact_recall"]) for values in facts)
    assert all(values["fact_survival"] == 1 for values in facts)


def test_a_hiccup_of_the_vendor_is_waited_out(setup: Setup, tiny: Path, log_dir: Path) -> None:
    overloaded = Failed(529 if setup.is_anthropic else 500, "overloaded_error", "try again")

    def at_second(speech: Speech) -> Speech:
        # How often Inspect tries the responses interface first is a matter of timing.
        return lambda asked: overloaded if asked.number == 0 and not asked.trial else speech(asked)

    vendor = setup.vendor
    for model, speech in (
        (setup.answers, answer),
        (setup.grades, grade),
        (setup.compresses, compress),
    ):
        vendor.speeches[model] = at_second(speech)
    log = setup.run(log_dir, tiny)
    assert [score.as_dict()["overall"] for score in graded(log)] == [4] * SAMPLES
    assert setup.counts() == (2, SAMPLES + 1, SAMPLES + 1)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(""), "answer_failed: the answer is empty"),
        (Said(refused=True), "answer_failed: the model refused to answer"),
        (Said(call=("bash", {"command": "cat login.log"})), "asked_to_fetch: bash"),
    ],
    ids=["empty", "refused", "tool call"],
)
def test_an_answer_without_a_word_is_no_low_score(
    said: Said, reason: str, setup: Setup, tiny: Path, log_dir: Path
) -> None:
    setup.vendor.speeches[setup.answers] = lambda _: said
    log = setup.run(log_dir, tiny)
    assert all(text.startswith(reason) for text in unscored(log))
    assert setup.counts()[1:] == (SAMPLES, 0), "nothing is carried out, and nothing graded"
    counted = run_failures(read_eval_log_sample_summaries(log.location))
    assert counted is not None
    assert (counted.answers.count, counted.gradings.count) == (SAMPLES, 0)
