"""What is scrubbed, and every text of a fixture or a bank with what the passes replace in it.

`ScrubSettings` says which passes run and which names are listed. `rewritten` walks over the texts
of a fixture. `TextPasses` learns from them and replaces what it finds; its `Report` counts.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from compression_eval.conversations.scrubbing.passes import ONLY_TEACHES, PASSES
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms, is_pseudonym
from compression_eval.conversations.scrubbing.reading import reader_for, rewritten_text, shown
from compression_eval.conversations.scrubbing.rules import (
    Hit,
    dictionary,
    missing,
    without_overlaps,
)
from compression_eval.conversations.scrubbing.secrets import scanner
from compression_eval.conversations.scrubbing.vocabulary import ANYWHERE, Learnt, Vocabulary
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import IMAGE_DATA, Fixture, Message, Open, Source, ToolCall
from compression_eval.terminal import aligned

RULES_VERSION = 9
"""Version of our own rules and pseudonyms; a change of either that changes a byte raises it."""

ORPHANS, PARAPHRASE = "orphans", "paraphrase"
_TAKE_AWAY = ("images", "reasoning", "system_prompt", "truncation", ORPHANS)
ALL_PASSES = (*PASSES, *_TAKE_AWAY, PARAPHRASE)
"""Names of all passes, in the order they run."""

DEFAULT_PROFILE = "default"
PROFILES: dict[str, tuple[str, ...]] = {
    # Everything that a conversation loses no fact by.
    DEFAULT_PROFILE: (*PASSES, "images", "reasoning", ORPHANS),
    "secrets": ("secrets",),
    # For a repository that everybody can read.
    "publish": (*PASSES, *_TAKE_AWAY),
}
"""The passes of every profile."""

_NEEDED_BY = {
    "kingfisher-secret-scanner": ({"secrets"}, scanner),
    "english-words": ({"user_names", "handles", "emails", "hosts"}, dictionary),
}
"""The passes that need a package, and what loads it."""

_GIVEN_KIND = re.compile(r"(user|person|host|email|secret):\s*(.+)")
_DOMAIN = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")

_FIXED: dict[type[Open], tuple[str, ...]] = {
    ToolCall: ("id",),
    Message: ("tool_call_id",),
    Source: ("recorder", "importer", "scrubber", "scrubbing"),
}
"""Fields that name calls, or nothing but this program's own steps."""

_MAX_SHAPES = 3
_MAX_SHAPE_CHARACTERS = 24

_Models = tuple[type[Open], ...]


@dataclass(frozen=True)
class ScrubSettings:
    """Which passes run, and what they are told.

    Make one with `ScrubSettings.of`, which checks the names.
    """

    profile: str
    passes: tuple[str, ...]
    """Names of the passes, in the order they run."""
    listed: tuple[Learnt, ...] = field(default=(), repr=False)
    """Names that no rule can know, as `read_names` returns them."""

    @classmethod
    def of(
        cls,
        profile: str = DEFAULT_PROFILE,
        *,
        skip: Iterable[str] = (),
        add: Iterable[str] = (),
        listed: tuple[Learnt, ...] = (),
    ) -> "ScrubSettings":
        """Return the settings of a profile.

        Args:
            profile: One of `PROFILES`.
            skip: Passes of the profile that shall not run.
            add: Passes that shall run besides those of the profile.
            listed: Names that no rule can know.

        Raises:
            DataError: A profile or a pass is unknown, or nothing is left to run.
        """
        if profile not in PROFILES:
            known = ", ".join(PROFILES)
            raise DataError(f"profile: unknown {shorten(profile)}, there are {known}")
        if unknown := sorted({*skip, *add} - {*ALL_PASSES}):
            known = ", ".join(ALL_PASSES)
            raise DataError(f"pass: unknown {shorten(unknown[0])}, there are {known}")
        chosen = {*PROFILES[profile], *add} - {*skip}
        if not chosen:
            raise DataError("pass: none is left to run")
        return cls(profile, tuple(name for name in ALL_PASSES if name in chosen), listed)

    def described(self, pseudonyms: Pseudonyms) -> dict[str, Any]:
        """Return what decides the result of scrubbing; of names and the key only digests."""
        return {
            "scrubber": self.scrubber,
            "passes": self.passes,
            "listed": digest(repr(self.listed)),
            "key": pseudonyms.digest("").hex(),
        }

    @property
    def scrubber(self) -> str:
        """What a fixture records: our version, the profile and the packages that were used.

        Raises:
            DataError: A package that is needed is not installed.
        """
        used = [self.profile]
        for package, (passes, _) in _NEEDED_BY.items():
            if passes & {*self.passes}:
                try:
                    used.append(f"{package} {version(package)}")
                except PackageNotFoundError as error:
                    raise missing() from error
        return f"compression_eval {RULES_VERSION} ({', '.join(used)})"

    def load(self) -> None:
        """Load what the passes need, which processes that are forked then share.

        Raises:
            DataError: A package that is needed is not installed.
        """
        _ = self.scrubber
        for passes, load in _NEEDED_BY.values():
            if passes & {*self.passes}:
                load()


def read_names(path: Path) -> tuple[Learnt, ...]:
    """Read a file of names that no rule can know: one to a line, ``#`` begins a comment.

    What a line is follows from its form: ``jane@acme.com`` an e-mail address, ``acme.com`` a
    host, ``Jane Doe`` a person, anything else an account or handle (``@jane``, ``jane``). A
    kind can be given: ``host: acme``, ``person: Jane``, ``secret: swordfish``.

    Raises:
        DataError: The file cannot be read, or a line is too short to be looked for.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start})") from error
    found: list[Learnt] = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.split("#", 1)[0].strip()
        if not entry:
            continue
        if given := _GIVEN_KIND.fullmatch(entry):
            kind, value = given.groups()
        elif "@" in entry[1:]:
            kind, value = "email", entry.removeprefix("@")
        elif _DOMAIN.fullmatch(entry):
            kind, value = "host", entry
        else:
            is_person = " " in entry and not entry.startswith("@")
            kind, value = "person" if is_person else "user", entry.removeprefix("@")
        if len(value) < 2:
            raise DataError(f"{path}: line {number}: {shorten(value)} is too short to look for")
        found.append(Learnt(value, kind, "listed", any_case=kind != "secret"))
    return tuple(found)


@dataclass
class Entry:
    """One rule's replacements of one kind."""

    replacements: int = 0
    digests: set[bytes] = field(default_factory=set, repr=False)
    """Digests of the values, to count different ones without keeping any."""
    shapes: list[str] = field(default_factory=list)
    """What the first few looked like, masked."""


@dataclass
class Report:
    """Replacements by pass, rule and kind."""

    entries: dict[tuple[str, str, str], Entry] = field(default_factory=dict)

    def note(
        self, passage: str, rule: str, kind: str, looks: str = "", digest: bytes = b""
    ) -> None:
        """Count one replacement."""
        entry = Entry(1, {digest}, [looks])
        self.add(Report({(passage, rule, kind): entry}))

    def add(self, other: "Report") -> None:
        """Take in the counts of another conversation."""
        for key, entry in other.entries.items():
            own = self.entries.setdefault(key, Entry())
            own.replacements += entry.replacements
            own.digests |= entry.digests
            fresh = [looks for looks in entry.shapes if looks not in own.shapes]
            own.shapes.extend(fresh[: _MAX_SHAPES - len(own.shapes)])

    def as_data(self) -> list[dict[str, Any]]:
        """Return the report as JSON, most frequent first."""
        return [
            {
                "pass": passage,
                "rule": rule,
                "kind": kind,
                "values": len(entry.digests),
                "replacements": entry.replacements,
                "shapes": entry.shapes,
            }
            for (passage, rule, kind), entry in sorted(
                self.entries.items(), key=lambda item: (-item[1].replacements, item[0])
            )
        ]

    def table(self) -> list[str]:
        """Return the report as lines of text."""
        if not self.entries:
            return ["nothing was replaced"]
        heads = ("pass", "rule", "kind", "values", "replaced", "looks like")
        rows = [
            [*map(str, list(row.values())[:5]), "  ".join(row["shapes"])] for row in self.as_data()
        ]
        return aligned([heads, *rows], right=("values", "replaced"))


@lru_cache(maxsize=10_000)
def shape(text: str) -> str:
    """Return what a value looks like without showing it: ``Aaa9-99`` for ``Bob7-42``.

    Runs keep their length up to three; the whole is cut to 24 characters.
    """
    marks = "".join(map(_mark, text))
    short = re.sub(r"(.)\1{3,}", r"\1\1\1", marks)
    whole = len(short) <= _MAX_SHAPE_CHARACTERS
    return short if whole else short[:_MAX_SHAPE_CHARACTERS] + "…"


def _mark(character: str) -> str:
    if character.isdigit():
        return "9"
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return character if character.isprintable() and not character.isspace() else "_"


@dataclass(frozen=True)
class AuditFinding:
    """Something that a pass would still change."""

    where: str
    """The field, as ``messages[3].content``."""
    passage: str
    """Name of the pass."""
    rule: str
    looks: str = ""
    """What the value looks like, masked; empty where no value is meant."""

    def __str__(self) -> str:
        looks = f" ({self.looks})" if self.looks else ""
        return f"{self.where}: {self.passage}: {self.rule}{looks}"


class TextPasses:
    """The passes of one conversation that replace values, with what they learnt from it.

    Args:
        settings: Which passes.
        pseudonyms: Where the stand-ins come from.
        shared: What was learnt from all conversations of an import.
    """

    def __init__(
        self,
        settings: ScrubSettings,
        pseudonyms: Pseudonyms,
        shared: "TextPasses | None" = None,
    ) -> None:
        self.settings = settings
        self._passes = tuple(name for name in settings.passes if name in PASSES)
        self._reader = reader_for(self._passes)
        self.vocabulary: Vocabulary = Vocabulary(shared.vocabulary if shared else None)
        if "handles" in self._passes:
            for entry in settings.listed:
                self.vocabulary.learn("handles", entry)
        self._pseudonyms = pseudonyms
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._clean: set[str] = set()
        """Texts in which nothing is to be replaced, as far as values are known."""
        self.report = Report()
        self.findings: dict[AuditFinding, None] = {}
        """What was changed, and where."""

    def learn(self, text: str, where: str = "") -> None:
        """Read a text, JSON in it decoded, for values to look for elsewhere.

        Args:
            text: Any text.
            where: The field that it is in.
        """
        known = self.vocabulary.changes
        for lesson in self._reader.read(text, of_call=where.endswith(".arguments")).lessons:
            self.vocabulary.learn(*lesson)
        if self.vocabulary.changes != known:
            self._clean.clear()

    def learn_from(self, target: Fixture | ProbeBank) -> None:
        """Read a conversation or a bank of an import, and keep only what it teaches."""
        self.learn_all(target.model_dump(mode="json", exclude_unset=True), type(target))

    def learn_all(self, data: Any, model: type[Open]) -> None:
        """Read every text of a fixture or a bank, given as JSON."""

        def read(text: str, where: str) -> str:
            self.learn(text, where)
            return text

        rewritten(data, model, read)

    def scrub(self, text: str, where: str = "") -> str:
        """Return a text with everything replaced that the passes find."""
        if text in self._clean:
            return text
        reading = self._reader.read(text, of_call=where.endswith(".arguments"))
        # A known value may be in a disguise, which is undone in the decoded parts only.
        maybe = reading.is_disguised or self.vocabulary.may_be_in(text)
        scrubbed = text
        if maybe or not reading.is_silent:
            scrubbed = rewritten_text(text, partial(self._replaced, where))
        if scrubbed == text:
            self._clean.add(text)
        return scrubbed

    def note(
        self, where: str, passage: str, rule: str, kind: str, value: str = "", digest: bytes = b""
    ) -> None:
        """Note a change: of a value, or of a whole message."""
        looks = shape(value)
        self.report.note(passage, rule, kind, looks, digest)
        self.findings[AuditFinding(where, passage, rule, looks)] = None

    def _replaced(self, where: str, text: str) -> str:
        hits = self._hits(text)
        for name in self._passes:
            parts: list[str] = []
            place = 0
            for hit in hits.get(name, ()):
                value = hit.of(text)
                self.note(where, name, hit.rule, hit.kind, value, self._pseudonyms.digest(value))
                if (hit.kind, value) not in self._stand_ins:
                    made = self._pseudonyms.of(hit.kind, value)
                    self._stand_ins[hit.kind, value] = made
                parts += text[place : hit.start], self._stand_ins[hit.kind, value]
                place = hit.end
            if parts:
                text = "".join((*parts, text[place:]))
                hits = self._hits(text)
        return text

    def _hits(self, text: str) -> dict[str, list[Hit]]:
        searched, learnt = self._reader.search(text), self.vocabulary.hits(text)
        view = shown(text) if searched.is_disguised else None
        undone = self.vocabulary.hits(view.text) if view else {}
        hits: dict[str, list[Hit]] = {}
        for name in self._passes if searched.hits or learnt or undone else ():
            found = [*searched.hits.get(name, ()), *learnt.get(name, ())]
            found += view.hits(undone.get(name, ())) if view else ()
            hits[name] = without_overlaps(
                hit for hit in found if self._is_replaced(name, hit, hit.of(text))
            )
        return hits

    def _is_replaced(self, name: str, hit: Hit, value: str) -> bool:
        if hit.rule in ONLY_TEACHES or is_pseudonym(hit.kind, value):
            return False
        # A listing shows an account whatever its name; a folder in `/home` or an `@name` does not.
        told = hit.rule in ANYWHERE or (name == "user_names" and not hit.rule.endswith("-home"))
        is_name = hit.kind in ("user", "person") and not told
        return not (is_name and self.vocabulary.is_of_code(value))


def rewritten(data: Any, model: type[Open], rewrite: Callable[[str, str], str]) -> Any:
    """Return a fixture or a bank (as JSON) with every text rewritten.

    What stays is images, numbers, and the fields of the model itself whose words the format sets
    or that name calls. Fields that a model does not know are rewritten whole, keys included.

    Args:
        data: Any JSON.
        model: What it is.
        rewrite: From a text and the field it is in to what the text shall be.
    """

    def inside(value: Any, models: _Models, where: str) -> Any:
        if isinstance(value, str):
            return value if IMAGE_DATA.fullmatch(value) else rewrite(value, where)
        if isinstance(value, list):
            return [inside(item, models, f"{where}[{i}]") for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        known, result = _fields(models), {}
        for key, item in value.items():
            inner = known.get(key, ())
            place = f"{where}.{key}".lstrip(".")
            new = item if inner is None else inside(item, inner, place)
            result[key if key in known else rewrite(key, where)] = new
        return result

    return inside(data, (model,), "")


@cache
def _fields(models: _Models) -> dict[str, _Models | None]:
    """Return the models inside each known field; None for a field whose words are fixed."""
    return {
        name: None
        if name in _FIXED.get(model, ()) or get_origin(field.annotation) is Literal
        else _models(field.annotation)
        for model in models
        for name, field in model.model_fields.items()
    }


def _models(annotation: Any) -> _Models:
    if isinstance(annotation, type) and issubclass(annotation, Open):
        return (annotation,)
    return tuple(model for inner in get_args(annotation) for model in _models(inner))
