"""What a model thinks counts neither as its answer nor as a summary, whichever server runs it."""

from pathlib import Path

import pytest
from inspect_ai import score
from inspect_ai.log import EvalLog

from compression_eval.grading.scorers import fact_retention
from compression_eval.record import ProbeRecord
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, COMPRESSES, Scripts, output, proper_compression

FACTS = "E4401? In auth/session.py? Then docs/retry.md."

NOTHING = "answer_failed: the answer is empty"
CUT = "answer_failed: cut off before its first word (max_tokens)"

REPLIES = {
    f"<think>{FACTS} It may": ("max_tokens", CUT),
    "\u2800\u3164\n": ("max_tokens", CUT),
    f"<think>{FACTS} It may be": ("stop", NOTHING),
    f"Hm, {FACTS}\n</think>": ("stop", NOTHING),
    f"<think>{FACTS}</think>\n\u2800": ("stop", NOTHING),
    f"Hm, {FACTS}\n</think>\n\nIt was 8080.": ("stop", ""),
    f"<think>{FACTS}</think>It was 8080.": ("stop", ""),
    f"<think>{FACTS}</think>It was": ("max_tokens", ""),
    "8080": ("stop", ""),
}
"""Replies that say none of the facts: how each ends, and why it is no answer."""


def assert_only_what_is_said_counts(log: EvalLog) -> None:
    samples = log.samples or []
    assert {sample.output.completion for sample in samples} == REPLIES.keys()
    for sample in samples:
        _, reason = REPLIES[sample.output.completion]
        scores = sample.scores or {}
        assert {score.reason or "" for name, score in scores.items() if name in ANSWERED} == {
            reason
        }
        rows = (scores["fact_retention"].metadata or {})["facts"]
        assert {row["in_answer"] for row in rows} == {None if reason else False}


ANSWERED = ("fact_retention", "six_dimensions")


def test_thinking_is_no_answer(scripts: Scripts, tiny: Path, log_dir: Path) -> None:
    replies = [output(text, ending) for text, (ending, _) in REPLIES.items()]
    scripts[ANSWERS].reply = lambda call: replies[call.number]
    log = small.run(log_dir, tiny, options={"fail_on_error": False})
    assert_only_what_is_said_counts(log)
    for sample in log.samples or []:  # as logs from before contain it
        record = sample.store[f"{ProbeRecord.__name__}:sample"]
        record["answer"]["text"] = sample.output.completion
        sample.store[f"{ProbeRecord.__name__}:record_version"] = 2
    scorer = fact_retention(state_facts="match")
    assert_only_what_is_said_counts(score(log, scorer, action="overwrite", display="log"))


@pytest.mark.parametrize("compressor", ["anchored", "summary"])
@pytest.mark.parametrize("opens", ["<think>", ""], ids=["both tags", "closing tag"])
def test_thinking_is_no_state(
    compressor: str, opens: str, scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[COMPRESSES].reply = lambda call: f"{opens}MULL\n</think>\n\n{proper_compression(call)}"
    budgets = {} if compressor == "summary" else small.BUDGETS
    log = small.run(log_dir, tiny, compressor=compressor, compressor_args=budgets, epochs=1)
    for sample in small.samples(log):
        assert small.state(sample).status == "ok"
        state = "\n".join(
            message.text for message in sample.messages[: small.state(sample).message_count]
        )
        assert "written by call 0" in state
        assert "MULL" not in state
        assert "think>" not in state


@pytest.mark.parametrize("compressor", ["regenerative", "summary"])
def test_a_summary_of_nothing_but_thinking_is_a_failure(
    compressor: str, scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[COMPRESSES].reply = lambda _: f"<think>{FACTS}"
    budgets = {} if compressor == "summary" else small.BUDGETS
    log = small.run(log_dir, tiny, compressor=compressor, compressor_args=budgets, epochs=1)
    assert {small.state(sample).status for sample in small.samples(log, "error")} == {"empty"}
