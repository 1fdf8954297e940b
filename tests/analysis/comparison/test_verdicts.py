"""Verdicts, exit codes and what stands beside them, on runs whose scores are known."""

from pathlib import Path

import pytest
from inspect_ai.log import EvalLog

from compression_eval.analysis import samples_frame
from compression_eval.analysis.comparison.measures import HEADLINE
from tests.analysis.comparison.arms import (
    BAD,
    GOOD,
    as_json,
    compared,
    evaluated,
    in_turns,
    swinging,
    verdicts,
)
from tests.e2e.scripted import Call, proper_compression


def test_two_runs_of_one_arm_are_no_change(good: EvalLog, again: EvalLog) -> None:
    code, found = as_json(good.location, "--to", again.location)
    assert code == 0
    assert found["same_arm"]
    assert verdicts(found) == dict.fromkeys(HEADLINE, "no change")
    assert found["headline"][0]["change"] == pytest.approx(0, abs=1e-9)
    text = compared(good.location, "--to", again.location)
    assert text.exit_code == 0
    assert "(A/A)" in text.stdout
    floor = text.stdout.split("Noise floor")[1].splitlines()
    # Two states at 3.9 and two at 4.1 on each side: the standard error is known.
    error = (2 * (4 * 0.1**2 / 3) / 4) ** 0.5
    assert floor[2].split()[:2] == ["overall", f"{error:.2f}"]


def test_a_worse_arm_is_a_regression(good: EvalLog, bad: EvalLog) -> None:
    code, found = as_json(good.location, "--to", bad.location)
    assert code == 1
    assert found["outcome"] == "regression"
    overall = found["headline"][0]
    assert (overall["base"], overall["new"]) == pytest.approx((4.0, 2.0))
    assert verdicts(found)["overall"] == verdicts(found)["fact_recall"] == "worse"
    assert verdicts(found)["fact_survival"] == "no change"
    assert not found["same_arm"]
    changed = {each["name"]: (each["base"], each["new"]) for each in found["settings_changed"]}
    assert changed == {"compressor_args.tail_tokens": ("60", "61")}


def test_the_other_way_round_it_is_better(good: EvalLog, bad: EvalLog) -> None:
    code, found = as_json(bad.location, "--to", good.location)
    assert code == 0
    assert found["outcome"] == "no regression"
    assert verdicts(found)["overall"] == "better"
    code, found = as_json(bad.location, "--to", good.location, "--threshold", "2.5")
    assert verdicts(found)["overall"] == "no change"


def test_means_recompute_from_the_frame(good: EvalLog, bad: EvalLog) -> None:
    _, found = as_json(good.location, "--to", bad.location)
    for label, log in (("base", good), ("new", bad)):
        frame = samples_frame(log.location)
        for line in found["headline"]:
            by_probe = frame.groupby(["unit", "probe_id"])[line["measure"]].mean()
            assert line[label] == pytest.approx(by_probe.mean()), line["measure"]


def test_facts_are_named_with_their_stage(good: EvalLog, bad: EvalLog) -> None:
    _, found = as_json(good.location, "--to", bad.location)
    lost = {fact["fact"]: fact for fact in found["facts"] if fact["kind"] == "lost"}
    assert set(lost) == {"E4401", "auth/session.py"}
    code = lost["E4401"]
    assert (code["probe"], code["where"]) == ("code", "answer")
    assert (code["base"]["in_answer"], code["new"]["in_answer"]) == (4, 0)
    assert (code["base"]["stage"], code["new"]["stage"]) == ("used", "unused")
    _, back = as_json(bad.location, "--to", good.location)
    assert {fact["fact"] for fact in back["facts"] if fact["kind"] == "gained"} == set(lost)
    assert not [fact for fact in back["facts"] if fact["kind"] == "lost"]


def test_misses_that_flipped(good: EvalLog, bad: EvalLog) -> None:
    _, found = as_json(good.location, "--to", bad.location)
    assert {flip["probe"] for flip in found["flips"]} == {"code", "file", "next"}
    first = found["flips"][0]
    assert first["missed_now"]
    assert (first["base"], first["new"]) == (4.0, 2.0)
    assert first["reason"].endswith(": Because.")


def test_breakdowns_are_families_of_their_own(good: EvalLog, bad: EvalLog) -> None:
    _, found = as_json(good.location, "--to", bad.location)
    assert set(found["exploratory"]) == {"probe_type"}
    groups = {(line["group"], line["measure"]) for line in found["exploratory"]["probe_type"]}
    kinds, measures = ("recall", "artifact", "continuation"), ("overall", "fact_recall")
    assert groups >= {(kind, measure) for kind in kinds for measure in measures}


def test_a_gate_wants_every_measure_told(folder: Path) -> None:
    """Continuity swings so far that it cannot be told; the overall score hardly moves by it."""
    grader = swinging(more={"continuity": 0.6})
    logs = [evaluated(folder / f"gate{n}", grader=grader) for n in range(2)]
    base, new = (log.location for log in logs)
    code, found = as_json(base, "--to", new)
    assert code == 0
    unknown = {name for name, verdict in verdicts(found).items() if verdict == "cannot tell"}
    # The shares of facts never varied, so they are as uncertain as what varied most.
    assert unknown == {"continuity", "fact_recall", "fact_survival"}
    done = compared(base, "--to", new, "--gate")
    assert done.exit_code == 3
    assert done.stdout.endswith(
        "cannot tell: cannot be told: continuity, fact_recall, fact_survival\n"
    )
    assert "Facts" not in done.stdout
    assert "Failures" not in done.stdout


def test_one_epoch_cannot_be_told(folder: Path) -> None:
    logs = [evaluated(folder / f"once{n}", epochs=1) for n in range(2)]
    done = compared(logs[0].location, "--to", logs[1].location)
    assert done.exit_code == 3
    assert "each conversation was compressed only once" in " ".join(done.stdout.split())


def test_an_arm_never_wins_by_failing(folder: Path) -> None:
    """It fails on the conversation that is hard for both, and is no better on the other."""

    def score(call: Call) -> float:
        return 1.0 if "the hard one" in call.text else 4.0

    def grader(call: Call) -> str:
        return swinging(good=score(call))(call)

    def answers(call: Call) -> str:
        return f"{GOOD} Asked about the {'hard' if 'HARD' in call.text else 'easy'} one."

    proper = in_turns("HARD")

    def failing(call: Call) -> str:
        return "" if "HARD" in call.text else proper(call)

    data = _easy_and_hard(folder / "hard")
    runs = {
        name: evaluated(
            folder / name,
            *("easy", "hard"),
            answer=answers,
            grader=grader,
            compresses=compresses,
            data=data,
        ).location
        for name, compresses in (("holds", in_turns("HARD")), ("fails", failing))
    }
    frames = {name: samples_frame(path) for name, path in runs.items()}
    assert frames["fails"]["overall"].mean() > frames["holds"]["overall"].mean() + 1
    code, found = as_json(runs["holds"], "--to", runs["fails"])
    assert verdicts(found)["overall"] == "no change"
    assert found["headline"][0]["probes"] == 3
    assert found["base"]["failures"]["failed"] == 0
    assert found["new"]["failures"]["failed"] == 12
    assert found["new"]["failures"]["failed_states"] == 4
    bound = found["failed_as_0"][0]
    assert bound["new"] == pytest.approx(2.0, abs=0.1)
    assert bound["verdict"] == "worse"
    assert code == 1
    text = compared(runs["holds"], "--to", runs["fails"]).stdout
    assert "12 of 24 (50.0%): compression_failed" in text
    assert "nothing is called better" in text
    # The one that fails less is compared on what both have, and wins nothing by it either.
    code, found = as_json(runs["fails"], "--to", runs["holds"])
    assert (code, verdicts(found)["overall"]) == (0, "no change")


def test_higher_scores_are_not_better_if_failures_rise(folder: Path) -> None:
    def failing(call: Call) -> str:
        return "" if call.number == 0 else proper_compression(call)

    base = evaluated(folder / "low", answer=BAD)
    new = evaluated(folder / "high", compresses=failing)
    code, found = as_json(base.location, "--to", new.location)
    overall = found["headline"][0]
    assert overall["change"] == pytest.approx(1.0, abs=0.2)
    assert overall["verdict"] == "cannot tell"
    assert "fails more often" in overall["why"]
    assert "better" not in verdicts(found).values()
    assert code == 3


def _easy_and_hard(folder: Path) -> Path:
    from tests.e2e import small

    small.write(folder, "easy")
    hard = small.conversation("hard")
    hard["messages"][1]["content"] += " HARD"
    hard["messages"][6]["content"] += " HARD"
    hard["messages"][10]["content"] += " HARD"
    small.write(folder, "hard", fixture=hard)
    return folder


def test_failures_are_counted_on_what_both_were_asked(folder: Path) -> None:
    """The base fails all over a conversation that the new arm was never given."""

    def mostly(call: Call) -> str:
        return "" if "HARD" in call.text else proper_compression(call)

    def once(call: Call) -> str:
        return "" if call.number == 0 else proper_compression(call)

    data = _easy_and_hard(folder / "apart")
    base = evaluated(folder / "wide", "easy", "hard", answer=BAD, compresses=mostly, data=data)
    new = evaluated(folder / "narrow", "easy", compresses=once, data=data)
    _, found = as_json(
        base.location, "--to", new.location, "--allow", "fixtures", "--allow", "probes"
    )
    assert (found["base"]["failures"]["failed"], found["new"]["failures"]["failed"]) == (0, 3)
    assert "better" not in verdicts(found).values()
