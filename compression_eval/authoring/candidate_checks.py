"""What a generated probe has to hold to before it is taken into a bank."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from compression_eval.authoring.history import History
from compression_eval.authoring.identifiers import guessable
from compression_eval.compressors.distortion import variants
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.fixtures.base_names import others, paths_of
from compression_eval.fixtures.errors import shorten
from compression_eval.fixtures.matching import Text, normalise

LONGEST_QUESTION = 700
_LONGEST_FACT = 300
_MOST_FACTS = 8
_ALIKE = 0.85
_SHORT_NUMBER = re.compile(r"\W*\d{1,2}\W*")
_SPECIFIC = re.compile(r"[\w./:#-]*(?:[\d_/]|\w\.\w)[\w./:#-]*")
_SCRIPTS = {"zh": re.compile("[\u4e00-\u9fff]"), "ja": re.compile("[\u3040-\u30ff]")}


def faults(probe: Probe, history: History) -> list[str]:
    """Return what is wrong with a probe, each in a sentence; nothing if it can be taken.

    Args:
        probe: The probe, with evidence for each fact.
        history: The history before its cut.
    """
    found = list(_question_faults(probe, history))
    for number, item in enumerate(probe.expected_facts):
        found.extend(f"facts[{number}]: {fault}" for fault in _fact_faults(item, probe, history))
    guessed = [item.fact for item in probe.expected_facts if guessable(item.forms, probe.question)]
    if not found and 2 * len(guessed) > len(probe.expected_facts):
        found.append(f"{shorten(guessed[0])} could be guessed, from convention or the question")
    found.extend(_answer_faults(probe))
    if not found and all(history.kept(item.forms) for item in probe.expected_facts):
        found.append(
            f"every fact also stands in what is kept verbatim (messages {history.tail_start} "
            f"to {history.cut - 1}, or the system prompt)"
        )
    return found


def warnings(probe: Probe, history: History) -> list[str]:
    """Return what may be wrong, but only a reader can tell: a later message with another value."""
    found: list[str] = []
    for item in probe.expected_facts:
        names = [re.split(r"[^\w.-]", normalise(form))[0] for form in item.forms]
        for index in range(max(item.evidence, default=history.cut) + 1, history.cut):
            text = history.texts[index].normalised
            if any(name and name in text for name in names) and (other := _other(item, text)):
                found.append(f"message {index} says {shorten(other)} after {shorten(item.fact)}")
                break
    return found


def duplicate(probe: Probe, taken: Sequence[Probe]) -> str | None:
    """Return which probe asks the same already; None if none does.

    Two ask the same if they expect the same facts, if all of several facts are asked for already,
    or if the questions are nearly equal and name the same things.
    """
    facts = _facts(probe)
    for other in taken:
        theirs = _facts(other)
        if facts == theirs or (len(facts) > 1 and facts <= theirs):
            return f"asks for the facts of another probe: {shorten(other.question)}"
        if _gives(probe, other) and _gives(other, probe):
            return (
                f"its question and that of another give each other away: {shorten(other.question)}"
            )
        if _alike(probe.question, other.question):
            return f"nearly the question of another probe: {shorten(other.question)}"
    return None


def _facts(probe: Probe) -> frozenset[str]:
    return frozenset(normalise(item.fact) for item in probe.expected_facts)


def _gives(probe: Probe, other: Probe) -> bool:
    question = Text(probe.question)
    return any(question.has(form) for item in other.expected_facts for form in item.forms)


def _alike(first: str, second: str) -> bool:
    one, two = normalise(first), normalise(second)
    if set(_SPECIFIC.findall(one)) != set(_SPECIFIC.findall(two)):
        return False
    quoted = [set(re.findall(r"[`“‘「『]([^`”’」』]+)", text)) for text in (first, second)]
    if quoted[0] != quoted[1]:
        return False
    return SequenceMatcher(None, one, two, autojunk=False).ratio() >= _ALIKE


def _other(item: ExpectedFact, text: str) -> str | None:
    return next(iter(variants(item.forms, text)), None)


def _question_faults(probe: Probe, history: History) -> Iterator[str]:
    question = probe.question
    if not question.strip() or len(question) > LONGEST_QUESTION:
        yield f"question: must have 1 to {LONGEST_QUESTION} characters"
    if any(not character.isprintable() for character in question if character != "\n"):
        yield "question: has control characters"
    script = _SCRIPTS.get(history.language)
    if script and not script.search(question):
        yield f"question: must be written in the language of the conversation ({history.language})"
    if len(probe.expected_facts) > _MOST_FACTS:
        yield f"facts: {len(probe.expected_facts)} of them; at most {_MOST_FACTS}"
    prepared = Text(question)
    for item in probe.expected_facts:
        for form in item.forms:
            if prepared.has(form):
                yield f"question: gives away {shorten(form)}"


def _fact_faults(item: ExpectedFact, probe: Probe, history: History) -> Iterator[str]:
    unusable = list(_form_faults(item))
    if unusable:
        yield from unusable
        return
    yield from _evidence_faults(item, history)
    yield from _superseded_faults(item, probe, history)
    yield from _base_name_faults(item, history)


def _form_faults(item: ExpectedFact) -> Iterator[str]:
    for form in item.forms:
        bare = normalise(form)
        if not bare or len(form) > _LONGEST_FACT or not form.isprintable():
            yield f"{shorten(form)} cannot be looked up: give 1 to {_LONGEST_FACT} plain characters"
        elif _SHORT_NUMBER.fullmatch(bare) or (len(bare) < 2 and bare.isascii()):
            yield f"{shorten(form)} is too short to be found safely: add its name or unit"


def _evidence_faults(item: ExpectedFact, history: History) -> Iterator[str]:
    outside = [i for i in item.evidence if not 0 <= i < history.cut]
    if outside:
        yield f"evidence {outside} does not lie before the cut at {history.cut}"
        return
    silent = [i for i in item.evidence if not history.texts[i].has_any(item.forms)]
    if silent or not item.evidence:
        stated = history.stated_in(item.forms)
        hint = f"it stands in {stated[:8]}" if stated else "it stands nowhere before the cut"
        where = f"is not in its evidence messages {silent}" if silent else "has no evidence"
        yield f"{shorten(item.fact)} {where}; {hint}"


def _superseded_faults(item: ExpectedFact, probe: Probe, history: History) -> Iterator[str]:
    last = max(item.evidence, default=-1)
    for value in item.superseded:
        if any(Text(value).spells(form) or Text(form).spells(value) for form in item.forms):
            yield f"the superseded {shorten(value)} cannot be told from the current value"
            continue
        stated = history.stated_in([value])
        if not stated:
            yield f"the superseded {shorten(value)} is nowhere before the cut"
        elif stated[0] > last:
            yield f"the superseded {shorten(value)} first stands after the value that replaced it"
        if probe.reference_answer and Text(probe.reference_answer).spells(value):
            yield f"the reference answer contains the superseded {shorten(value)}"


def _base_name_faults(item: ExpectedFact, history: History) -> Iterator[str]:
    """Say where a base name that counts for a path is also that of another file."""
    for form in item.forms:
        name = normalise(form)
        paths = paths_of(name, [normalise(other) for other in item.forms])
        if paths and any(others(name, paths, text.normalised) for text in history.texts):
            yield f"{shorten(form)} is also the name of another file"


def _answer_faults(probe: Probe) -> Iterator[str]:
    if not probe.reference_answer.strip():
        yield "reference_answer: there is none"
        return
    answer = Text(probe.reference_answer)
    for item in probe.expected_facts:
        if not answer.has_any(item.forms):
            yield f"reference_answer: does not contain {shorten(item.fact)}"
