"""Forms of output, texts that nobody vouches for, and pooled logs."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from inspect_ai.log import EvalLog

from compression_eval.analysis import samples_frame
from compression_eval.analysis.comparison.text import FORMULA
from tests.analysis.comparison.arms import (
    BAD,
    GOOD,
    as_json,
    changed,
    compared,
    evaluated,
)
from tests.analysis.embedded import TAIL, embedded
from tests.e2e import small


def test_markdown_holds_the_same_figures(good: EvalLog, bad: EvalLog, tmp_path: Path) -> None:
    out = tmp_path / "compare.md"
    done = compared(good.location, "--to", bad.location, "--format", "markdown", "--out", out)
    assert done.exit_code == 1
    assert done.stdout.startswith("regression: knowledge is worse by 2.00 on this ")
    text = out.read_text("utf-8")
    assert "| overall | 4.00 | 2.00 | -2.00 |" in text
    assert "### Facts lost: 3" in text
    assert FORMULA.split(";")[0] in text
    assert FORMULA in compared(good.location, "--to", bad.location).stdout


def test_texts_of_a_conversation_have_no_power(folder: Path) -> None:
    evil = "\x1b[2J<script>x</script>|**E1**"
    bank = small.bank()
    bank["probes"][0]["expected_facts"] = [evil]
    fixture = small.conversation()
    fixture["messages"][3]["content"] += f"\n{evil}"
    data = folder / "evil"
    small.write(data, "tiny", fixture=fixture, probes=bank)
    base = evaluated(folder / "evil0", data=data, answer=f"{GOOD} {evil}", epochs=1)
    new = evaluated(folder / "evil1", data=data, answer=BAD, epochs=1)
    text = compared(base.location, "--to", new.location).stdout
    assert "script>x</script>" in text.split("Facts lost")[1]
    assert "\x1b" not in text
    page = compared(base.location, "--to", new.location, "--format", "markdown").stdout
    assert "script&#62;x" in page
    assert "\x1b" not in page
    assert "<script>" not in page
    assert "|**" not in page
    out = folder / "evil.json"
    compared(base.location, "--to", new.location, "--format", "json", "--out", out)
    assert json.loads(out.read_text("utf-8"))["facts"]


def test_logs_of_one_arm_are_pooled(good: EvalLog, again: EvalLog, bad: EvalLog) -> None:
    _, found = as_json(bad.location, "--to", good.location, again.location)
    assert found["new"]["logs"] == [good.location, again.location]
    assert found["other_measures"][0]["compressions"] == [4, 8]


def test_an_attempt_that_was_gone_on_with_counts_once(
    good: EvalLog, bad: EvalLog, tmp_path: Path
) -> None:
    def earlier(log: EvalLog) -> None:
        log.status = "cancelled"
        log.eval.eval_id = "earlier"
        log.eval.created = "2020-01-01T00:00:00+00:00"
        log.samples = (log.samples or [])[:3]

    first = changed(good, tmp_path, earlier)
    _, found = as_json(bad.location, "--to", first, good.location)
    assert found["new"]["logs"] == [good.location]


def run(folder: Path, name: str, **given: Any) -> str:
    """Run one arm with the embedded model alone; returns where the log is."""
    fixture = folder / "data" / "tiny.json"
    if not fixture.exists():
        small.write(folder / "data")
    return embedded(folder / name, fixture, **given).location


def test_the_embedded_compressor_certifies_no_prompt(tmp_path: Path) -> None:
    prompt = tmp_path / "haiku.md"
    prompt.write_text("Write a haiku about the session.", encoding="utf-8")
    given: dict[str, Any] = {"compressor": "regenerative", "compressor_args": small.BUDGETS}
    base = run(tmp_path, "base", **given)
    new = run(tmp_path, "new", prompt=str(prompt), **given)
    done = compared(base, "--to", new, "--gate")
    assert done.exit_code == 3
    assert "the embedded model, which compressed here and reads no prompts" in done.stdout
    page = compared(base, "--to", new)
    assert "compressor_args.prompt (null -> haiku.md)" in page.stdout
    assert "what would tell" not in page.stdout


def test_an_own_compressor_is_exact_where_it_came_out_alike(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(
        "import itertools\n"
        "from compression_eval import safe_head, safe_tail\n"
        "calls = itertools.count()\n"
        "def same(messages, last=1):\n"
        "    note = {'role': 'user', 'content': 'cut; go on'}\n"
        "    return [*safe_head(messages, 2), note, *safe_tail(messages[2:], last)]\n"
        "def varied(messages):\n"
        "    return same(messages, last=1 + 4 * (next(calls) % 2))\n"
        "async def asking(messages):\n"
        "    from inspect_ai.model import get_model\n"
        "    said = await get_model(role='compressor').generate('Summarise this conversation.')\n"
        "    return same(messages)\n",
        encoding="utf-8",
    )

    def made(name: str, compressor: str, epochs: int, **arguments: int) -> str:
        chosen = f"{own}@{compressor}"
        return run(tmp_path, name, epochs=epochs, compressor=chosen, compressor_args=arguments)

    logs = {
        "three": made("three", "same", 3, last=4),
        "one": made("one", "same", 3, last=1),
        "once": made("once", "same", 1, last=1),
        "varied": made("varied", "varied", 4),
        "asked": made("asked", "asking", 2),
        "asked again": made("again", "asking", 2),
    }
    code, found = as_json(logs["three"], "--to", logs["one"])
    assert code == 1
    assert {line["verdict"] for line in found["other_measures"]} <= {"better", "worse", "no change"}
    # Where nothing is random there is nothing to test.
    assert found["decision"]["p"] is found["decision"]["p_loss_of_margin"] is None
    assert {line["p_adjusted"] for line in found["other_measures"]} == {None}
    first = compared(logs["three"], "--to", logs["one"], "--gate").stdout
    assert "exact" in first
    assert not re.search(r"\bp [<.\d]", first)
    assert as_json(logs["three"], "--to", logs["once"])[0] == 3
    # With a model call its prompt may have changed, which the embedded model does not read.
    assert as_json(logs["asked"], "--to", logs["asked again"])[0] == 3
    _, found = as_json(logs["three"], "--to", logs["varied"])
    assert any(line["verdict"] == "cannot tell" for line in found["other_measures"])


def test_junit_has_a_case_for_every_measure(good: EvalLog, bad: EvalLog, tmp_path: Path) -> None:
    out = tmp_path / "compare.xml"
    done = compared(good.location, "--to", bad.location, "--gate", "--junit", out)
    assert done.exit_code == 1
    suite = fromstring(out.read_text("utf-8"))[0]  # noqa: S314 - of our own making
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    _, found = as_json(good.location, "--to", bad.location)
    # The others are exploratory: they say what they did, and no service goes red by them.
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failed == ["outcome"]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert suite.get("tests") == str(len(found["other_measures"]) + 1)
    said = cases["overall"].findtext("system-out")
    assert said == "4.00 -> 2.00 (-2.00): worse, by at least the margin of 0.30"
    unclear = cases["fact_recall"].find("skipped")
    assert unclear is not None
    assert "by more than 6.0 pp" in unclear.get("message", "")  # as the change is shown


def test_junit_says_why_nothing_was_compared(good: EvalLog, tmp_path: Path) -> None:
    out, missing = tmp_path / "compare.xml", tmp_path / "no" / "x"
    done = compared(good.location, "--to", good.location, "--out", missing, "--junit", out)
    assert done.exit_code == 2
    (case,) = fromstring(out.read_text("utf-8")).iter("testcase")  # noqa: S314
    error = case.find("error")
    assert error is not None
    assert "no such folder" in str(error.get("message"))


def test_mechanical_arms_need_no_epochs(tmp_path: Path) -> None:
    """The embedded model says the same every time, so one compression is enough."""
    logs = [
        run(tmp_path, str(n), compressor="tail", compressor_args={"tail_tokens": tokens})
        for n, tokens in enumerate((90, 90, 60))
    ]
    same = compared(logs[0], "--to", logs[1])
    assert same.exit_code == 0
    assert same.stdout.startswith("the same answers: nothing was compared: all 3 answers are")
    assert "mechanical and come out the same every time" in same.stdout
    assert "no language model was involved" in same.stdout
    assert "exact" in same.stdout
    code, found = as_json(logs[0], "--to", logs[2])
    assert found["mechanical"] == ["base", "new"]
    assert {line["verdict"] for line in found["other_measures"]} <= {"better", "worse", "no change"}
    assert code in (0, 1)


def test_both_sides_stand_between_the_controls(tmp_path: Path) -> None:
    arms = [("none", {}), ("full", {}), *(("tail", {"tail_tokens": n}) for n in (60, 90))]
    for compressor, given in arms:
        run(tmp_path, "logs", epochs=2, compressor=compressor, compressor_args=given)
    logs = tmp_path / "logs"
    sides = (logs, "--base-arm", "=60", "--to", logs, "--new-arm", "=90")
    assert "Retention of knowledge between none (0 %) and full" in compared(*sides).stdout
    _, found = as_json(*sides)
    means = samples_frame(logs).groupby("arm")["knowledge"].mean()
    low, high = means["none"], means["full"]
    for tokens, kept in zip((60, 90), found["retention"], strict=True):
        expected = (means[f"tail (tail_tokens={tokens})"] - low) / (high - low)
        assert kept["share"] == pytest.approx(expected)


def test_cuts_under_one_mean_are_pointed_out(tmp_path: Path) -> None:
    base, new = (run(tmp_path, name, cut=[6, 11], **TAIL) for name in ("base", "new"))
    text = compared(base, "--to", new).stdout
    for side in ("base", "new"):
        assert f"WARNING: {side} mixes cuts of tiny; their probes are averaged" in text
