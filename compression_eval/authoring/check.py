"""``probes check``: what makes a probe a poor measure, beyond what `fixtures.checking` finds.

Every check is a function in `CHECKS`: its docstring says what it asks and why, and it yields the
place in the probe and the reason of each warning. Wording that checks go by is data, in
``check_words.yaml``; the shapes that agents mask as secrets stand in ``redactors.yaml``.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args

import anyio
import click
import yaml

from compression_eval.authoring.history import THIRDS, History, histories
from compression_eval.errors import DataError, PassedOverError, shorten
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
from compression_eval.fixtures.models import Fixture, Language
from compression_eval.terminal import examples, go_on, say_passed_over
from compression_eval.text.lookup import Text, normalise

WordKind = Literal["artifact", "continuation", "decision", "several", "or", "numbers"]

_MIN_PROBES_FOR_THIRDS = 4
"""Below this a bank is not expected to reach into every third."""
_MASK = "***"
_NOT_A_LETTER = re.compile(r"[\W_]+")
_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[^\W\d]*|%)")
_ARTIFACT_SHAPE = re.compile(
    r"[\w.-]+/[\w.*/-]+"  # a path
    r"|\w\.[a-zA-Z]\w{0,4}\b"  # a file, or an attribute
    r"|\w_\w|[a-z][A-Z]|\w\(\)"  # a name in code
    r"|#\d+|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b"  # a pull request, a commit
)


@dataclass(frozen=True)
class ScrubbedCopy:
    """What the scrubber leaves of a conversation."""

    profile: str
    texts: Mapping[int, Text | None]
    """By index in the conversation: the new text, None if it is unchanged; no entry if removed."""

    def keeps(self, fact: ExpectedFact, index: int) -> bool:
        """Return whether a message that states a fact still does."""
        text = self.texts.get(index, Text(""))
        return text is None or text.has_any(fact.forms)


@dataclass(frozen=True)
class Case:
    """A probe with all that the checks look at."""

    probe: Probe
    history: History
    language: Language
    copy: ScrubbedCopy | None
    """None where the scrubber would change nothing, or cannot run."""
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


_Redactor = tuple[str, str, re.Pattern[str]]
"""Its name, that of the shape of what it masks, and the pattern."""

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
    """Are facts spellings of each other? No good answer gives all of them, yet all are required."""
    for place, fact in case.facts:
        sides = _sides(fact.fact, case.language)
        if len(sides) > 1 and not case.history.stated_in([fact.fact]):
            joined = " and ".join(map(shorten, sides))
            text = f"joins {joined}: give one as the fact, the rest in any_of"
            yield place, f"{shorten(fact.fact)} {text}"
    for (first, one), (second, other) in combinations(enumerate(case.probe.expected_facts), 2):
        if reason := _same_thing(one.fact, other.fact, case.language) or _rivals(case, one, other):
            yield (
                f".expected_facts[{first}] and [{second}]",
                f"{shorten(one.fact)} and {shorten(other.fact)} {reason}; "
                "every fact is required; spellings of one thing belong into any_of",
            )


def _sides(fact: str, language: Language) -> list[str]:
    """Return what a fact joins by a word for "or"; the fact alone if there is none."""
    for name in dict.fromkeys((language, "en")):
        for word in words("or", name):
            parts = [part.strip() for part in fact.split(word)]
            if len(parts) > 1 and all(parts):
                return parts
    return [fact]


def _same_thing(one: str, other: str, language: Language) -> str:
    plain = []
    for fact in (one, other):
        text = f" {_NOT_A_LETTER.sub(' ', normalise(fact))} "
        for number, word in enumerate(words("numbers", language)):
            text = text.replace(f" {word} ", f" {number} ")
        plain.append(text.strip())
    if plain[0].replace(" ", "") == plain[1].replace(" ", ""):
        return "are spellings of the same thing"
    for first, second in ((one, other), plain):
        if Text(first).spells(second) or Text(second).spells(first):
            return "overlap: whoever gives the longer has given the shorter"
    return ""


def _rivals(case: Case, one: ExpectedFact, other: ExpectedFact) -> str:
    """Say so if two facts are values of one quantity that the question asks for once."""
    quantities = [_QUANTITY.fullmatch(normalise(fact.fact)) for fact in (one, other)]
    units = {quantity and quantity["unit"] for quantity in quantities}
    if len(units) > 1 or None in units or mentions("several", case.probe.question, case.language):
        return ""
    together = set(case.history.stated_in(one.forms)) & set(case.history.stated_in(other.forms))
    return "" if together else "never stand in one message, and the question asks for one value"


def masked_by_a_redactor(case: Case) -> Warnings:
    """Would a redactor alter the fact?

    Some agents mask what looks like a secret before they summarise, and take plain settings along
    (``MAX_TOKENS=2600``). Such a fact measures the redactor, and not what a summary kept.
    """
    for place, fact in case.facts:
        masking: list[_Redactor] | None = None
        # One message that is left as it is keeps the fact: the others need not be read.
        for index in case.history.stating(fact.forms):
            source = case.history.messages[index].searchable()
            left = _redactors() if masking is None else masking
            masking = [each for each in left if _masks(each, source, fact)]
            if not masking:
                break
        if masking:
            redactor, shape, _ = masking[0]
            text = f"is masked by the redactor of {redactor} wherever it stands ({shape})"
            yield place, f"{shorten(fact.fact)} {text}"


def _masks(redactor: _Redactor, source: str, fact: ExpectedFact) -> bool:
    masked = redactor[2].sub(_masked, source)
    return masked != source and not Text(masked).has_any(fact.forms)


def _masked(match: re.Match[str]) -> str:
    start, end = (place - match.start() for place in match.span("masked"))
    return match[0][:start] + _MASK + match[0][end:]


def altered_by_the_scrubber(case: Case) -> Warnings:
    """Would the fact be lost if the conversation were scrubbed before it is shared?"""
    if case.copy is None:
        return
    for place, fact in case.facts:
        kept = (case.copy.keeps(fact, index) for index in case.history.stating(fact.forms))
        if not next(kept, True) and not any(kept):  # of most facts the first message is enough
            profile = f"(profile {case.copy.profile})"
            text = f"is altered by the scrubber {profile} wherever it stands"
            yield place, f"{shorten(fact.fact)} {text}"


def type_without_reason(case: Case) -> Warnings:
    """Does anything speak for the type?

    It decides the criteria and the row that results count in, so a plain look-up filed as a
    decision makes reasoning look easy. Wording is a heuristic.
    """
    probe, key = case.probe, case.probe.answer_key
    forms = [form for fact in probe.expected_facts for form in fact.forms]
    supported: dict[str, tuple[object, str]] = {
        "artifact": (
            key.files_created
            or key.files_modified
            or key.files_read
            or any(_ARTIFACT_SHAPE.search(form) for form in forms),
            "no fact is a file or a name in code, and the question asks for none",
        ),
        "continuation": (
            key.open_tasks,
            "the question asks for nothing open and there is no answer_key.open_tasks",
        ),
        "decision": (
            key.reasons,
            "the question asks for no choice or reason and there is no answer_key.reasons",
        ),
    }
    if probe.type == "recall":
        return
    reason, missing = supported[probe.type]
    if not reason and not mentions(probe.type, probe.question, case.language):
        yield ".type", f"{probe.type}, but {missing}"


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
    masked_by_a_redactor,
    altered_by_the_scrubber,
    type_without_reason,
    verdict_against_it,
)


def words(kind: WordKind, language: Language) -> list[str]:
    """Return the words of one kind in one language."""
    found: list[str] = _data("check_words.yaml")[kind][language]
    return found


def mentions(kind: WordKind, text: str, language: Language) -> bool:
    """Return whether a text has a word of a kind, in its own language or in English."""
    folded = text.casefold()
    return any(_pattern(kind, name).search(folded) for name in (language, "en"))


@functools.cache
def _pattern(kind: WordKind, language: Language) -> re.Pattern[str]:
    bounded = []
    for phrase in map(str.casefold, words(kind, language)):
        ends = [character.isascii() and character.isalnum() for character in phrase]
        before = r"(?<![a-z0-9_])" if ends[0] else ""
        after = r"(?![a-z0-9_])" if ends[-1] else ""
        bounded.append(f"{before}{re.escape(phrase)}{after}")
    return re.compile("|".join(bounded))


@functools.cache
def _redactors() -> list[_Redactor]:
    return [
        (redactor["name"], shape["name"], re.compile(shape["pattern"]))
        for redactor in _data("redactors.yaml")
        for shape in redactor["shapes"]
    ]


@functools.cache
def _data(name: str) -> Any:
    return yaml.safe_load((files(__package__) / name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class BankReport:
    """What a check of one bank found."""

    findings: list[Finding]
    coverage: list[str]
    """What its probes are spread over, in lines for people."""
    left_out: str = ""
    """Why the scrubber could not be asked; empty if it was."""


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
    copy, left_out = None, ""
    try:
        copy = _scrubbed(fixture)
    except DataError as error:  # its rules are an optional package
        left_out = f"{pair.origin}: facts were not held against the scrubber: {error}"
    cases = []
    for position, probe in enumerate(bank.probes):
        # A probe without a cut of its own may have been put at any; its verdict says at which.
        cut = probe.cut or (probe.qualification.cut if probe.qualification else end)
        valid = valid_qualification(probe, fixture_digest, cut)
        case = Case(probe, at[probe.cut or end], bank.language or fixture.language, copy, valid)
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
    return BankReport(findings, list(_coverage(cases, thirds)), left_out)


def _scrubbed(fixture: Fixture) -> ScrubbedCopy | None:
    """Return a scrubbed copy; None if scrubbing once more would change nothing."""
    if fixture.source is not None and fixture.source.scrubber:
        return None
    from compression_eval.conversations.scrubbing import Pseudonyms, ScrubSettings, scrub

    settings = ScrubSettings.of()
    scrubbed = scrub(fixture, settings, Pseudonyms())
    texts: dict[int, Text | None] = {}
    for old, new in scrubbed.moved.items():
        message = scrubbed.fixture.messages[new]
        unchanged = message == fixture.messages[old]
        texts[old] = None if unchanged else Text(message.searchable())
    return ScrubbedCopy(settings.profile, texts)


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
    facts without evidence, questions that give a fact away, facts that a redactor would alter,
    alternatives that are all required, types that do not fit their question, probes that the kept
    tail answers, verdicts that are out of date, and what the bank covers. Fixtures without a bank
    are passed over. Exits with 1 if there are errors, or no bank at all; warnings alone do not
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
        if report.left_out:
            click.echo(report.left_out, err=True)
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
