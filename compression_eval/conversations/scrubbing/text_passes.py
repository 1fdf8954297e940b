"""The passes that replace values inside texts, run one after another."""

from collections.abc import Iterator
from typing import Any, Protocol

from compression_eval.conversations.scrubbing import (
    addresses,
    emails,
    handles,
    hosts,
    mentions,
    numbers,
    secrets,
    user_names,
)
from compression_eval.conversations.scrubbing.decoding import documents, rewrite_text
from compression_eval.conversations.scrubbing.hits import Hit, without_overlaps
from compression_eval.conversations.scrubbing.mapping import Mapping
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms, is_pseudonym
from compression_eval.conversations.scrubbing.report import Report
from compression_eval.conversations.scrubbing.settings import ScrubSettings
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary
from compression_eval.conversations.scrubbing.walking import rewritten
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.models import Fixture, Open


class TextPass(Protocol):
    """A pass that finds values in texts."""

    name: str

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note values that are to be replaced wherever they stand."""

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the values that can be told in one text."""


class TextPasses:
    """The passes of one conversation, with what they learnt from it.

    Args:
        settings: Which passes.
        pseudonyms: Where the stand-ins come from.
        shared: What was learnt from all conversations of an import.
        passes: Passes to use again: what they found in a text follows from the text alone.
    """

    def __init__(
        self,
        settings: ScrubSettings,
        pseudonyms: Pseudonyms,
        shared: "TextPasses | None" = None,
        passes: "list[TextPass] | None" = None,
    ) -> None:
        every: tuple[TextPass, ...] = (
            secrets.Secrets(),
            user_names.UserNames(),
            handles.Handles(settings.listed, remote_owners=settings.remote_owners),
            emails.Emails(),
            hosts.Hosts(),
            addresses.Addresses(),
            numbers.Numbers(),
            mentions.Mentions(),
        )
        known = passes if shared is None else shared.passes
        self.passes: list[TextPass] = known or [one for one in every if one.name in settings.passes]
        self._vocabulary: Vocabulary = Vocabulary(None if shared is None else shared._vocabulary)
        self._mapping = Mapping(pseudonyms)
        self._read: set[str] = set()
        self._done: dict[str, str] = {}
        self.report = Report()

    def learn(self, text: str, where: str = "") -> None:
        """Read a text, JSON in it decoded, for values to look for elsewhere.

        Args:
            text: Any text.
            where: The field that it stands in.
        """
        if not self.passes or text in self._read:
            return
        self._read.add(text)
        known = self._vocabulary.changes
        for document in documents(text):
            for one in self.passes:
                one.learn(document, self._vocabulary)
                if where.endswith(".arguments") and isinstance(one, user_names.UserNames):
                    one.learn_opened(document, self._vocabulary)
        if self._vocabulary.changes != known:
            self._done.clear()

    def learn_from(self, target: Fixture | ProbeBank) -> None:
        """Read a conversation or a bank of an import, and keep only what it teaches."""
        if not self.passes:
            return
        self.learn_all(target.model_dump(mode="json", exclude_unset=True), type(target))
        self._read.clear()

    def learn_all(self, data: Any, model: type[Open]) -> None:
        """Read every text of a fixture or a bank, given as JSON."""

        def read(text: str, where: str) -> str:
            self.learn(text, where)
            return text

        rewritten(data, model, read)

    def scrub(self, text: str) -> str:
        """Return a text with everything replaced that the passes find."""
        return rewrite_text(text, self._replaced) if self.passes else text

    def findings(self, text: str) -> Iterator[tuple[str, Hit, str]]:
        """Yield pass, place and value of everything in a text that would be replaced."""
        found: list[tuple[str, Hit, str]] = []

        def look(part: str) -> str:
            for one in self.passes:
                found.extend(
                    (one.name, hit, part[hit.start : hit.end]) for hit in self._hits(one, part)
                )
            return part

        rewrite_text(text, look)
        yield from found

    def _replaced(self, text: str) -> str:
        done = self._done.get(text)
        if done is None:
            done = text
            for one in self.passes:
                done = self._run(one, done)
            if done == text:
                self._done[text] = done
        return done

    def _run(self, one: TextPass, text: str) -> str:
        parts: list[str] = []
        place = 0
        for hit in self._hits(one, text):
            value = text[hit.start : hit.end]
            self.report.note(one.name, hit.rule, hit.kind, value, self._mapping.digest(value))
            parts.extend((text[place : hit.start], self._mapping.of(hit.kind, value)))
            place = hit.end
        return "".join((*parts, text[place:])) if parts else text

    def _hits(self, one: TextPass, text: str) -> list[Hit]:
        hits = [*one.hits(text), *self._vocabulary.hits(one.name, text)]
        if not hits:
            return hits
        return without_overlaps(
            hit for hit in hits if not is_pseudonym(hit.kind, text[hit.start : hit.end])
        )
