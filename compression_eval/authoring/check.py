"""What makes a probe a poor measure: the rules for new probes, and ``probes check`` for banks.

`faults` decides whether a generated probe can be taken; `duplicate` whether another asks the same.
``probes check`` adds to what `fixtures.checking` finds in a bank: facts that every arm keeps, or
that overlap, thirds of the history that no fact is from, and verdicts that are out of date.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
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
    probe_findings,
    unknown_fields,
)
from compression_eval.fixtures.cuts import TAIL_TOKENS, resolve_cut
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import SHIPPED
from compression_eval.fixtures.loading import FixtureWithBank, find_sources
from compression_eval.terminal import examples, go_on, say_passed_over
from compression_eval.text.lookup import Text, normalise

BY_MODEL = "model "
"""Begins the origin of a probe that a model wrote; its name follows."""

_MAX_QUESTION = 700
_MAX_FACT = 300
_MAX_FACTS = 8
_ALIKE = 0.85
_SHORT_NUMBER = re.compile(r"[^\w%]*\d{1,2}[^\w%]*")
_TELLING = re.compile(r"[\d_/\\@#$&*+=<>|~]|\w(?:[.:]\w|[(\[])|(?<!\S)[.-]+\w|\w\S*?[A-Z]")
_AROUND = 60
_MAX_SEARCHED = 50_000
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

    Of a path the base name counts; ``main.py`` and ``tests/test_x.py`` next to ``x`` say nothing.
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
    """Return what is wrong with a new probe, each in a sentence; nothing if it can be taken.

    Args:
        probe: The probe, with evidence for each fact.
        history: The history before its cut.
    """
    facts, question = probe.expected_facts, probe.question
    found = []
    if not question.strip() or len(question) > _MAX_QUESTION:
        found.append(f"question: must have 1 to {_MAX_QUESTION} characters")
    if not question.replace("\n", "").isprintable():
        found.append("question: has control characters")
    script = _SCRIPTS.get(history.language)
    if script and not script.search(question):
        language = history.language
        found.append(f"question: must be written in the language of the conversation ({language})")
    if len(facts) > _MAX_FACTS:
        found.append(f"facts: {len(facts)} of them; at most {_MAX_FACTS}")
    for _, place, text in probe_findings(probe, history.texts, history.cut, "error"):
        found.append(f"{place.removeprefix('.').replace('expected_facts', 'facts')}: {text}")
    for number, item in enumerate(facts):
        found.extend(f"facts[{number}]: {text}" for text in _unusable(item, history))
    if len(guessed := list(_guessed(probe))) * 2 > len(facts):
        found.extend(guessed)
    kept = [_kept(item, history) for item in facts]
    if all(kept):
        found.append(
            f"every fact is also in what is kept verbatim (messages {history.tail_start} "
            f"to {history.cut - 1}, or the system prompt): {', '.join(filter(None, kept))}"
        )
    return found


def _unusable(item: ExpectedFact, history: History) -> Iterator[str]:
    """Yield the forms that cannot be looked up safely, and what evidence without them says."""
    for form in item.forms:
        bare = normalise(form)
        if len(form) > _MAX_FACT or not form.isprintable():
            yield f"{shorten(form)} cannot be looked up: give 1 to {_MAX_FACT} plain characters"
        elif _SHORT_NUMBER.fullmatch(bare) or (len(bare) < 2 and bare.isascii()):
            yield f"{shorten(form)} is too short to be found safely: add its name or unit"
    silent = (i for i in item.evidence if i < history.cut and not item.derived)
    for index in [i for i in silent if not history.texts[i].has_any(item.forms)][:2]:
        source = history.texts[index].source[:_MAX_SEARCHED]
        near = SequenceMatcher(None, source, item.fact, autojunk=False).find_longest_match()
        said = source[max(0, near.a - _AROUND) : near.a + 2 * len(item.fact) + _AROUND]
        yield f"message {index} says {said!r}"


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


def warnings(probe: Probe, history: History) -> list[str]:
    """Return which later messages give a fact another value; a reader tells whether it is so."""
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


def check_bank(pair: FixtureWithBank, tail_tokens: int) -> tuple[list[Finding], list[str]]:
    """Return what is wrong with a bank, and what its probes are spread over, in lines.

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
    types, places, verdicts = Counter[str](), Counter[str](), Counter[str]()
    in_system = in_kept = 0
    for position, probe in enumerate(bank.probes):
        history, facts = at[probe.cut or end], probe.expected_facts
        where = f"{path}: probes[{position}] ({shorten(probe.id)})"
        head = range(history.start)
        if facts and all(any(True for _ in history.stating(f.forms, head)) for f in facts):
            in_system += 1
            findings.append(
                Finding("warning", where, "the system prompt alone contains every fact")
            )
        elif facts and all(history.kept(fact.forms) for fact in facts):
            kept = f"messages {history.tail_start} to {history.cut - 1}"
            text = f"every fact is also in the kept tail ({kept}): compression cannot lose it"
            findings.append(Finding("warning", where, text))
        in_kept += bool(facts) and all(history.kept(fact.forms) for fact in facts)
        findings.extend(_overlaps(facts, where))
        # A probe without a cut of its own may have been put at any; its verdict says at which.
        found = probe.qualification
        valid = valid_qualification(
            probe, fixture_digest, probe.cut or (found.cut if found else end)
        )
        findings.extend(_verdict_findings(found, valid, f"{where}.qualification"))
        types[probe.type] += 1
        verdicts[verdict(valid)] += 1
        places.update(_third(f, history) for f in facts if f.evidence or not f.derived)
    for third in THIRDS if len(bank.probes) >= _MIN_PROBES_FOR_THIRDS else ():
        if not places[third]:
            text = f"no fact is first said in the {third} third"
            findings.append(Finding("warning", f"{path}: probes", text))

    def counts(found: Counter[str], names: Sequence[str]) -> str:
        return ", ".join(f"{name} {found[name]}" for name in names)

    total, by_cut = len(bank.probes), Counter(str(probe.cut or end) for probe in bank.probes)
    coverage = [
        f"{total} probes: " + counts(types, get_args(ProbeType)),
        "facts first said: " + counts(places, (*THIRDS, "kept")),
        "at cut: " + counts(by_cut, [str(cut) for cut in cuts]),
        f"answered by the kept tail: {in_kept} ({in_kept / total:.0%}), "
        f"by the system prompt alone: {in_system}",
    ]
    if set(verdicts) - {"unknown"}:
        coverage.append("verdicts: " + counts(verdicts, get_args(Verdict)))
    return findings, coverage


def _overlaps(facts: Sequence[ExpectedFact], where: str) -> Iterator[Finding]:
    """Yield the facts that are within others: no good answer gives both, yet all are required."""
    for (first, one), (second, other) in combinations(enumerate(facts), 2):
        if Text(one.fact).spells(other.fact) or Text(other.fact).spells(one.fact):
            yield Finding(
                "warning",
                f"{where}.expected_facts[{first}] and [{second}]",
                f"{shorten(one.fact)} and {shorten(other.fact)} overlap: whoever gives the longer "
                "has given the shorter; spellings of one thing belong into any_of",
            )


def _verdict_findings(
    found: Qualification | None, valid: Qualification | None, where: str
) -> Iterator[Finding]:
    """Say if a verdict of ``probes qualify`` is out of date, or that the probe does not count."""
    if found is not None and valid is None:
        text = "the verdict is out of date: fixture, probe or cut have changed; qualify it again"
        yield Finding("warning", where, text)
    elif found is not None and not found.full.passes:
        runs = f"the full history passes {found.full.passed} of {found.full.runs}"
        yield Finding("warning", where, f"not qualified: {runs}")
    elif found is not None and not found.qualified:
        runs = f"nothing at all passes {found.none.passed} of {found.none.runs}"
        yield Finding("warning", where, f"not qualified: {runs}")


def _third(fact: ExpectedFact, history: History) -> str:
    """Return where in the compressed part a fact is first said, or ``kept``."""
    evidence = [index for index in fact.evidence if index < history.cut]
    first = min(evidence or history.stating(fact.forms), default=history.cut)
    return history.third(first) if first in history.compressed else "kept"


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
    help="Tokens at the end that a strategy keeps verbatim.",
)
def check_command(paths: tuple[str, ...], probes: Path | None, tail_tokens: int) -> None:
    """Check probe banks; without PATH, those of all fixtures that come with this project.

    PATH is a fixture: a name, a file, a folder, a pattern, a Parquet file or an address. Said are
    facts without evidence, questions that give a fact away, facts that overlap, probes that the
    kept tail answers, verdicts that are out of date, and what the bank covers. Fixtures without a
    bank are skipped. Exits with 1 if there are errors, or no bank at all; warnings alone do not
    fail.
    """
    sources = find_sources(list(paths) or SHIPPED + "all", probes)
    findings: list[Finding] = []
    without: list[PassedOverError] = []
    for number, source in enumerate(sources, 1):
        if len(sources) > 1:
            name = source.path.name if source.path else source.name
            click.echo(f"{number} of {len(sources)}: {name}", err=True)
        coverage: list[str] = []
        try:
            found, coverage = check_bank(source.read(), tail_tokens)
        except PassedOverError as error:
            without.append(error)
            continue
        except DataError as error:
            found = [Finding("error", "", line) for line in str(error).splitlines()]
        click.echo("".join(f"{finding}\n" for finding in found), nl=False)
        click.echo("".join(f"{source.stem}: {line}\n" for line in coverage), nl=False)
        findings.extend(found)
    say_passed_over(without, sources[len(without) :])
    click.echo(counted(findings, len(sources) - len(without)))
    if any(finding.severity == "error" for finding in findings):
        raise click.exceptions.Exit(1)
    if len(paths) == 1:
        given = ("-T", f"fixtures={paths[0]}", *(("-T", f"probes={probes}") if probes else ()))
        go_on(("inspect", "eval", "compression_eval/compression", *given))
