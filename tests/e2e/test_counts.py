"""How often each model is called, and which probes share a state."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

from compression_eval.analysis.facts import FactTotals
from compression_eval.analysis.frames import facts_frame
from compression_eval.cli import main
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, COMPRESSES, GRADES, Scripts
from tests.e2e.small import EPOCHS, PROBES


def calls(scripts: Scripts) -> dict[str, int]:
    return {name: len(script.calls) for name, script in scripts.items()}


def states(log: EvalLog) -> dict[tuple[str, int, int], set[str]]:
    """Return the ids of the states that the samples of each fixture, cut and epoch had."""
    found: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for sample in small.samples(log):
        record = small.record(sample)
        found[record.fixture, record.cut, sample.epoch].add(small.state(sample).state_id)
    return found


@pytest.mark.parametrize("compressor", ["anchored", "summary"])
def test_one_compression_per_epoch_and_one_answer_and_grading_per_probe(
    scripts: Scripts, tiny: Path, log_dir: Path, compressor: str
) -> None:
    scripts[COMPRESSES].seconds = 0.05
    args = {} if compressor == "summary" else small.BUDGETS
    log = small.run(log_dir, tiny, compressor=compressor, compressor_args=args)
    assert len(small.samples(log)) == PROBES * EPOCHS
    assert calls(scripts) == {
        COMPRESSES: EPOCHS,
        ANSWERS: PROBES * EPOCHS,
        GRADES: PROBES * EPOCHS,
    }
    by_epoch = states(log)
    assert [len(ids) for ids in by_epoch.values()] == [1] * EPOCHS
    assert len(set.union(*by_epoch.values())) == EPOCHS
    makers = {
        (small.state(sample).state_id, small.state(sample).computed_by)
        for sample in small.samples(log)
    }
    assert len(makers) == EPOCHS


def test_every_fixture_and_cut_has_its_own_compressions(
    scripts: Scripts, tmp_path: Path, log_dir: Path
) -> None:
    scripts[COMPRESSES].seconds = 0.02
    paths = [small.write(tmp_path / "data", name) for name in ("one", "two", "three")]
    log = small.run(log_dir, paths, cut=[10, "end"], options={"max_samples": 40})
    found = states(log)
    assert set(found) == {
        (name, cut, epoch)
        for name in ("one", "two", "three")
        for cut in (10, 11)
        for epoch in range(1, EPOCHS + 1)
    }
    assert all(len(ids) == 1 for ids in found.values())
    assert len(set.union(*found.values())) == len(found) == len(scripts[COMPRESSES].calls)
    # What only the last message tells is not asked before it.
    assert len(small.samples(log)) == 3 * EPOCHS * (PROBES + PROBES - 1)
    for record in map(small.record, small.samples(log)):
        named = {"auth/session.py": "modified"} if record.probe.type == "artifact" else {}
        if named and record.cut == 11:
            named["docs/retry.md"] = "mentioned"
        assert record.files.items() >= named.items()
        assert bool(record.files) == bool(named)
        assert record.cut == 11 or "docs/retry.md" not in record.files


def test_inspects_cache_gives_no_epoch_the_compression_of_another(
    scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[COMPRESSES].seconds = 0.2
    # Of a model object the log's header does not say that its calls are cached.
    model = get_model(f"scripted/{ANSWERS}")
    for _ in range(2):
        options = {"cache": True, "max_samples": EPOCHS * PROBES}
        log = small.run(log_dir, tiny, model=model, options=options)
        # The second run takes all from the cache.
        assert len(scripts[COMPRESSES].calls) == EPOCHS
        written = {
            (
                sample.epoch,
                *re.findall(r"written by call \d", " ".join(m.text for m in sample.messages)),
            )
            for sample in small.samples(log)
        }
        assert len(written) == len({text for _, text in written}) == EPOCHS


def test_several_answers_share_a_state(scripts: Scripts, tiny: Path, log_dir: Path) -> None:
    log = small.run(log_dir, tiny, answers=2)
    assert calls(scripts) == {
        COMPRESSES: EPOCHS,
        ANSWERS: PROBES * EPOCHS * 2,
        GRADES: PROBES * EPOCHS * 2,
    }
    found = states(log)
    for epoch in (1, 3, 5):
        assert len(found["tiny", 11, epoch] | found["tiny", 11, epoch + 1]) == 1
    assert len(set.union(*found.values())) == EPOCHS


def test_two_cycles_make_two_compressions_of_one_state(
    scripts: Scripts, tmp_path: Path, log_dir: Path
) -> None:
    path = small.write(tmp_path / "data", fixture={**small.conversation(), "cuts": [6]})
    log = small.run(log_dir, path, cycles=2)
    assert len(scripts[COMPRESSES].calls) == 2 * EPOCHS
    for sample in small.samples(log):
        state = small.state(sample)
        assert [cycle.model_calls for cycle in state.cycles] == [1, 1]
        assert [cycle.cut for cycle in state.cycles] == [6, 11]
    second = [call for call in scripts[COMPRESSES].calls if "written by call" in call.text]
    assert len(second) == EPOCHS, "each second compression starts from what the first one wrote"
    facts = facts_frame(log.location)
    assert set(facts["cycles"]) == {1, 2}
    for cycles, found, in_state in facts[["cycles", "found", "in_state"]].itertuples(index=False):
        assert len(found) == cycles
        assert found[-1] == in_state
    passed = FactTotals(facts).passed()
    assert passed["1"].known == len(facts)
    assert passed["2"].known == (facts["cycles"] == 2).sum()
    made = CliRunner().invoke(main, ["report", log.location, "--out", str(tmp_path / "report")])
    assert made.exit_code == 0, made.output
    page = (tmp_path / "report" / "report.md").read_text("utf-8")
    table = page.partition("Facts after each compression")[2].partition("###")[0]
    assert f"| {passed['1'].share:.0%}".replace("%", " %") in table
    assert FactTotals(facts_frame(small.run(log_dir, path).location)).passed() == {}
