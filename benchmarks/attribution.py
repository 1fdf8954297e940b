"""Does attribution name the stage at which a fact was really lost?

    python -m benchmarks.attribution

A strategy is spoilt on purpose in three ways (`benchmarks.corruptions`) and run on every shipped
fixture, with the embedded model as its compressor and no answer. A fact counts as affected if the
state lacks it and the corruption is why. What happened to it is known from how the strategy was
spoilt, from the bank's evidence and from letter-by-letter comparison, not from the look-ups under
test; where that comparison is wrong, it was put right by reading (`READ`).

* truncated: every message that contains the fact by the bank was given up before summarising. The
  right stage is ``never_fed``; or ``dropped``, if what was left says it once more.
* section: the fact was in the section that was cut out of the summary, and nowhere else. The
  right stage is ``dropped``; or ``superseded``, if an earlier value is in what was left.
* stale: a line of the conversation with an earlier value was put into the summary, and the lines
  with the current one were taken out. The right stage is ``superseded``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio
from inspect_ai.model import CompactionStrategy, get_model

from benchmarks.corruptions import (
    SECTIONS,
    SectionDropping,
    StaleKeeping,
    Truncating,
    holds_any,
)
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.state import State
from compression_eval.compressors.strategy import Arguments, Compressor, CompressorSpec
from compression_eval.facts.life import Stage, follow_facts
from compression_eval.facts.records import FactRecord, track
from compression_eval.fixtures.banks import ExpectedFact
from compression_eval.fixtures.conversation import declared_tools, message_id, message_text
from compression_eval.fixtures.cuts import resolve_cut
from compression_eval.fixtures.loading import FixtureWithBank, load_pairs

SHARE_GIVEN_UP = 0.6

READ: dict[tuple[str, str, str], Stage] = {
    # The folder is only named as a part of other paths; the rule about it was given up.
    ("truncated", "pr-triage", "millrace/"): "never_fed",
    # Test values of a pool in a unit test, not what is in force in production.
    ("truncated", "401-debug", "max_idle_s=90"): "never_fed",
    ("truncated", "401-debug", "checkout_timeout_s=0.5"): "never_fed",
    # A word in an error message, not the constant.
    ("truncated", "zh-log-rotation", "PROTECTED"): "never_fed",
    # A unit test says that the sign makes a quantity negative.
    ("truncated", "ja-csv-import", "△"): "dropped",
    # What is left says of the old path that the file was moved away from it.
    ("section", "cron-config", "prompts/retired/patent-filings.md"): "dropped",
    # What is left says "I'd take that down to 0.5".
    ("section", "401-debug", "checkout_timeout_s=0.5"): "unused",
    # What is left says `delete_after_hours = 168`.
    ("section", "zh-log-rotation", "336 小时"): "distorted",
}
"""Right stages by corruption, fixture and fact, where letter-by-letter comparison is wrong."""


@dataclass(frozen=True)
class Attribution:
    """One affected fact, and the stage that it was given."""

    corruption: str
    fixture: str
    probe: str
    fact: str
    right: Stage
    given: Stage

    @property
    def correct(self) -> bool:
        """Whether the stage is the right one."""
        return self.given == self.right


async def attributions(fixtures: str | list[str] = "all") -> list[Attribution]:
    """Run the three spoilt strategies on shipped fixtures."""
    result: list[Attribution] = []
    for pair in load_pairs(fixtures, None):
        result.extend(await _truncated(pair))
        for number in range(SECTIONS):
            result.extend(await _without_section(pair, number))
        result.extend(await _stale(pair))
    return result


async def _truncated(pair: FixtureWithBank) -> list[Attribution]:
    strategy = Truncating(SHARE_GIVEN_UP)
    state = await _state(pair, strategy)

    def right(record: FactRecord, fact: ExpectedFact) -> Stage | None:
        if not {message_id(index) for index in record.evidence} <= strategy.gone:
            return None
        return "dropped" if holds_any(strategy.left, fact.forms) else "never_fed"

    return list(_judged(pair, state, "truncated", right))


async def _without_section(pair: FixtureWithBank, number: int) -> list[Attribution]:
    strategy = SectionDropping(number)
    state = await _state(pair, strategy)
    left = "\n".join(message_text(message) for message in state.messages)

    def right(record: FactRecord, fact: ExpectedFact) -> Stage | None:
        del record
        if not holds_any(strategy.before, fact.forms) or holds_any(left, fact.forms):
            return None
        return "superseded" if holds_any(left, _earlier(fact)) else "dropped"

    return list(_judged(pair, state, "section", right))


async def _stale(pair: FixtureWithBank) -> list[Attribution]:
    facts = {
        (probe.id, fact.fact): fact
        for probe in pair.bank.probes
        for fact in probe.expected_facts
        if fact.superseded
    }
    strategy = StaleKeeping(list(facts.values()))
    state = await _state(pair, strategy)
    seeded = [seed.fact for seed in strategy.seeds]

    def right(record: FactRecord, fact: ExpectedFact) -> Stage | None:
        del record
        return "superseded" if fact in seeded else None

    return list(_judged(pair, state, "stale", right))


def _earlier(fact: ExpectedFact) -> list[str]:
    """Return the earlier values of a fact; a bare number is put in the place of its own."""
    return [
        re.sub(r"\d[\d.]*", value, fact.fact, count=1) if value.isdigit() else value
        for value in fact.superseded
    ]


def _judged(
    pair: FixtureWithBank,
    state: State,
    corruption: str,
    right: Callable[[FactRecord, ExpectedFact], Stage | None],
) -> Iterator[Attribution]:
    """Yield the facts that the state lacks because of the corruption; `right` gives their stage."""
    for probe in pair.bank.probes:
        for finding in follow_facts(probe, state.facts, ""):
            if finding.record is None or finding.in_state is not False:
                continue
            stage = right(finding.record, finding.fact)
            if stage is None:
                continue
            name = pair.fixture.name
            stage = READ.get((corruption, name, finding.fact.fact), stage)
            yield Attribution(corruption, name, probe.id, finding.fact.fact, stage, finding.stage)


async def _state(pair: FixtureWithBank, strategy: CompactionStrategy) -> State:
    cut = resolve_cut(pair.fixture, "end")
    compressor = Compressor("spoilt", "", Arguments, lambda *_: strategy)
    plan = CompressionPlan(
        fixture=pair.fixture,
        tools=declared_tools(pair.fixture, cut),
        cuts=(cut,),
        spec=CompressorSpec(compressor, Arguments()),
        tracked=track(pair.fixture, cut, pair.bank.probes),
    )
    state = await compress(plan, 0, get_model("embedded/lexical"))
    if state.status != "ok":
        raise RuntimeError(f"{pair.fixture.name}: {state.status}: {state.failure}")
    return state


def figures(found: list[Attribution]) -> dict[str, tuple[int, int]]:
    """Return by corruption how many attributions are right, and how many there are."""
    total = Counter(item.corruption for item in found)
    right = Counter(item.corruption for item in found if item.correct)
    return {name: (right[name], count) for name, count in total.items()}


def _print(found: list[Attribution]) -> None:
    for name, (right, total) in figures(found).items():
        print(f"{name:10} {right:4} of {total:4} right ({right / total:.1%})")
    print("\nwrong:")
    for item in found:
        if not item.correct:
            print(
                f"  {item.corruption:10} {item.fixture}/{item.probe}: {item.fact!r} is "
                f"{item.given}, not {item.right}"
            )


if __name__ == "__main__":
    _print(anyio.run(attributions))
