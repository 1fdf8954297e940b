"""``compression-eval probes analyse``, on logs of small runs."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import correlation, fmean
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval.cli import main
from tests.analysis.embedded import embedded, foreign
from tests.e2e import small

pytestmark = pytest.mark.slow

TAILS = (20, 70, 85, 95, 510, 526)
"""Budgets of the arms: with each more of the small conversation is kept."""


def analyse(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["probes", "analyse", *map(str, arguments)])


def data(*logs: object, to: Path) -> dict[str, Any]:
    done = analyse(*logs, "--json", to)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(to.read_text(encoding="utf-8"))
    return found


def conversation() -> dict[str, Any]:
    """Return the small conversation after some talk that no tail contains."""
    found = small.conversation()
    talk = [("user", "Good morning. " * 40), ("assistant", "Good morning. " * 40)]
    found["messages"][1:1] = [{"role": role, "content": text} for role, text in talk]
    return found


def bank() -> dict[str, Any]:
    """Return the small bank with a probe of two facts, and one of what no tail contains."""
    found = small.bank()
    for probe in found["probes"]:
        probe["expected_facts"] = [{"fact": each["fact"]} for each in probe["expected_facts"]]
    for name, question, facts in (
        ("both", "Which retry limit was set, and which error code?", ["retry limit to 7", "E4401"]),
        ("rule", "Which wish opened the morning?", ["Good morning"]),
    ):
        expected = [{"fact": fact} for fact in facts]
        probe = {"id": name, "type": "recall", "question": question, "expected_facts": expected}
        found["probes"].append(probe)
    return found


def run(logs: Path, fixture: Path, tail: int, **given: Any) -> None:
    chosen = {"compressor": "tail", "compressor_args": {"tail_tokens": tail}, "min_removed": 0.0}
    embedded(logs, fixture, **{**chosen, **given})


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the logs of six arms, one of them compressed twice, and of two controls."""
    folder: Path = tmp_path_factory.mktemp("items")
    fixture = small.write(folder / "data", fixture=conversation(), probes=bank())
    for tail in TAILS:
        run(folder / "logs", fixture, tail, epochs=2 if tail == TAILS[0] else 1)
    for control in ("full", "none"):
        run(folder / "logs", fixture, 0, compressor=control, compressor_args=None)
    return folder / "logs"


def by_hand(logs: Path) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return what each state's answers contain by probe, and what the full history's do."""
    shares: dict[str, list[float]] = defaultdict(list)
    full = {}
    for info in list_eval_logs(str(logs)):
        log = read_eval_log(info)
        for sample in log.samples or []:
            value = small.values(sample, "fact_retention")["fact_recall"]
            probe = sample.metadata["probe_id"]
            if log.eval.task_args["compressor"] == "full":
                full[probe] = value
            # The second compression comes out as the first.
            elif log.eval.task_args["compressor"] == "tail" and sample.epoch == 1:
                shares[probe].append(value)
    return shares, full


def test_figures_are_those_counted_by_hand(logs: Path, tmp_path: Path) -> None:
    found = data(logs, to=tmp_path / "items.json")
    shares, full = by_hand(logs)
    assert (len(found["arms"]), found["controls"]) == (6, ["full", "none"])
    probes = {each["probe"]: each for each in found["probes"]}
    assert set(probes) == set(shares) == {"code", "file", "next", "both", "rule"}
    for name, each in probes.items():
        rest = [fmean(s[at] for p, s in shares.items() if p != name) for at in range(6)]
        assert (each["arms"], each["states"], each["missing"]) == (6, 6, 0)
        assert each["answered"] == pytest.approx(fmean(shares[name]), abs=1e-4)
        assert each["answered_by_full"] == full[name]
        assert each["answered_by_none"] == 0
        assert 0 <= each["knowledge"] <= 5
        if len(set(shares[name])) > 1:
            value = correlation(shares[name], rest)
            assert each["discrimination"] == pytest.approx(value, abs=1e-4)
    assert 0 < probes["both"]["answered"] < 1
    assert probes["code"]["discrimination"] > 0.5


def test_probes_that_all_or_none_answer_are_dead(logs: Path, tmp_path: Path) -> None:
    found = data(logs, to=tmp_path / "items.json")
    dead = {each["probe"]: each["dead"] for each in found["probes"] if each["dead"]}
    assert dead == {"next": "everyone", "rule": "no one"}
    alike = [each for each in found["probes"] if each["probe"] in dead]
    assert all(each["discrimination"] is None for each in alike)
    assert {each["note"] for each in alike} == {""}
    assert found["dead"] == {"probes": 5, "everyone": 1, "no_one": 1, "share": 0.4}
    shown = analyse(logs).stdout
    assert "dead on these arms: 2 of 5 probes (40%)" in shown
    assert "dead, everyone answers it: next" in shown
    assert "item-rest over 6 states: within ±0.81 it may be chance" in shown


def test_too_few_arms_are_said_and_no_number_is_given(logs: Path, tmp_path: Path) -> None:
    tails = [
        path
        for path in sorted(logs.glob("*.eval"))
        if read_eval_log(str(path), header_only=True).eval.task_args["compressor"] == "tail"
    ]
    for count, why in ((1, "too few arms (1 of 3)"), (4, "too few states (4 of 6)")):
        found = data(*tails[:count], to=tmp_path / "items.json")
        assert all(each["discrimination"] is None for each in found["probes"])
        assert all(each["dead"] or each["note"].startswith(why) for each in found["probes"])
        assert found["controls"] == []
        assert f"  {why}: " in analyse(*tails[:count]).stdout
    found = data(tails[0], to=tmp_path / "items.json")
    assert found["dead"] == {"probes": 0, "everyone": 0, "no_one": 0, "share": None}
    assert "too few to call any dead: 5 probes" in analyse(tails[0]).stdout


def test_what_cannot_be_analysed_is_one_clean_line(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    foreign(tmp_path / "others")
    edited = bank()
    edited["probes"][0]["question"] += " Exactly, please."
    run(
        tmp_path / "edited",
        small.write(tmp_path / "data", fixture=conversation(), probes=edited),
        40,
    )
    for places, said in (
        ([tmp_path / "nowhere"], "nowhere: no such file or folder"),
        ([tmp_path / "empty"], "empty: no log of compression_eval in this folder"),
        ([tmp_path / "others"], "(1 of other evals)"),
        ([*(tmp_path / "others").glob("*.eval")], "a log of 'other', not of compression_eval"),
        ([logs, tmp_path / "edited"], "'tiny': 'code': was edited between these logs"),
    ):
        done = analyse(*places, "--json", tmp_path / "items.json")
        assert done.exit_code != 0
        assert said in done.stderr
        assert done.stderr.startswith("Error: ")
        assert isinstance(done.exception, SystemExit)
        assert not (tmp_path / "items.json").exists()
