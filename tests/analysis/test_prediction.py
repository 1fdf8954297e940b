"""Does what a state tells predict the work: the join of two tasks' logs, and its statistics."""

import copy
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scipy.stats import mannwhitneyu, spearmanr

from compression_eval.analysis.prediction import OF_STATES, Joined, Work, joined, sections
from compression_eval.cli import main
from compression_eval.resumption.scoring import Outcome
from compression_eval.text.tables import Table
from tests.e2e import scripted, small
from tests.resumption.test_resumption import BREAKS, WORKS
from tests.resumption.working import BANK, agent, resumed, says, write


def work(number: int, rule: Outcome, holds: bool, knowledge: float, **more: Any) -> Work:
    fact = {"probe": "p", "kind": "rule", "outcome": rule, "in_state": holds}
    told = {"own_facts": float(holds), "survival": float(holds), "state_knowledge": knowledge}
    given: dict[str, Any] = {
        "task": f"t{number}",
        "fixture": f"f{number}",
        "unit": f"f{number}@9",
        "arm": "tail",
        "run": "m 1",
        "message": "recorded",
        "solved": float(rule == "kept"),
        "costs": dict.fromkeys(
            ("tokens_used", "turns", "files_read_again", "commands_run_again", "questions"), 1.0
        ),
        "constraints": [fact | {"knowledge": knowledge}],
        "told": told,
    }
    given["strategy"] = more.get("arm", "tail")
    return Work(**given | more)


def table(works: Sequence[Work], title: str) -> list[list[str]]:
    page = sections(Joined(works, {}, 0, 0))
    (block,) = [each.blocks[0] for each in page if each.title.startswith(title)]
    assert isinstance(block, Table)
    return block.plain


def test_a_broken_constraint_counts_by_whether_its_fact_was_in_the_state() -> None:
    works = [work(n, "kept", True, 5) for n in range(8)]
    works += [work(n, "broken" if n < 4 else "kept", False, 0) for n in range(6)]
    works += [work(n, "asked", False, 0) for n in range(6, 8)]
    rows = table(works, "Is a fact")
    assert rows[0][:6] == ["in the state, by look-up", "yes", "8", "0", "0", "0.00"]
    assert rows[1][1:7] == ["no", "2", "4", "2", "0.50", "0.50"]
    low, high = map(float, rows[1][7].split(" to "))
    assert 0.1 < low < 0.3
    assert 0.7 < high < 0.9


def test_area_and_correlation_are_those_of_scipy() -> None:
    draw = random.Random(3)
    works = []
    for number in range(12):
        for arm in ("full", "tail", "none"):
            level = draw.randint(0, 5)
            kept: Outcome = "kept" if draw.random() < level / 5 else "broken"
            works.append(work(number, kept, level > 2, level, arm=arm))
    kept_levels = [w.constraints[0]["knowledge"] for w in works if w.kept]
    broken_levels = [w.constraints[0]["knowledge"] for w in works if not w.kept]
    expected = mannwhitneyu(kept_levels, broken_levels).statistic
    rows = table(works, "Does its probe tell")
    assert rows[-1][3] == f"{expected / len(kept_levels) / len(broken_levels):.2f}"
    one_task = [
        work(0, w.constraints[0]["outcome"], True, w.told["state_knowledge"], arm=str(number))
        for number, w in enumerate(works)
    ]
    (row,) = [r for r in table(one_task, "Does a better") if r[0].startswith("knowledge")][:1]
    found = spearmanr([w.told["state_knowledge"] for w in works], [w.solved for w in works])
    assert row[5] == f"{found.statistic:.2f}"
    assert row[6] == "-"  # no interval over a single task
    assert found.pvalue < 0.001
    assert row[7] == "<.001"
    rows = table(works, "Arms")
    assert [row[0] for row in rows] == ["full", "tail", "none"]


def test_the_correlation_is_also_given_without_the_controls() -> None:
    """The controls, which know all and nothing, agree with any outcome that they cause."""
    works = []
    for number in range(8):
        for level, arm in enumerate(("none", "tail", "anchored", "full")):
            kept: Outcome = "kept" if arm in ("full", "tail") else "broken"
            works.append(work(number, kept, True, level, arm=arm))
    rows = [
        row
        for row in table(works, "Does a better")
        if row[:2] == [OF_STATES["state_knowledge"], "solved"]
    ]
    assert {row[2]: row[4:6] for row in rows} == {
        "all": ["32", "0.45"],
        "without full and none": ["16", "-1.00"],
    }


def test_tries_with_one_arm_are_no_evidence_of_their_own() -> None:
    works = [
        work(number, "kept" if arm == number % 2 else "broken", arm == 1, arm, arm=str(arm))
        for number in range(8)
        for arm in (0, 1)
        for _ in range(5)
    ]
    for row in table(works, "Does a better"):
        assert row[3:5] == ["8", "16"]
        assert row[5] == "0.00"
        assert float(row[7]) > 0.9


def test_better_states_of_other_tasks_are_no_correlation_within_tasks() -> None:
    works = [work(n, "kept" if n < 6 else "broken", n < 6, 5.0 * (n < 6)) for n in range(12)]
    works += [work(n, "kept" if n < 6 else "broken", n < 6, 5.0 * (n < 6)) for n in range(12)]
    for row in table(works, "Does a better"):
        assert row[5] == "-"


def test_the_logs_of_both_tasks_are_joined_by_arm_cut_and_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted, "SCRIPTS", scripted.proper_scripts())
    fixture = write(tmp_path / "data")
    for compressor, replies in (("full", [WORKS]), ("none", [WORKS, BREAKS])):
        model = agent(*copy.deepcopy(replies), says("Done."))
        resumed(fixture, model, tmp_path / "logs", compressor=compressor)
        small.run(
            tmp_path / "logs",
            fixture,
            probes=str(tmp_path / "data" / "continuations"),
            compressor=compressor,
            compressor_args=None,
        )
    found = joined([str(tmp_path / "logs")])
    assert found.other_states == 0
    assert found.asked == 2
    by_arm = {each.arm: each for each in found.works}
    kept, broken = by_arm["full"].constraints[0], by_arm["none"].constraints[0]
    probe = BANK["probes"][0]["id"]
    assert (kept["probe"], kept["outcome"], kept["in_state"]) == (probe, "kept", 1)
    assert (broken["probe"], broken["outcome"], broken["in_state"]) == (probe, "broken", 0)
    assert "knowledge" in kept
    assert by_arm["full"].told["own_facts"] > by_arm["none"].told["own_facts"]
    for name in ("agent-a", "agent-b"):  # of a strategy that calls a model, two arms
        worker = agent(WORKS, says("Done."))
        roles = {"compressor": f"scripted/{name}"}
        scripted.SCRIPTS[name] = scripted.SCRIPTS[scripted.COMPRESSES]
        resumed(
            fixture,
            worker,
            tmp_path / "two",
            compressor="anchored",
            compressor_args=small.BUDGETS,
            more={"model_roles": roles}.items(),
        )
    two = joined([str(tmp_path / "two")])
    assert [each.arm for each in two.works] == [
        "anchored [scripted/agent-a]",
        "anchored [scripted/agent-b]",
    ]
    done = CliRunner().invoke(main, ["predict", str(tmp_path / "logs")])
    assert done.exit_code == 0, done.output
    assert "2 pieces of work on 1 tasks of 1 conversations, 2 constraints" in done.output
    (answers,) = [path for path in (tmp_path / "logs").iterdir() if "compression-none" in path.name]
    done = CliRunner().invoke(main, ["predict", str(answers)])
    assert done.exit_code == 1
    assert "no log of the task resumption" in done.output


@pytest.mark.slow
def test_the_tables_of_the_findings_are_those_of_their_logs() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "findings.md").read_text(encoding="utf-8")
    found = joined([str(docs / "findings" / "work")])
    assert not found.unscored
    assert found.asked == sum(len(each.constraints) for each in found.works)
    for arm in ("full", "claude-code", "anchored", "tail", "none"):
        works = [each for each in found.works if each.arm == arm]
        outcomes = [fact["outcome"] for each in works for fact in each.constraints]
        solved = sum(each.solved for each in works) / len(works)
        turns = sum(each.costs["turns"] for each in works) / len(works)
        knowledge = sum(each.told["state_knowledge"] for each in works) / len(works)
        row = [f"{len(works)}", f"{solved:.2f}", f"{outcomes.count('kept')} of {len(outcomes)}"]
        row += [str(outcomes.count(each)) for each in ("broken", "asked")]
        row += [f"{turns:.0f}", f"{knowledge:.2f}"]
        assert f"| `{arm}` | {' | '.join(row)} |" in page
    told, states = (
        table(found.works, title) for title in ("Does its probe", "Does a better state")
    )
    logs = sorted(map(str, (docs / "findings" / "work").glob("*.eval")), reverse=True)
    assert table(joined(logs).works, "Does a better state") == states  # in whatever order they lie
    (answered,) = [row for row in told if row[0] == "its probe is answered"]
    assert f"| area {answered[3]} ({answered[4]}) |" in page
    for arms, kept_as, solved_as in (
        ("all", "{} ({}) with constraints kept", "{} ({}) with solved"),
        ("without full and none", "{} with constraints kept ({})", "{} with solved ({})"),
    ):
        for outcome, said in (("constraints kept", kept_as), ("solved", solved_as)):
            (row,) = [row for row in states if row[:3] == ["knowledge of the state", outcome, arms]]
            assert said.format(row[5], row[6]) in " ".join(page.split())
    deleted = joined([str(docs / "findings" / "deletion")])
    lost = table(deleted.works, "Is a fact that is lost")[-1]
    assert f"| {lost[6]} more often ({lost[7]}) |" in page
    assert lost[2:5] == ["7", "14", "19"]
