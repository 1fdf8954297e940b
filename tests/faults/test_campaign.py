"""Faults through the real clients of the vendors: none is scored, lost, doubled or hangs.

All rows about one role and one interface share one run: each has a fixture of its own, and the
server knows by its name which fault to play.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import GenerateConfig, Model, ModelAPI, get_model
from tenacity import wait_none

from tests.e2e import small
from tests.e2e.vendors import anthropic_wire, openai_wire
from tests.e2e.vendors.conftest import answer, compress
from tests.e2e.vendors.server import serving
from tests.e2e.vendors.wire import Asked, Vendor
from tests.faults.table import (
    ATTEMPT_SECONDS,
    ERROR,
    FAULTS,
    RETRIES,
    ROLES,
    ROWS,
    SCORED,
    WIRES,
    Reply,
    Row,
    good,
)

CASE = re.compile(r"case-\d{3}")

MODELS = {
    "openai chat": ("gpt-4o", "gpt-4.1-mini", "gpt-4o-mini"),
    "openai responses": ("gpt-5", "gpt-5-nano", "gpt-5-mini"),
    "anthropic": ("claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5"),
}
"""By interface, the model in each of `ROLES`."""


MAX_SECONDS = 300.0
"""Far more than a run takes, and far less than one that waits for something that never comes."""


@dataclass(frozen=True)
class Run:
    """What became of each row of one interface, by row; "none" is a sample without a fault."""

    samples: dict[str, EvalSample]
    healed: dict[str, EvalSample]
    """After a retry of the run, at a vendor that is well again."""
    seconds: float


def run(wire: str, folder: Path, vendor: Vendor, address: str) -> Run:
    """Play all faults of an interface in one run."""
    rows = [row for row in ROWS if row.wire == wire]
    cases = {f"case-{number:03}": row for number, row in enumerate(rows)}
    names = {"none": "case-999"} | {str(row): case for case, row in cases.items()}
    times: Counter[str] = Counter()

    def speech(role: str, *, well: bool = False) -> Callable[[Asked], Reply]:
        def speak(asked: Asked) -> Reply:
            if asked.trial:
                return "yes"
            case = next(iter(CASE.findall(asked.text)), "")
            row = cases.get(case)
            if well or row is None or row.role != role:
                return PROPER[role](asked)
            times[case] += 1
            if row.times is not None and times[case] > row.times:
                return PROPER[role](asked)
            fault = FAULTS[role][row.fault]
            return fault(asked) if callable(fault) else fault

        return speak

    by_role = dict(zip(ROLES, MODELS[wire], strict=True))
    vendor.begin({by_role[role]: speech(role) for role in ROLES})
    models = {role: model(wire, by_role[role], address) for role in ROLES}
    started = time.monotonic()
    log = small.run(
        folder / "logs",
        [fixture(folder / "data", case) for case in names.values()],
        epochs=1,
        model=models["answerer"],
        model_roles={role: models[role] for role in ("compressor", "grader")},
        options={
            "fail_on_error": False,
            "max_samples": 24,
            "max_retries": RETRIES,
            "attempt_timeout": ATTEMPT_SECONDS,
            "max_connections": 200,
        },
    )
    seconds = time.monotonic() - started
    assert vendor.refused == []
    vendor.begin({by_role[role]: speech(role, well=True) for role in ROLES})
    again = eval_retry(log, log_dir=str(folder / "logs"), display="log", log_realtime=False)[0]
    first, second = by_case(log), by_case(again)
    assert set(first) == set(second) == set(names.values()), "a sample is lost or made up"
    return Run(
        {row: first[case] for row, case in names.items()},
        {row: second[case] for row, case in names.items()},
        seconds,
    )


def by_case(log: EvalLog) -> dict[str, EvalSample]:
    """Return the samples by case; fails if one is there twice."""
    found = {small.names(sample)[:8]: sample for sample in log.samples or []}
    assert len(found) == len(log.samples or []), "a sample stands in the log twice"
    return found


def fixture(folder: Path, case: str) -> Path:
    """Write a conversation and a bank that name their case wherever a model reads of it."""
    data, bank = small.conversation(case), small.bank(case)
    data["messages"][1]["content"] += f" This is {case}."
    bank["probes"] = bank["probes"][:1]
    bank["probes"][0]["question"] += f" ({case})"
    return small.write(folder, case, fixture=data, probes=bank)


def model(wire: str, name: str, address: str) -> Model:
    """Return a model that gives up soon."""
    is_anthropic = wire == "anthropic"
    config = GenerateConfig(
        max_retries=RETRIES, attempt_timeout=ATTEMPT_SECONDS, max_connections=200
    )
    return get_model(
        f"{'anthropic' if is_anthropic else 'openai'}/{name}",
        config=config,
        base_url=address if is_anthropic else f"{address}/v1",
    )


PROPER: dict[str, Callable[[Asked], Reply]] = {
    "answerer": answer,
    "compressor": compress,
    "grader": good,
}


def outcome(sample: EvalSample) -> str:
    """Return what became of a sample, in the words of the table."""
    if sample.error:
        return ERROR
    score = (sample.scores or {})["six_dimensions"]
    if isinstance(score.value, dict):
        return SCORED
    assert isinstance(score.value, float)
    assert math.isnan(score.value)
    return score.reason or ""


def results(sample: EvalSample) -> Any:
    """Return all that a sample was given, but for what depends on when and where it was made."""
    return {
        name: (sample.scores or {})[name].value for name in ("six_dimensions", "fact_retention")
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Run]]:
    """One run for each interface, made when its first row is asked for."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("OPENAI_API_KEY", "not-a-key")
        patch.setenv("ANTHROPIC_API_KEY", "not-a-key")
        patch.setenv("INSPECT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        # How long Inspect waits between attempts is not what is tested here.
        patch.setattr(ModelAPI, "retry_wait", lambda _: wait_none())
        vendors = {}
        for name, wire in (("openai", openai_wire), ("anthropic", anthropic_wire)):
            vendor = Vendor()
            vendors[name] = (vendor, stack.enter_context(serving(vendor, wire)))

        @cache
        def of(wire: str) -> Run:
            folder = tmp_path_factory.mktemp("campaign")
            return run(wire, folder, *vendors[wire.partition(" ")[0]])

        yield of


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_fault_is_never_a_score(row: Row, runs: Callable[[str], Run]) -> None:
    done = runs(row.wire)
    sample, clean = done.samples[str(row)], done.samples["none"]
    assert outcome(clean) == SCORED
    assert outcome(sample).startswith(row.expected)
    if row.expected == SCORED:
        assert results(sample) == results(clean), "a fault that passes leaves nothing behind"
    if row.expected == ERROR:
        assert results(done.healed[str(row)]) == results(clean), "a retry heals it"


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_no_fault_holds_a_run_up(wire: str, runs: Callable[[str], Run]) -> None:
    assert runs(wire).seconds < MAX_SECONDS
