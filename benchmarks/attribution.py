"""Does attribution name the stage at which a fact was really lost?

    python -m benchmarks.attribution

A strategy is spoilt on purpose in three ways (`benchmarks.corruptions`) and run on every shipped
fixture, with the embedded model as its compressor and no answer. A fact counts as affected if the
state lacks it and the corruption is why. What happened to it is known from how the strategy was
spoilt, from the bank's evidence and from letter-by-letter comparison, not from the look-ups under
test; where that comparison is wrong, it was put right by reading (`READ`).

* truncated: every message that holds the fact by the bank was given up before summarising. The
  right stage is ``never_fed``; or ``dropped``, if what was left says it once more.
* section: the fact stood in the section that was cut out of the summary, and nowhere else. The
  right stage is ``dropped``; or ``superseded``, if an earlier value stands in what was left.
* stale: a line of the conversation with an earlier value was put into the summary, and the lines
  with the current one were taken out. The right stage is ``superseded``.

    python -m benchmarks.attribution --labels FOLDER [--labels-only] [--model MODEL] [--words FILE]

Where labels of real summaries lie (beside the checkout, see `benchmarks.matcher`, or in FOLDER), it
is printed too how often the stage is right on them. A stage is right if it is the one that follows
from the label, all else being equal: what the summariser was fed as recorded, the answer as looked
up, and what stands in the place of a missing fact as looked up. A fact that can only be derived
counts as in the state. With ``--model`` each labelled state is read as in a run, one call for all
its facts, and the stage is judged with the reader's words too; ``--words`` keeps these in a file,
or takes them from it.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    CompactionStrategy,
    Model,
    get_model,
)
from inspect_ai.tool import ToolCall

from benchmarks.corruptions import (
    SECTIONS,
    SectionDropping,
    StaleKeeping,
    Truncating,
    holds_any,
)
from benchmarks.matcher import LABELS, lines_of
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.spec import Arguments, Compressor, CompressorSpec
from compression_eval.compressors.state import State
from compression_eval.facts.life import FactWords, Stage, StateFinding, follow_facts
from compression_eval.facts.records import FactRecord, Region, fact_records, track
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.conversation import declared_tools, message_id, message_text
from compression_eval.fixtures.cuts import resolve_cut
from compression_eval.fixtures.loading import FixtureWithBank, load_pairs
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import value_markers
from compression_eval.grading.state_reader import StateQuestion, read_state
from compression_eval.record import AskedProbe

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
        for finding in follow_facts(probe, state.facts, "", value_markers(pair.fixture.language)):
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
    compressor = Compressor("spoilt", "", Arguments, lambda *_: strategy, calls_model=True)
    plan = CompressionPlan(
        fixture=pair.fixture,
        tools=declared_tools(pair.fixture, cut),
        cuts=(cut,),
        spec=CompressorSpec(compressor, Arguments()),
        tracked=track(pair.fixture, cut, pair.bank.probes),
        markers=value_markers(pair.fixture.language),
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


Words = dict[tuple[str, str, str, str], StateFinding]
"""A reader's words by fixture, arm, probe and fact."""


@dataclass(frozen=True)
class LabelledState:
    """A state of a real run, with a careful reader's labels."""

    fixture: str
    arm: str
    asked: list[AskedProbe]
    context: list[ChatMessage]
    regions: list[Region]
    facts: "list[LabelledFact]"


@dataclass(frozen=True)
class LabelledFact:
    """A fact that was labelled."""

    probe: Probe
    place: int
    """Its place among the probe's facts."""
    label: StateFinding
    record: FactRecord
    answer: str

    def stage(self, word: StateFinding | None, language: Language) -> Stage:
        """Return the stage with a reader's word on the state, or by look-up alone.

        A label names one passage and not all, so that the two stages of a fact in state and answer
        are taken as one.
        """
        words = [FactWords()] * len(self.probe.expected_facts)
        words[self.place] = FactWords(state=word)
        found = follow_facts(
            self.probe, [self.record], self.answer, value_markers(language), words=words
        )
        stage = found[self.place].stage
        return "used" if stage == "verbatim" else stage


def labelled_states(folder: Path) -> list[LabelledState]:
    """Read the states of a real run that have labels.

    Args:
        folder: Holds ``states.jsonl``, ``answers.jsonl`` and ``fact_labels.jsonl``.
    """
    pairs = {pair.fixture.name: pair for pair in load_pairs("all", None)}
    labels: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in lines_of(folder / "fact_labels.jsonl"):
        labels.setdefault((row["fixture"], row["arm"]), []).append(row)
    answers = {
        (row["fixture"], row["arm"], row["probe_id"]): row
        for row in lines_of(folder / "answers.jsonl")
    }
    result = []
    for row in lines_of(folder / "states.jsonl"):
        key = (row["fixture"], row["arm"])
        if key not in labels:
            continue
        pair = pairs[row["fixture"]]
        context = [_message(number, message) for number, message in enumerate(row["messages"])]
        records = fact_records(
            track(pair.fixture, row["cut"], pair.bank.probes),
            cuts=[row["cut"]],
            fed=None,
            state=context,
            regions=row["regions"],
            readable=True,
            markers=value_markers(pair.fixture.language),
        )
        found = LabelledState(
            *key,
            asked=[AskedProbe.of(probe) for probe in pair.bank.probes],
            context=context,
            regions=row["regions"],
            facts=[],
        )
        by_name = {(record.probe_id, record.fact): record for record in records}
        for label in labels[key]:
            record = by_name.get((label["probe_id"], label["fact"]))
            answer = answers.get((*key, label["probe_id"]))
            if record is None or answer is None:
                continue  # the bank has changed since
            (probe,) = [probe for probe in pair.bank.probes if probe.id == record.probe_id]
            names = [fact.fact for fact in probe.expected_facts]
            fed = {fact["fact"]: fact["fed"] for fact in answer["facts"]["facts"]}
            found.facts.append(
                LabelledFact(
                    probe,
                    names.index(record.fact),
                    StateFinding(label["label"]),
                    record.model_copy(update={"fed": fed.get(record.fact), "in_history": True}),
                    answer["answer"] or "",
                )
            )
        result.append(found)
    return result


def _message(number: int, said: dict[str, Any]) -> ChatMessage:
    match said["role"]:
        case "system":
            return ChatMessageSystem(content=said["text"])
        case "user":
            return ChatMessageUser(content=said["text"])
        case "tool":
            return ChatMessageTool(content=said["text"])
        case _:
            calls = [
                ToolCall(id=f"{number}-{place}", **call)
                for place, call in enumerate(said["tool_calls"])
            ]
            return ChatMessageAssistant(content=said["text"], tool_calls=calls or None)


async def _read(states: list[LabelledState], model: Model) -> list[dict[str, Any]]:
    """Have a model read each state, and return its words as they are kept in a file."""
    rows = []
    for state in states:
        reading = await read_state(
            model,
            StateQuestion(
                state.context, state.regions, state.asked, "en", f"{state.fixture} {state.arm}"
            ),
        )
        failure = f"; failed: {reading.failure}" if reading.failure else ""
        print(f"read {state.fixture} {state.arm}: {reading.calls} calls{failure}", file=sys.stderr)
        for probe in state.asked:
            for forms, finding in zip(probe.facts, reading.findings[probe.probe_id], strict=True):
                where = {"fixture": state.fixture, "arm": state.arm, "probe_id": probe.probe_id}
                rows.append({**where, "fact": forms[0], **asdict(finding)})
    return rows


def _print_labels(states: list[LabelledState], words: Words) -> None:
    """Print how often the stage is right, with the label's word on the state as the right one."""
    facts = [(state, fact) for state in states for fact in state.facts]
    print(f"\nfacts of real summaries, by a careful reader's labels ({len(facts)}):")
    readings: dict[str, Words] = {"look-up": {}, **({"reader": words} if words else {})}
    for name, said in readings.items():
        right: Counter[str] = Counter()
        wrong, unknown = [], 0
        for state, fact in facts:
            place = (state.fixture, state.arm, fact.probe.id, fact.record.fact)
            word = said.get(place)
            unknown += bool(said) and (word is None or word.word is None)
            given, truth = fact.stage(word, "en"), fact.stage(fact.label, "en")
            kinds = (f"{fact.label.word}", state.arm, "all")
            right.update(kinds if given == truth else ())
            if given != truth:
                shown = word.word if word else fact.record.in_state
                wrong.append(
                    f"{' '.join(place)!r}: {given}, not {truth} ({fact.label.word}; {shown})"
                )
        total = Counter(
            kind for state, fact in facts for kind in (f"{fact.label.word}", state.arm, "all")
        )
        print(f"\nstage right, {name}" + (f" ({unknown} without a word)" if said else "") + ":")
        for kind, count in total.items():
            print(f"  {kind:20} {right[kind]:4} of {count:4} ({right[kind] / count:.1%})")
        print("".join(f"    {line}\n" for line in wrong), end="")
    if words:
        pairs = Counter(
            (f"{fact.label.word}", f"{found.word}")
            for state, fact in facts
            if (found := words.get((state.fixture, state.arm, fact.probe.id, fact.record.fact)))
        )
        print("\nlabel and reader's word:")
        for (label, given_word), count in sorted(pairs.items()):
            print(f"  {label:10} {given_word:10} {count:4}")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=Path, default=LABELS, help="Labels of real summaries.")
    parser.add_argument("--labels-only", action="store_true", help="Leave the corruptions out.")
    parser.add_argument("--model", help="Have this Inspect model read the labelled states.")
    parser.add_argument("--words", type=Path, help="Where a reader's words are kept, or go.")
    given = parser.parse_args()
    if not given.labels_only:
        _print(anyio.run(attributions))
    if not given.labels.is_dir():
        print(f"\nno labels of real summaries: {given.labels} is no folder (see --labels)")
        return
    states = labelled_states(given.labels)
    rows: list[dict[str, Any]] = []
    if given.model:
        rows = anyio.run(_read, states, get_model(given.model))
        if given.words:
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            given.words.write_text(text, encoding="utf-8")
    elif given.words:
        rows = list(lines_of(given.words))
    words = {
        (row["fixture"], row["arm"], row["probe_id"], row["fact"]): StateFinding(
            row["word"], tuple(row["quotes"]), tuple(row["regions"]), row["problem"]
        )
        for row in rows
    }
    _print_labels(states, words)


if __name__ == "__main__":
    _main()
