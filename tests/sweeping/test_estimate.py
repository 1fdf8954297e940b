"""An estimate's counts are those of the run that follows."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from compression_eval.analysis.statistics.power import Design, Variances
from compression_eval.compressors.tokens import token_counter
from compression_eval.sweeping.estimate import smallest_difference
from tests.e2e import small
from tests.e2e.scripted import (
    ANSWERS,
    COMPRESSES,
    GRADES,
    Scripts,
    criteria_in,
    facts_in,
    is_reading,
)
from tests.e2e.test_refetch import fetching
from tests.sweeping.commanding import run, scripted_models, settings_file

pytestmark = pytest.mark.slow

ROLES = {"answerer": ANSWERS, "grader": GRADES, "compressor": COMPRESSES}


def estimated(*arguments: str) -> dict[str, Any]:
    ended = run("estimate", *arguments, "--json")
    assert ended.code == 0, ended.errors
    found: dict[str, Any] = json.loads(ended.output)
    return found


@pytest.mark.parametrize(("cycles", "answers"), [(1, 2), (2, 1)])
def test_calls_are_exact_and_tokens_nearly(
    cycles: int, answers: int, scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    # So wordy that there is something to remove at the first of two cuts.
    conversation = small.conversation()
    for message in conversation["messages"][1:5]:
        message["content"] += " The log is long and full of detail." * 30
    tiny.write_text(json.dumps(conversation), encoding="utf-8")
    arms = [
        {"compressor": "anchored", "args": {"tail_tokens": 0, "summary_tokens": 90}},
        {"compressor": "regenerative", "args": {"tail_tokens": 0, "summary_tokens": 90}},
        "edit",
    ]
    file = str(
        settings_file(
            tmp_path,
            tiny,
            **scripted_models(),
            arms=arms,
            cycles=cycles,
            answers=answers,
            min_removed=0.0,
            controls=True,
        )
    )
    found = {role["role"]: role for role in estimated(file)["roles"]}
    assert not any(script.calls for script in scripts.values()), "no model of the sweep was called"
    # At the second cut the edit has nothing left to clear: that arm gives nothing.
    assert run("sweep", file).code == (1 if cycles == 2 else 0)
    counter = token_counter()
    for role, script in ROLES.items():
        calls = scripts[script].calls
        assert found[role]["calls"] == len(calls) > 0
        sent = sum(counter.messages(call.messages) for call in calls)
        # The replies of these models are shorter than an estimate takes them to be.
        assert found[role]["input_tokens"] == pytest.approx(sent, rel=0.2)
    asked = [call for call in scripts[GRADES].calls if not is_reading(call)]
    words = [60 * len(criteria_in(call.text)) + 14 * len(facts_in(call.text)) for call in asked]
    read = 35 * small.PROBES * (len(scripts[GRADES].calls) - len(asked))
    assert found["grader"]["output_tokens"] == sum(words) + read


def test_second_answers_are_counted_by_assumption_and_bounded_by_the_limits(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    scripts[ANSWERS].reply = fetching(
        ("read_message", {"number": 3}), ("read_message", {"number": 4})
    )
    limits = {"calls": 2, "tokens": 2_000}
    given = scripted_models() | {"arms": ["full"], "refetch": limits}
    file = str(settings_file(tmp_path, tiny, **given))
    found = estimated(file)
    by_role = {role["role"]: role for role in found["roles"]}
    answers = small.PROBES * 2
    assert found["arms"][0]["calls"]["refetch"] == by_role["refetch"]["calls"] == 3 * answers
    assert run("sweep", file).code == 0
    assert by_role["grader"]["calls"] == len(scripts[GRADES].calls)


def test_shared_prefixes_and_money(tiny: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    price = {"input": 2.0, "output": 10.0, "input_cache_write": 2.0, "input_cache_read": 0.2}
    prices.write_text(yaml.safe_dump({"openai/some": price}), encoding="utf-8")
    # Wordier, so that the prefix is long enough to be kept by a cache.
    conversation = small.conversation()
    conversation["messages"][1]["content"] += " The log is long and full of detail." * 200
    tiny.write_text(json.dumps(conversation), encoding="utf-8")
    settings = {"models": ["openai/some"], "roles": {"grader": ["google/unknown"]}}
    file = str(settings_file(tmp_path, tiny, arms=["full"], **settings))
    answerer, grader = estimated(file, "--prices", str(prices))["roles"]
    calls, read, sent = (answerer[key] for key in ("calls", "shared_prefix_tokens", "input_tokens"))
    assert calls == small.PROBES * 2
    assert 0.6 < read / sent < (small.PROBES - 1) / small.PROBES
    replies = answerer["output_tokens"] * 10.0
    assert answerer["dollars"] == pytest.approx((replies + (sent - read) * 2 + read * 0.2) / 1e6)
    assert grader["dollars"] is None
    text = run("estimate", file, "--prices", str(prices)).output
    assert "price unknown: google/unknown" in text
    assert "of what is known" in text


@pytest.mark.parametrize("content", ["openai/some: {input: 1}", "- 1", "a: ["])
def test_prices_that_are_none_are_refused(content: str, tiny: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(content, encoding="utf-8")
    ended = run("estimate", str(settings_file(tmp_path, tiny)), "--prices", str(prices))
    assert ended.code != 0
    assert "prices.yaml: " in ended.errors


def test_compressions_that_will_fail_are_said_and_not_counted(tiny: Path, tmp_path: Path) -> None:
    arms: list[Any] = [
        {"compressor": "tail", "args": {"tail_tokens": 100_000}},
        {"compressor": "anchored", "args": {"tail_tokens": 100_000}},
    ]
    file = str(settings_file(tmp_path, tiny, arms=arms))
    found = estimated(file)
    for arm in found["arms"]:
        assert sum(arm["failing"].values()) == arm["compressions"] == 2
        assert arm["calls"] == {"answerer": 0, "grader": 0, "reader": 0, "compressor": 0}
    assert "WARNING tail" in run("estimate", file).output


def test_a_strategy_that_needs_its_vendor_is_assumed_and_says_so(
    tiny: Path, tmp_path: Path
) -> None:
    (arm,) = estimated(str(settings_file(tmp_path, tiny, arms=["anthropic-edit"])))["arms"]
    assert arm["basis"] == "assumed"
    assert arm["unrehearsed"].startswith("unsupported")
    assert arm["calls"] == {"answerer": 6, "grader": 6, "reader": 2, "compressor": 2}


def test_the_difference_for_new_conversations_is_found_as_often_as_promised() -> None:
    """By simulation, with a seed: four differences of fixtures and Student's t over them."""
    import numpy
    from scipy.stats import t

    variances = Variances(0.1, 0.0, 0.0, fixture=0.2)
    found = smallest_difference(Design(4, 10, 3), 4, variances, 0.0).elsewhere or 0
    generator = numpy.random.default_rng(7)
    spread = (variances.fixture + 2 * variances.state / 3) ** 0.5
    differences = generator.normal(found, spread, size=(20_000, 4))
    errors = differences.std(axis=1, ddof=1) / 2
    share = (differences.mean(axis=1) > t.ppf(0.975, 3) * errors).mean()
    assert share == pytest.approx(0.8, abs=0.02)


def test_without_scipy_the_way_to_get_it_is_said(
    monkeypatch: pytest.MonkeyPatch, tiny: Path, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    ended = run("estimate", str(settings_file(tmp_path, tiny)))
    assert ended.code != 0
    assert "estimate needs the extra analysis" in ended.errors
