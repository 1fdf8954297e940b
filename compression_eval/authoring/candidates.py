"""Probes on their way into a bank: what each has to hold to, and which of them are taken."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import product
from typing import Literal, get_args

from compression_eval.authoring.asking import guessable
from compression_eval.authoring.history import History, Third
from compression_eval.errors import shorten
from compression_eval.facts.records import variants
from compression_eval.fixtures.banks import ExpectedFact, Probe, ProbeType
from compression_eval.text.lookup import Text, normalise, other_paths, paths_of

TYPES: tuple[ProbeType, ...] = get_args(ProbeType)

BY_MODEL = "model "
"""Begins the origin of a probe that a model wrote; its name follows."""

_MAX_QUESTION = 700
_MAX_FACT = 300
_MAX_FACTS = 8
_ALIKE = 0.85
IN_WORKSPACE = (
    "one look at the workspace would tell, as it does for a quarter of the probes already"
)
_SHORT_NUMBER = re.compile(r"[^\w%]*\d{1,2}[^\w%]*")
_TELLING = re.compile(r"[\d_/\\@#$&*+=<>|~]|\w(?:[.:]\w|[(\[])|(?<!\S)[.-]+\w|\w\S*?[A-Z]")
_WORD = re.compile(r"\w+")
_AROUND = 60
_SPECIFIC = re.compile(r"[\w./:#-]*(?:[\d_/]|\w\.\w)[\w./:#-]*")
_QUOTED = re.compile(r"[`“‘「『]([^`”’」』]+)")
_SCRIPTS = {"zh": re.compile("[\u4e00-\u9fff]"), "ja": re.compile("[\u3040-\u30ff]")}


@dataclass(frozen=True)
class Candidate:
    """A probe that may be taken, and what decides which are."""

    probe: Probe
    template: str
    """What it is made after; few of one kind are taken."""
    third: Third
    """The third of the compressed part that it is about."""
    need: str = ""
    """Why whoever goes on needs the answer, as the model that wrote it has it."""
    workspace: bool = False
    """Whether one look at files or git would tell, by the word of a reader."""

    @classmethod
    def of(cls, probe: Probe, history: History, template: str) -> "Candidate":
        """Return a probe as a candidate.

        It is about where those facts first stand that the kept parts do not give; the middle one
        of several.
        """
        facts = probe.expected_facts
        needed = [item for item in facts if not history.kept(item.forms)] or facts
        places = sorted(min(item.evidence) for item in needed if item.evidence)
        third = history.third(places[len(places) // 2] if places else history.start)
        return cls(probe, template, third)


@dataclass(frozen=True)
class Dropped:
    """A candidate that was not fit, and why."""

    type: ProbeType | Literal[""]
    """Empty where it cannot be read."""
    origin: str
    question: str
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, probe: Probe, reasons: Sequence[str]) -> "Dropped":
        """Return a probe as one that was dropped."""
        return cls(probe.type, probe.origin, probe.question, tuple(reasons))


@dataclass
class Harvest:
    """Candidates and what was dropped on the way to them."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What else there is to say."""

    def add(self, other: "Harvest") -> None:
        """Take over what another has."""
        self.notes.extend(other.notes)
        self.candidates.extend(other.candidates)
        self.dropped.extend(other.dropped)


def tells_by_spelling(form: str) -> bool:
    """Return whether a text is more than plain words, so that hardly any other answer has it.

    It is if it has a digit, a sign as code has it (``a.b``, ``--flag``, ``x_y``), or a capital that
    is not the first letter of a word.
    """
    return _TELLING.search(form) is not None


def faults(probe: Probe, history: History) -> list[str]:
    """Return what is wrong with a probe, each in a sentence; nothing if it can be taken.

    Args:
        probe: The probe, with evidence for each fact.
        history: The history before its cut.
    """
    facts = probe.expected_facts
    found = list(_question_faults(probe, history))
    for number, item in enumerate(facts):
        found.extend(f"facts[{number}]: {fault}" for fault in _fact_faults(item, probe, history))
    if len(guessed := list(_guessed(probe))) * 2 > len(facts):
        found.extend(guessed)
    answer = Text(probe.reference_answer)
    if not probe.reference_answer.strip():
        found.append("reference_answer: there is none")
    else:
        found.extend(
            f"reference_answer: does not contain {shorten(item.fact)}"
            for item in facts
            if not item.derived and not answer.has_any(item.forms)
        )
    kept = [_kept(item, history) for item in facts]
    if all(kept):
        found.append(
            f"every fact also stands in what is kept verbatim (messages {history.tail_start} "
            f"to {history.cut - 1}, or the system prompt): {', '.join(filter(None, kept))}"
        )
    return found


def _guessed(probe: Probe) -> Iterator[str]:
    """Yield, for each fact that could be guessed, by which form and from what."""
    question = Text(probe.question)
    for item in _looked_up(probe):
        for form in item.forms:
            if guessable([form], probe.question) and not question.spells(form):
                source = "convention" if guessable([form], "") else "words of the question"
                yield f"{shorten(form)} could be guessed, from {source}"
                break


def _kept(item: ExpectedFact, history: History) -> str | None:
    """Return which form of a fact stands where in what is kept verbatim; None if none does."""
    if item.derived:
        kept = [index for index in item.evidence if index in history.verbatim]
        return f"messages {kept}" if kept == item.evidence else None
    for index in history.stating(item.forms, history.verbatim):
        if form := _stands_in(history.texts[index], item):
            return f"{shorten(form)} in message {index}"
    return None


def _looked_up(probe: Probe) -> list[ExpectedFact]:
    """Return the facts of a probe that are looked up in texts."""
    return [item for item in probe.expected_facts if not item.derived]


def _stands_in(text: Text, item: ExpectedFact) -> str | None:
    """Return the form of a fact that a text has; None if it has none."""
    return next(filter(text.spells, item.forms), None) if text.has_any(item.forms) else None


def _question_faults(probe: Probe, history: History) -> Iterator[str]:
    question = probe.question
    if not question.strip() or len(question) > _MAX_QUESTION:
        yield f"question: must have 1 to {_MAX_QUESTION} characters"
    if not question.replace("\n", "").isprintable():
        yield "question: has control characters"
    script = _SCRIPTS.get(history.language)
    if script and not script.search(question):
        yield f"question: must be written in the language of the conversation ({history.language})"
    if len(probe.expected_facts) > _MAX_FACTS:
        yield f"facts: {len(probe.expected_facts)} of them; at most {_MAX_FACTS}"
    text = Text(question)
    for number, item in enumerate(probe.expected_facts):
        for form in filter(text.spells, () if item.derived else item.forms):
            place = "fact" if form == item.fact else "any_of"
            yield (
                f"question: gives away {shorten(form)} (facts[{number}].{place}): an answer that "
                "repeats the question would be right"
            )


def _fact_faults(item: ExpectedFact, probe: Probe, history: History) -> Iterator[str]:
    unusable = False
    for form in item.forms:
        bare = normalise(form)
        if not bare or len(form) > _MAX_FACT or not form.isprintable():
            yield f"{shorten(form)} cannot be looked up: give 1 to {_MAX_FACT} plain characters"
            unusable = True
        elif _SHORT_NUMBER.fullmatch(bare) or (len(bare) < 2 and bare.isascii()):
            yield f"{shorten(form)} is too short to be found safely: add its name or unit"
            unusable = True
    if unusable:
        return
    stating = item.evidence if item.derived else history.stated_in(item.forms, item.evidence)
    silent = [index for index in item.evidence if index not in stating]
    if outside := [index for index in item.evidence if not 0 <= index < history.cut]:
        yield f"evidence {outside} does not lie before the cut at {history.cut}"
    elif silent or not item.evidence:
        stated = history.stated_in(item.forms)
        hint = f"it stands in {stated[:8]}" if stated else "it stands nowhere before the cut"
        where = f"is not in its evidence messages {silent}" if silent else "has no evidence"
        passages = "".join(
            f"; message {index} says {near!r}"
            for index in silent[:2]
            if (near := _nearest(item.fact, history.texts[index].source))
        )
        yield f"{shorten(item.fact)} {where}; {hint}{passages}"
    for value in item.superseded:
        yield from _superseded_faults(value, item, probe, history)
    if item.derived:
        return
    for form in item.forms:  # a base name that counts for a path may be that of another file
        name = normalise(form)
        paths = paths_of(name, [normalise(other) for other in item.forms])
        if paths and any(other_paths(name, paths, text.normalised) for text in history.texts):
            yield f"{shorten(form)} is also the name of another file"


def _nearest(form: str, text: str) -> str:
    """Return the passage of a text that has the most words of a form; empty if it has none."""
    wanted = set(_WORD.findall(form.lower()))
    found = [(m.start(), m[0]) for m in _WORD.finditer(text.lower()) if m[0] in wanted]
    reach = 2 * len(form)

    def words_from(place: int) -> int:
        start = found[place][0]
        near = found[place : place + 2 * len(wanted)]
        return len({word for at, word in near if at <= start + reach})

    if not found:
        return ""
    start = found[max(range(len(found)), key=words_from)][0]
    return text[max(0, start - _AROUND) : start + reach + _AROUND]


def _superseded_faults(
    value: str, item: ExpectedFact, probe: Probe, history: History
) -> Iterator[str]:
    said = f"the superseded {shorten(value)}"
    if any(Text(value).spells(form) or Text(form).spells(value) for form in item.forms):
        yield f"{said} cannot be told from the current value"
        return
    stated = next(history.stating([value]), None)
    if stated is None:
        yield f"{said} is nowhere before the cut"
    elif stated > max(item.evidence, default=-1):
        yield f"{said} first stands after the value that replaced it"
    if probe.reference_answer and Text(probe.reference_answer).spells(value):
        yield f"the reference answer contains {said}"


def warnings(probe: Probe, history: History) -> list[str]:
    """Return which later messages give a fact another value; whether it holds, a reader tells."""
    found: list[str] = []
    for item in _looked_up(probe):
        names = [re.split(r"[^\w.-]", normalise(form))[0] for form in item.forms]
        for index in range(max(item.evidence, default=history.cut) + 1, history.cut):
            text = history.texts[index].normalised
            if not any(name and name in text for name in names):
                continue
            if (other := next(iter(variants(item.forms, text)), None)) is not None:
                found.append(f"message {index} says {shorten(other)} after {shorten(item.fact)}")
                break
    return found


def duplicate(probe: Probe, taken: Sequence[Probe]) -> str | None:
    """Return which probe asks the same already; None if none does.

    Two ask the same if they expect the same facts, if all of several facts are asked for already,
    or if the questions are nearly equal and name the same things. Where a model wrote one of them,
    no fact may be in both, nor a fact of one in the question of the other.
    """

    def facts(asked: Probe) -> set[str]:
        return {normalise(item.fact) for item in asked.expected_facts}

    own, question = facts(probe), normalise(probe.question)
    for other in taken:
        said, asked = shorten(other.question), normalise(other.question)
        if own == facts(other) or (len(own) > 1 and own <= facts(other)):
            shown = ", ".join(shorten(item.fact) for item in probe.expected_facts)
            return f"asks for {shown}, the facts of another probe: {said}"
        in_both = {
            "its question gives away {} of another probe": _gives(probe, other),
            "the question of another probe gives away its {}": _gives(other, probe),
        }
        by_model = BY_MODEL in (each.origin[: len(BY_MODEL)] for each in (probe, other))
        if by_model:
            in_both["another probe asks for {} as well"] = _share_a_fact(probe, other)
        told = [text.format(shorten(form)) for text, form in in_both.items() if form]
        if told and (by_model or len(told) == len(in_both)):
            return f"{', and '.join(told)}: {said}"
        named = set(_SPECIFIC.findall(question)) == set(_SPECIFIC.findall(asked))
        named &= set(_QUOTED.findall(probe.question)) == set(_QUOTED.findall(other.question))
        if named and SequenceMatcher(None, question, asked, autojunk=False).ratio() >= _ALIKE:
            return f"nearly the question of another probe: {said}"
    return None


def _gives(asked: Probe, other: Probe) -> str | None:
    """Return the form of a fact of a probe that the question of another states."""
    question = Text(asked.question)
    return next(filter(None, (_stands_in(question, item) for item in _looked_up(other))), None)


def _share_a_fact(probe: Probe, other: Probe) -> str | None:
    """Return a form that facts of two probes have in common, whole or as a part of one."""
    pairs = product(_looked_up(probe), _looked_up(other))
    shared = (
        _stands_in(Text(item.fact), taken) or _stands_in(Text(taken.fact), item)
        for item, taken in pairs
    )
    return next(filter(None, shared), None)


def choose(candidates: Sequence[Candidate], per_type: int) -> tuple[list[Candidate], list[Dropped]]:
    """Choose probes for one cut.

    One of each type is taken in turn. Of those that are left, the one wins that the workspace does
    not tell; then whose third of the history, then whose template, has been taken least for its
    type; then whose third has been taken least at all; then the one that came first. What a type
    comes short of, others make up for. At most a quarter are such as the workspace would tell.

    Args:
        candidates: Fit ones, the better first.
        per_type: How many of each type.

    Returns:
        The chosen, by type; and those dropped since they ask what another asks already, or are
        too many of those that the workspace tells.
    """
    left = {kind: [c for c in candidates if c.probe.type == kind] for kind in TYPES}
    chosen: list[Candidate] = []
    dropped: list[Dropped] = []

    def take(kind: ProbeType) -> bool:
        """Take the best of a type, dropping duplicates that are met on the way."""
        same = [item for item in chosen if item.probe.type == kind]
        thirds, overall = Counter(c.third for c in same), Counter(c.third for c in chosen)
        templates = Counter(c.template for c in same)
        while left[kind]:
            best = min(
                left[kind],
                key=lambda c: (
                    c.workspace,
                    thirds[c.third],
                    templates[c.template],
                    overall[c.third],
                ),
            )
            left[kind].remove(best)
            reason = duplicate(best.probe, [item.probe for item in chosen])
            if reason is None:
                chosen.append(best)
                return True
            dropped.append(Dropped.of(best.probe, [reason]))
        return False

    for _ in range(per_type):
        # The scarce first: a twin must not cost a type the only one that it has.
        for kind in sorted(TYPES, key=lambda kind: len(left[kind])):
            take(kind)
    while len(chosen) < per_type * len(TYPES):
        counts = Counter(item.probe.type for item in chosen)
        if not any(take(kind) for kind in sorted(TYPES, key=lambda kind: counts[kind])):
            break
    # There may be fewer than were wanted.
    told = [item for item in chosen if item.workspace]
    for item in told[(len(chosen) - len(told)) // 3 :]:
        chosen.remove(item)
        dropped.append(Dropped.of(item.probe, [IN_WORKSPACE]))
    chosen.sort(key=lambda item: TYPES.index(item.probe.type))
    return chosen, dropped
