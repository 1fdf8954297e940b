"""What makes a probe a poor measure: the rules for new probes, and ``probes check`` for banks.

`faults` decides whether a generated probe can be taken; `duplicate` whether another asks the same.
``probes check`` adds to what `fixtures.checking` finds in a bank: facts that every arm keeps, or
that overlap, thirds of the history that no fact is from, and verdicts that are out of date.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import get_args

import anyio
import click

from compression_eval.authoring.history import THIRDS, History, histories
from compression_eval.errors import DataError, PassedOverError, shorten
from compression_eval.facts.records import variants
from compression_eval.fixtures.banks import (
    ExpectedFact,
    Probe,
    ProbeType,
    Qualification,
    Verdict,
    valid_qualification,
    verdict,
)
from compression_eval.fixtures.checking import (
    Finding,
    bank_findings,
    counted,
    is_shipped,
    unknown_fields,
)
from compression_eval.fixtures.cuts import TAIL_TOKENS, resolve_cut
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import SHIPPED
from compression_eval.fixtures.loading import FixtureWithBank, find_sources
from compression_eval.terminal import examples, go_on, say_passed_over
from compression_eval.text.lookup import Text, normalise, other_paths, paths_of

BY_MODEL = "model "
"""Begins the origin of a probe that a model wrote; its name follows."""

_MAX_QUESTION = 700
_MAX_FACT = 300
_MAX_FACTS = 8
_ALIKE = 0.85
_SHORT_NUMBER = re.compile(r"[^\w%]*\d{1,2}[^\w%]*")
_TELLING = re.compile(r"[\d_/\\@#$&*+=<>|~]|\w(?:[.:]\w|[(\[])|(?<!\S)[.-]+\w|\w\S*?[A-Z]")
_WORD = re.compile(r"\w+")
_AROUND = 60
_SPECIFIC = re.compile(r"[\w./:#-]*(?:[\d_/]|\w\.\w)[\w./:#-]*")
_QUOTED = re.compile(r"[`“‘「『]([^`”’」』]+)")
_SCRIPTS = {"zh": re.compile("[\u4e00-\u9fff]"), "ja": re.compile("[\u3040-\u30ff]")}
_MIN_TELLING = 6
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+(?:\.\d+)*|[^\W\d_A-Za-z]")
_GENERIC = frozenset([
    "test", "tests", "spec", "specs", "index", "main", "init", "readme", "setup", "config",
    "conf", "utils", "util", "helper", "helpers", "type", "types", "id", "name", "value",
    "values", "data", "file", "files", "item", "items", "package", "json", "yaml", "yml",
    "toml", "go", "mod", "make", "makefile", "dockerfile", "license", "changelog", "src",
    "lib", "py", "js", "ts", "tsx", "jsx", "md", "txt", "rs", "java", "sh", "html", "css",
    "the", "of", "in", "is", "to", "a", "an", "new", "get", "set", "run", "do",
])  # fmt: skip
"""Pieces of names that follow from convention."""

_MIN_PROBES_FOR_THIRDS = 4
"""Below this a bank is not expected to reach into every third."""


def tells(name: str) -> bool:
    """Return whether a name of the code says something: two words at least, one not generic."""
    pieces = _pieces(name)
    named = len(name) >= _MIN_TELLING and not name[0].isdigit()
    return named and len(pieces) > 1 and not _GENERIC.issuperset(pieces)


def guessable(forms: Iterable[str], question: str) -> bool:
    """Return whether a form follows from convention, or from the words of a question.

    Of a path the base name counts; ``main.py`` and ``tests/test_x.py`` beside ``x`` say nothing.
    """
    given = set(_pieces(question)) | _GENERIC
    for form in forms:
        own = _pieces(form if " " in form else posixpath.basename(form.rstrip("/")))
        if own and all(piece in given or piece.removesuffix("s") in given for piece in own):
            return True
    return False


def _pieces(name: str) -> list[str]:
    """Return the words and numbers that a name is made of, in lower case."""
    return [piece.lower() for piece in _PIECE.findall(name)]


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


@dataclass(frozen=True)
class Case:
    """A probe with all that the checks look at."""

    probe: Probe
    history: History
    valid: Qualification | None
    """Its verdict, if that is about this fixture, probe and cut."""

    @property
    def facts(self) -> Iterator[tuple[str, ExpectedFact]]:
        """Each fact behind its place."""
        for position, fact in enumerate(self.probe.expected_facts):
            yield f".expected_facts[{position}]", fact

    @cached_property
    def kept(self) -> bool:
        """Whether all facts stand in what is kept verbatim."""
        facts = self.probe.expected_facts
        return bool(facts) and all(self.history.kept(fact.forms) for fact in facts)

    @cached_property
    def in_system(self) -> bool:
        """Whether all facts stand in the system prompt."""
        facts, head = self.probe.expected_facts, range(self.history.start)
        return bool(facts) and all(self.history.stated_in(f.forms, head) for f in facts)


Warnings = Iterator[tuple[str, str]]
"""Places in a probe, such as ``.type``, each with what is wrong there."""


def answered_by_what_is_kept(case: Case) -> Warnings:
    """Does every arm keep the answer? Then no compression can lose it."""
    history = case.history
    if case.in_system:
        yield "", "the system prompt alone holds every fact"
    elif case.kept:
        kept = f"messages {history.tail_start} to {history.cut - 1}"
        yield "", f"every fact also stands in the kept tail ({kept}): compression cannot lose it"


def alternatives(case: Case) -> Warnings:
    """Is a fact within another? No good answer gives both, yet all are required."""
    for (first, one), (second, other) in combinations(enumerate(case.probe.expected_facts), 2):
        if Text(one.fact).spells(other.fact) or Text(other.fact).spells(one.fact):
            yield (
                f".expected_facts[{first}] and [{second}]",
                f"{shorten(one.fact)} and {shorten(other.fact)} overlap: whoever gives the longer "
                "has given the shorter; spellings of one thing belong into any_of",
            )


def verdict_against_it(case: Case) -> Warnings:
    """Is the verdict of ``probes qualify`` out of date, or is it that the probe does not count?"""
    found = case.probe.qualification
    if found is None:
        return
    text = ""
    if case.valid is None:
        text = "the verdict is out of date: fixture, probe or cut have changed; qualify it again"
    elif not found.full.passes:
        text = f"not qualified: the full history passes {found.full.passed} of {found.full.runs}"
    elif not found.qualified:
        text = f"not qualified: nothing at all passes {found.none.passed} of {found.none.runs}"
    if text:
        yield ".qualification", text


CHECKS: tuple[Callable[[Case], Warnings], ...] = (
    answered_by_what_is_kept,
    alternatives,
    verdict_against_it,
)


@dataclass(frozen=True)
class BankReport:
    """What a check of one bank found."""

    findings: list[Finding]
    coverage: list[str]
    """What its probes are spread over, in lines for people."""


def check_bank(pair: FixtureWithBank, tail_tokens: int) -> BankReport:
    """Return what is wrong with a bank, and what it covers.

    A probe without a cut of its own is looked at where the conversation ends.

    Args:
        pair: Loaded, and so structurally sound.
        tail_tokens: Budget of the tail that is taken to be kept verbatim.
    """
    fixture, bank, path = pair.fixture, pair.bank, pair.bank_origin
    findings = list(bank_findings(bank, fixture, path, shipped=is_shipped(pair.fixture_path)))
    findings.extend(unknown_fields(bank, path))
    end = resolve_cut(fixture, "end")
    cuts = sorted({probe.cut or end for probe in bank.probes})
    at = dict(zip(cuts, anyio.run(histories, fixture, cuts, tail_tokens), strict=True))
    fixture_digest = digest(fixture)
    cases = []
    for position, probe in enumerate(bank.probes):
        # A probe without a cut of its own may have been put at any; its verdict says at which.
        cut = probe.cut or (probe.qualification.cut if probe.qualification else end)
        valid = valid_qualification(probe, fixture_digest, cut)
        case = Case(probe, at[probe.cut or end], valid)
        cases.append(case)
        where = f"{path}: probes[{position}] ({shorten(probe.id)})"
        for check in CHECKS:
            findings.extend(Finding("warning", where + place, text) for place, text in check(case))
    facts = ((fact, case.history) for case in cases for _, fact in case.facts)
    thirds = Counter(_third(*each) for each in facts if each[0].evidence or not each[0].derived)
    for third in THIRDS if len(cases) >= _MIN_PROBES_FOR_THIRDS else ():
        if not thirds[third]:
            text = f"no fact is first said in the {third} third"
            findings.append(Finding("warning", f"{path}: probes", text))
    return BankReport(findings, list(_coverage(cases, thirds)))


def _third(fact: ExpectedFact, history: History) -> str:
    """Return where in the compressed part a fact is first said, or ``kept``."""
    evidence = [index for index in fact.evidence if index < history.cut]
    first = min(evidence or history.stated_in(fact.forms), default=history.cut)
    return history.third(first) if first in history.compressed else "kept"


def _coverage(cases: Sequence[Case], thirds: Counter[str]) -> Iterator[str]:
    def counts(found: Counter[str], names: Sequence[str]) -> str:
        return ", ".join(f"{name} {found[name]}" for name in names)

    types = Counter[str](case.probe.type for case in cases)
    cuts = Counter(case.history.cut for case in cases)
    verdicts = Counter[str](verdict(case.valid) for case in cases)
    kept = sum(case.kept for case in cases)
    yield f"{len(cases)} probes: " + counts(types, get_args(ProbeType))
    yield "facts first said: " + counts(thirds, (*THIRDS, "kept"))
    yield "at cut: " + ", ".join(f"{cut} {number}" for cut, number in sorted(cuts.items()))
    yield (
        f"answered by the kept tail: {kept} ({kept / len(cases):.0%}), "
        f"by the system prompt alone: {sum(case.in_system for case in cases)}"
    )
    if set(verdicts) - {"unknown"}:
        yield "verdicts: " + counts(verdicts, get_args(Verdict))


@click.command(
    "check",
    epilog=examples(
        "probes check",
        "probes check cron-config",
        "probes check my/fixtures --probes my/banks --tail-tokens 8000",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--probes", type=click.Path(path_type=Path), help="Bank, or folder with banks.")
@click.option(
    "--tail-tokens",
    type=click.IntRange(min=0),
    default=TAIL_TOKENS,
    show_default=True,
    help="Tokens at the end that are taken to be kept verbatim.",
)
def check_command(paths: tuple[str, ...], probes: Path | None, tail_tokens: int) -> None:
    """Check probe banks; without PATH, those of all fixtures that come with this project.

    PATH is a fixture: a name, a file, a folder, a pattern, a Parquet file or an address. Said are
    facts without evidence, questions that give a fact away, facts that overlap, probes that the
    kept tail answers, verdicts that are out of date, and what the bank covers. Fixtures without a
    bank are passed over. Exits with 1 if there are errors, or no bank at all; warnings alone do not
    fail.
    """
    sources = find_sources(list(paths) or SHIPPED + "all", probes)
    findings: list[Finding] = []
    without: list[PassedOverError] = []
    for number, source in enumerate(sources, 1):
        if len(sources) > 1:
            name = source.path.name if source.path else source.name
            click.echo(f"{number} of {len(sources)}: {name}", err=True)
        try:
            report = check_bank(source.read(), tail_tokens)
        except PassedOverError as error:
            without.append(error)
            continue
        except DataError as error:
            report = BankReport(
                [Finding("error", "", line) for line in str(error).splitlines()], []
            )
        for finding in report.findings:
            click.echo(str(finding))
        for line in report.coverage:
            click.echo(f"{source.stem}: {line}")
        findings.extend(report.findings)
    say_passed_over(without, sources[len(without) :])
    click.echo(counted(findings, len(sources) - len(without)))
    if any(finding.severity == "error" for finding in findings):
        raise click.exceptions.Exit(1)
    if len(paths) == 1:
        given = ("-T", f"fixtures={paths[0]}", *(("-T", f"probes={probes}") if probes else ()))
        go_on(("inspect", "eval", "compression_eval/compression", *given))
