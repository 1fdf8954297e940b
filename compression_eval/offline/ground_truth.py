"""What a request for a grade holds, checked, with the questions the formulas ask of it."""

import re
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.facts.matching import Text
from compression_eval.fixtures.banks import FormatKind
from compression_eval.offline import lexicon
from compression_eval.offline.question import content_terms

_CODE = re.compile(r"[\w-]/[\w-]|\w[_.:]\w|[a-z][A-Z]|\w\(|[A-Z]{2,}|--?\w+-?\w*=|[{}\[\]<>=]|\d")
_SENTENCES = re.compile(r"\n|(?<=[.!?;])\s+|(?<=[。！？；])")
_TASK_SHARE = 0.6
_SHORT_ANSWER = 600
"""Characters up to which a phrase of not knowing or of wanting to read is the whole answer."""

_Texts = Annotated[list[str], Field(default_factory=list)]


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Fact(_Lenient):
    """A fact with the other forms that count and the values it has replaced."""

    fact: str
    also_accepted: _Texts
    superseded: _Texts

    @property
    def forms(self) -> list[str]:
        """Every form that counts."""
        return [self.fact, *self.also_accepted]


class Key(_Lenient):
    """The lists that a careful reader would make."""

    files_created: _Texts
    files_modified: _Texts
    files_read: _Texts
    open_tasks: _Texts
    reasons: _Texts


class RequestedForm(_Lenient):
    """The form the question asked for."""

    kind: FormatKind
    keys: _Texts
    items: int | None = None


class Standing(_Lenient):
    """A rule of the user, and texts that show that it was broken."""

    text: str = ""
    violated_by: _Texts


class Truth(_Lenient):
    """The ground truth of one probe."""

    expected_facts: list[Fact] = Field(default_factory=list)
    must_not_appear: list[Fact] = Field(default_factory=list)
    reference_answer: str = ""
    answer_key: Key = Field(default_factory=lambda: Key.model_validate({}))
    requested_format: RequestedForm | None = None
    standing_constraint: Standing | None = None


class Case(_Lenient):
    """One answer with its question and ground truth."""

    probe_question: str = ""
    ground_truth: Truth
    model_response: str

    @classmethod
    def read(cls, fields: dict[str, Any]) -> "Case | None":
        """Return the case in a request's fields; None if one is missing or has another type."""
        try:
            return cls.model_validate(fields)
        except ValidationError:
            return None

    @cached_property
    def text(self) -> Text:
        """The answer, ready for matching."""
        return Text(self.model_response)

    def has(self, forms: list[str]) -> bool:
        """Say whether the answer holds any of the forms."""
        return any(self.text.has(form) for form in forms)

    def has_file(self, path: str) -> bool:
        """Say whether the answer names a file, by its path or by its name alone."""
        return self.has([path, path.rsplit("/", 1)[-1]])

    def has_statement(self, statement: str) -> bool:
        """Say whether the answer holds a sentence's text or most of its content words."""
        if self.text.has(statement):
            return True
        wanted = set(content_terms(statement))
        return bool(wanted) and len(wanted & self.words) >= _TASK_SHARE * len(wanted)

    @cached_property
    def words(self) -> set[str]:
        """The content terms of the answer."""
        return set(content_terms(self.model_response))

    @cached_property
    def found(self) -> list[bool]:
        """For each expected fact, whether the answer holds it."""
        return [self.has(fact.forms) for fact in self.ground_truth.expected_facts]

    @cached_property
    def stale(self) -> list[bool]:
        """For each expected fact, whether the answer gives a superseded value as current."""
        return [
            any(self._as_current(value, fact) for value in fact.superseded)
            for fact in self.ground_truth.expected_facts
        ]

    @cached_property
    def forbidden(self) -> bool:
        """Whether the answer holds a fact that it must not hold."""
        return any(
            self.text.spells(form)
            for fact in self.ground_truth.must_not_appear
            for form in fact.forms
        )

    @property
    def spoiled(self) -> bool:
        """Whether wrong facts stand in the answer, beside right ones or alone."""
        return self.forbidden or any(self.stale)

    @cached_property
    def empty(self) -> bool:
        """Whether the answer holds no word."""
        return re.search(r"\w", self.model_response) is None

    @cached_property
    def no_answer(self) -> str:
        """Why this is no answer (empty, abstained, wants to read again); "" if it is one.

        An answer that holds an expected fact is one, whatever it says besides, and so is a long
        one, in which such a phrase may be quoted.
        """
        if self.empty:
            return "the answer is empty"
        if any(self.found) or len(self.model_response) > _SHORT_ANSWER:
            return ""
        if lexicon.state("unknown").search(self.model_response):
            return "the answer says that it does not know"
        if lexicon.state("fetch").search(self.model_response):
            return "the answer asks to read again instead of answering"
        return ""

    def _as_current(self, value: str, fact: Fact) -> bool:
        """Say whether a superseded value stands in a sentence that does not make clear that it is.

        A sentence does so by a word such as "previously", or by giving the current value as well
        ("45 instead of 30").
        """
        if not self.text.spells(value):
            return False
        sentences = [
            s for s in _SENTENCES.split(self.model_response) if s and Text(s).spells(value)
        ]
        return not sentences or any(
            lexicon.state("earlier").search(sentence) is None
            and not any(Text(sentence).has(form) for form in fact.forms)
            for sentence in sentences
        )


def is_code(text: str) -> bool:
    """Say whether a fact looks like code: a name, path, number, flag or message of a program."""
    return _CODE.search(text) is not None
