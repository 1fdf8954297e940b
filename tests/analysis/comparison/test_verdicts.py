"""Verdicts, exit codes and what stands next to them, on runs whose scores are known."""

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log
from scipy import stats

from compression_eval.analysis import mean_score, samples_frame
from compression_eval.analysis.comparison.measures import HEADLINE
from tests.analysis.comparison.arms import (
    BEGINNINGS,
    GOOD,
    as_json,
    changed,
    compared,
    evaluated,
    in_turns,
    refused,
    swinging,
    verdicts,
)
from tests.analysis.comparison.arms import controls as controls_of
from tests.analysis.embedded import TAIL
from tests.e2e import scripted
from tests.e2e.scripted import ANSWERS, Call, proper_compression
from tests.e2e.small import ROLES, TASK


def test_two_runs_of_one_arm_are_no_change(good: EvalLog, again: EvalLog, controls: Path) -> None:
    sides = (good.location, "--to", again.location, "--controls", controls)
    code, found = as_json(*sides)
    assert code == 0
    assert found["same_arm"]
    assert found["decision"]["verdict"] == "not worse"
    assert found["decision"]["change"] == pytest.approx(0, abs=1e-9)
    # Four compressions without any spread are too few for a sign test.
    flat = {"knowledge": "not worse", "fact_recall": "cannot tell", "fact_survival": "cannot tell"}
    assert verdicts(found) == dict.fromkeys(HEADLINE, "no change") | flat
    text = compared(*sides)
    assert text.exit_code == 0
    lines = text.stdout.splitlines()
    assert lines[0] == lines[-1] == f"no regression: {found['why']}"
    assert lines[1].startswith("knowledge (0 to 5): 4.00 -> 4.00, +0.00, p 1.000; a loss")
    assert "(A/A)" in text.stdout
    # Two states at 3.9 and two at 4.1 on each side: the standard error is known.
    low, high = found["decision"]["on_these_conversations"]
    error = (2 * (4 * 0.1**2 / 3) / 4) ** 0.5
    assert high == pytest.approx(-low) == pytest.approx(stats.t.ppf(0.975, 6) * error)


def test_a_worse_arm_is_a_regression(good: EvalLog, bad: EvalLog) -> None:
    code, found = as_json(good.location, "--to", bad.location)
    assert (code, found["outcome"]) == (1, "regression")
    overall = found["other_measures"][0]
    assert (overall["base"], overall["new"]) == pytest.approx((4.0, 2.0))
    assert verdicts(found)["knowledge"] == verdicts(found)["overall"] == "worse"
    said = "by at least the margin of 0.30"
    assert found["why"] == f"knowledge is worse by 2.00 on this conversation, {said}"
    assert overall["why"] == f"worse, {said}"
    assert not found["same_arm"]
    changed = {each["name"]: (each["base"], each["new"]) for each in found["settings_changed"]}
    assert changed == {"compressor_args.tail_tokens": ("60", "61")}


def test_the_other_way_round_it_is_better(good: EvalLog, bad: EvalLog, controls: Path) -> None:
    stored = ("--controls", controls)
    code, found = as_json(bad.location, "--to", good.location, *stored)
    assert code == 0
    assert found["outcome"] == "no regression"
    assert verdicts(found)["knowledge"] == verdicts(found)["overall"] == "better"
    # What is shown of the margin stands next to the verdict, on the other measures as well.
    code, found = as_json(good.location, "--to", bad.location, "--margin", "2.5", *stored)
    assert (code, found["margin"]) == (0, 2.5)
    small = "worse, by less than the margin"
    assert verdicts(found)["knowledge"] == verdicts(found)["overall"] == small


def test_means_recompute_from_the_frame(good: EvalLog, bad: EvalLog) -> None:
    _, found = as_json(good.location, "--to", bad.location)
    for label, log in (("base", good), ("new", bad)):
        frame = samples_frame(log.location)
        for line in [found["decision"], *found["other_measures"]]:
            by_probe = frame.groupby(["unit", "probe_id"])[line["measure"]].mean()
            means = (mean_score(frame, line["measure"]), by_probe.mean())
            assert means == pytest.approx((line[label], line[label])), line["measure"]


def test_what_changed_is_named(good: EvalLog, bad: EvalLog) -> None:
    _, found = as_json(good.location, "--to", bad.location)
    lost = {fact["fact"]: fact for fact in found["facts"] if fact["kind"] == "lost"}
    assert set(lost) == {"E4401", "auth/session.py", "docs/retry.md"}
    code = lost["E4401"]
    assert (code["probe"], code["where"]) == ("code", "answer")
    for side, answers, stage in (("base", 4, "used"), ("new", 0, "unused")):
        assert (code[side]["in_answer"], code[side]["stage"]) == (answers, stage)
    _, back = as_json(bad.location, "--to", good.location)
    kinds = {(fact["fact"], fact["kind"]) for fact in back["facts"]}
    assert kinds == {(fact, "gained") for fact in lost}
    assert {flip["probe"] for flip in found["flips"]} == {"code", "file", "next"}
    first = found["flips"][0]
    assert (first["missed_now"], first["base"], first["new"]) == (True, 4.0, 2.0)
    assert first["reason"].endswith(": Because.")
    # A breakdown is a family of its own.
    assert set(found["exploratory"]) == {"probe_type"}
    groups = {(line["group"], line["measure"]) for line in found["exploratory"]["probe_type"]}
    types, measures = ("recall", "artifact", "continuation"), ("knowledge", "fact_recall")
    assert groups >= {(kind, measure) for kind in types for measure in measures}


def test_one_measure_decides_and_the_others_say_where_to_look(folder: Path, controls: Path) -> None:
    """One dimension falls by 1, a quarter of that in knowledge here; form is no part of it."""
    logs = [
        evaluated(folder / f"gate{n}", grader=_falling(accuracy=fall, instruction=form))
        for n, (fall, form) in enumerate(((0.0, 0.0), (1.0, 3.0)))
    ]
    base, new = (log.location for log in logs)
    sides = (base, "--to", new, "--controls", controls)
    code, found = as_json(*sides)
    assert (code, found["decision"]["verdict"]) == (0, "worse, by less than the margin")
    assert found["decision"]["change"] == pytest.approx(-0.25)
    assert verdicts(found)["accuracy"] == "worse"
    assert verdicts(found)["instruction_following"] == "worse"
    done = compared(*sides, "--gate")
    assert done.exit_code == 0
    assert done.stdout.startswith("no regression: knowledge is worse by 0.25")


def _falling(**falls: float) -> Callable[[Call], str]:
    """Return a grader that gives some dimensions less, always by as much."""

    def reply(call: Call) -> str:
        results = json.loads(swinging(more=dict.fromkeys(BEGINNINGS, 0.02))(call))
        for each in results["criterionResults"]:
            each["score"] -= falls.get(each["criterionId"].partition("_")[0], 0.0)
        return json.dumps(results)

    return reply


def test_one_epoch_is_decided_over_conversations(folder: Path) -> None:
    names = [f"talk{n}" for n in range(6)]
    good, other, bad = (
        evaluated(folder / f"once{n}", *names, epochs=1, grader=swinging(level))
        for n, level in enumerate((4.0, 4.0, 2.0))
    )
    beside = controls_of(folder / "once0", *names)  # in the folder of the base
    code, found = as_json(good.location, "--to", other.location)
    assert (code, found["decision"]["verdict"]) == (0, "not worse")
    assert found["decision"]["reader"]["range"] == 4
    assert as_json(beside, "--to", other.location)[0] == 0, "of the one arm beside its controls"
    full = next(beside.glob("*full*.eval"))
    named = (good.location, full, "--to", other.location, "--base-arm", "anchored")
    assert as_json(*named)[0] == 0, "one control was named, and the other lies in the folder"
    assert found["decision"]["decided_over_conversations"]
    assert found["decision"]["on_these_conversations"] is None
    text = compared(good.location, "--to", bad.location)
    assert text.exit_code == 1
    assert "decided by the spread between conversations" in text.stdout.splitlines()[0]


def test_one_compression_of_one_conversation_cannot_be_told(folder: Path) -> None:
    logs = [evaluated(folder / f"lone{n}", epochs=1) for n in range(2)]
    done = compared(logs[0].location, "--to", logs[1].location)
    assert done.exit_code == 3
    head = "".join(done.stdout.splitlines(keepends=True)[:5])
    assert "cannot tell: whether knowledge is worse by more than 0.30 cannot be told" in head
    assert "a second and third compression (--epochs 3 in all)" in head


def test_what_cannot_be_told_says_what_would_tell_and_more_epochs_are_added(
    folder: Path, controls: Path
) -> None:
    def wide(call: Call) -> str:
        return swinging(more=dict.fromkeys(("accuracy", "context", "continuity"), 0.25))(call)

    sides = [str(folder / f"wide{n}") for n in range(2)]
    for side in sides:
        evaluated(Path(side), epochs=4, grader=wide)
    code, found = as_json(sides[0], "--to", sides[1])
    assert (code, found["decision"]["compressions"]) == (3, [4, 4])
    wanted = found["decision"]["would_tell"]["states"]
    assert wanted > 4
    text = compared(sides[0], "--to", sides[1]).stdout
    assert f"(run both again with --epochs {wanted - 4} into their folders)" in text
    as_json.cache_clear()
    for side in sides:
        evaluated(Path(side), epochs=wanted - 4, grader=wide)
    code, found = as_json(sides[0], "--to", sides[1], "--controls", controls)
    assert (code, found["decision"]["compressions"]) == (0, [wanted, wanted])


def test_the_same_answers_are_no_comparison_and_hide_no_loss(folder: Path) -> None:
    """Grades differ by the state that they were given with; what was said does not."""
    base, near, far = (
        evaluated(folder / f"same{n}", answer=lambda _: GOOD, grader=swinging(4 - n)).location
        for n in (0, 0.1, 1)
    )
    code, found = as_json(base, "--to", near)
    assert (code, found["outcome"]) == (0, "the same answers")
    assert (found["decision"]["same_answers"], found["decision"]["same_states"]) == (12, True)
    said = "nothing was compared: all 12 answers are byte for byte the same"
    assert compared(base, "--to", near).stdout.startswith(f"the same answers: {said}\n")
    # From other states, they only show that this reader does not see what differs.
    other = evaluated(
        folder / "same other",
        answer=lambda _: GOOD,
        compresses=lambda call: proper_compression(replace(call, number=call.number + 9)),
    ).location
    code, found = as_json(base, "--to", other)
    assert (code, found["decision"]["same_answers"]) == (3, 12)
    assert "this reader does not see what differs" in found["why"]
    code, found = as_json(base, "--to", far)
    assert (code, found["decision"]["verdict"]) == (1, "worse")
    assert found["decision"]["same_answers"] == 12


def test_without_controls_nothing_is_certified_and_one_command_makes_them(
    good: EvalLog, again: EvalLog
) -> None:
    done = compared(good.location, "--to", again.location, "--gate")
    assert done.exit_code == 3
    assert done.stdout.startswith("cannot tell: how much this reader can answer is not known")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("make the controls")]
    words = shlex.split(line.partition(": ")[2])
    assert words[:9] == [*["for", "arm", "in", "none"], "full;", "do", "inspect", "eval", TASK]
    given = dict(pairwise(words))
    assert given["--model"] == f"scripted/{ANSWERS}"
    assert given["--model-role"] == f"grader={ROLES['grader']}"
    assert given["--log-dir"].rstrip(";") == str(Path(good.location).parent)
    named = {after.partition("=")[0] for word, after in pairwise(words) if word == "-T"}
    assert named == {"compressor", "fixtures"}
    fixtures = next(word for word in words if word.startswith("fixtures="))
    assert json.loads(fixtures.partition("=")[2]) == (good.eval.task_args["fixtures"])


def test_a_reader_that_answers_little_even_from_everything_certifies_nothing(
    folder: Path, good: EvalLog, again: EvalLog, bad: EvalLog, controls: Path
) -> None:
    weak = controls_of(folder / "weak", full=4.0, none=2.5)
    code, found = as_json(good.location, "--to", again.location, "--controls", weak)
    assert (code, found["decision"]["verdict"]) == (3, "not worse")
    assert "answers too little even from everything" in found["why"]
    # A loss that it does show is one.
    assert as_json(good.location, "--to", bad.location, "--controls", weak)[0] == 1
    # The margin is a tenth of the range where that is less; one that is given stays.
    middling = controls_of(folder / "middling", full=4.0, none=1.6)
    sides = (good.location, "--to", again.location, "--controls", middling)
    code, found = as_json(*sides)
    assert (code, found["margin"]) == (0, pytest.approx(0.24))
    assert as_json(*sides, "--margin", "0.3")[1]["margin"] == 0.3
    assert (
        as_json(good.location, "--to", again.location, "--controls", controls)[1]["margin"] == 0.3
    )


def test_controls_that_do_not_fit_are_refused_by_what_differs(
    folder: Path, good: EvalLog, again: EvalLog, controls: Path
) -> None:
    def other_grader(log: EvalLog) -> None:
        for sample in log.samples or []:
            metadata = (sample.scores or {})["six_dimensions"].metadata or {}
            metadata["graders"][0]["model"] = "scripted/another"

    def other_probe(log: EvalLog) -> None:
        for sample in log.samples or []:
            sample.store["ProbeRecord:sample"]["probe"]["question"] += " Please."

    def unfinished(log: EvalLog) -> None:
        log.status = "cancelled"

    def another_run(log: EvalLog) -> None:
        log.eval.task_id = "another"

    (none,) = controls.glob("*none*")
    full = next(iter(controls.glob("*full*")))
    sides = (good.location, "--to", again.location)
    for name, change in {
        "grader": other_grader,
        "probes": other_probe,
        "unfinished": unfinished,
    }.items():
        other = changed(read_eval_log(str(none)), folder / name, change)
        error = refused(compared(*sides, "--controls", other, full))
        assert error.startswith("--controls: ")
        assert f"the runs of 'none' do not fit base: {name} (" in error
        if name == "unfinished":  # a run next to it that fits is taken
            lone = changed(read_eval_log(str(other)), folder / "beside", another_run)
            assert compared(*sides, "--controls", lone, none, full).exit_code == 0
    error = refused(compared(*sides, "--controls", none))
    assert error.endswith("no run of the arm 'full'")


def _reads(held: int) -> Callable[[Call], str]:
    """Return a grader that always says the same of answers, and that states contain some facts."""

    def reply(call: Call) -> str:
        if not scripted.is_reading(call):
            return swinging()(call)
        found = json.loads(scripted.reading(call))["factFindings"]
        for place, each in enumerate(found):
            each.update(
                {"word": "stated", "quotes": ["You are a coding agent."]}
                if place < held
                else {"word": "absent", "quotes": []}
            )
        return json.dumps({"factFindings": found})

    return reply


def test_facts_lost_from_the_states_are_a_regression_whatever_the_answers_say(
    folder: Path, controls: Path
) -> None:
    logs = {
        name: evaluated(folder / name, grader=_reads(held), state_facts="reader", epochs=6).location
        for name, held in (("all", 3), ("all again", 3), ("fewer", 2))
    }
    stored = ("--controls", controls)
    code, found = as_json(logs["all"], "--to", logs["fewer"], *stored)
    facts = found["decision"]["facts_in_states"]
    assert (code, found["decision"]["verdict"]) == (1, "not worse")
    assert (facts["base"], facts["new"]) == (1, pytest.approx(2 / 3, abs=1e-3))
    assert (facts["by"], facts["lost"], facts["p"] < 0.05) == ("reader", True, True)
    done = compared(logs["all"], "--to", logs["fewer"], *stored, "--gate")
    first = done.stdout.splitlines()[0]
    assert first.startswith("regression: facts are lost from the states: 100.0% -> 66.7%")
    code, found = as_json(logs["all"], "--to", logs["all again"], *stored)
    assert (code, found["decision"]["facts_in_states"]["lost"]) == (0, False)
    code, found = as_json(logs["fewer"], "--to", logs["all"], *stored)
    assert (code, found["decision"]["facts_in_states"]["lost"]) == (0, False)


def test_what_a_model_said_is_never_exact(folder: Path) -> None:
    """A mechanical compression is always the same; how a model reads and grades it is not."""
    kept: dict[str, Any] = {**TAIL, "epochs": 1}
    read, again, looked_up = (
        evaluated(folder / f"model {n}", grader=_reads(3 - n), state_facts=by, **kept).location
        for n, by in enumerate(("reader", "reader", "match"))
    )
    code, found = as_json(read, "--to", again)
    facts = found["decision"]["facts_in_states"]
    assert (code, facts["base"], facts["lost"]) == (3, 1, False)
    assert facts["on_these_conversations"] is None
    # What a reader found is not compared with what a look-up did.
    code, found = as_json(read, "--to", looked_up, "--allow", "state_facts")
    assert found["decision"]["facts_in_states"] is None
    named = compared(looked_up, "--to", read, "--allow", "state_facts", "--gate").stdout
    assert "not known, since a reader looked for them only in new" in named
    # Nor are answers of the embedded model exact where a language model graded them.
    given = {**kept, "model": "embedded/lexical", "state_facts": "match"}
    graded = [evaluated(folder / f"graded {n}", **given).location for n in range(2)]
    found = as_json(graded[0], "--to", graded[1])[1]
    exact = {
        line["measure"]: line["on_these_conversations"] is not None
        for line in found["other_measures"]
    }
    assert exact == dict.fromkeys(exact, False) | {"fact_survival": True}


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
    assert found["decision"]["verdict"] == "fails more"
    assert found["decision"]["probes"] == 3
    assert found["decision"]["p_fails_more"] == pytest.approx(2 / 70)
    failures = found["new"]["failures"]
    assert (failures["failed"], failures["failed_states"]) == (12, 4)
    assert found["base"]["failures"]["failed"] == 0
    assert found["decision"]["failed_as_0"] < -0.3
    assert code == 1
    text = compared(runs["holds"], "--to", runs["fails"]).stdout
    assert "fails more often: 12 of 24 samples, against 0 of 24" in text.splitlines()[0]
    # The one that fails less is compared on what both have, and wins nothing by it either.
    beside = controls_of(folder / "hard controls", "easy", "hard", data=data)
    code, found = as_json(runs["fails"], "--to", runs["holds"], "--controls", beside)
    assert (code, verdicts(found)["overall"]) == (0, "no change")


def test_a_grader_that_fails_says_nothing_of_the_arm(folder: Path) -> None:
    def outage(call: Call) -> str:
        return "No." if "Which error" in call.text else swinging()(call)

    base, new = (
        evaluated(folder / name, grader=grader)
        for name, grader in (("graded", swinging()), ("outage", outage))
    )
    code, found = as_json(base.location, "--to", new.location)
    assert (code, found["outcome"]) == (3, "cannot tell")
    assert "base 0 of 12, new 4 of 12" in found["why"]
    assert found["decision"]["p_fails_more"] is found["decision"]["would_tell"] is None
    failures = found["new"]["failures"]
    assert (failures["failed"], failures["ungraded"], failures["reasons"]) == (0, 4, {})
    assert failures["ungraded_reasons"] == {"grader_failed: not_json": 4}
    assert "4 of 12 (33.3%): grader_failed" in compared(base.location, "--to", new.location).stdout


def _easy_and_hard(folder: Path) -> Path:
    from tests.e2e import small

    small.write(folder, "easy")
    hard = small.conversation("hard")
    hard["messages"][1]["content"] += " HARD"
    hard["messages"][6]["content"] += " HARD"
    hard["messages"][10]["content"] += " HARD"
    small.write(folder, "hard", fixture=hard)
    return folder
