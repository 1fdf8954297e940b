"""The passes that replace values inside texts, run one after another."""

from collections.abc import Iterator
from itertools import chain
from typing import Protocol

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
    """

    def __init__(self, settings: ScrubSettings, pseudonyms: Pseudonyms) -> None:
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
        self._passes = [one for one in every if one.name in settings.passes]
        self._vocabulary = Vocabulary()
        self._mapping = Mapping(pseudonyms)
        self._read: set[str] = set()
        self._done: dict[str, str] = {}
        self.report = Report()

    def learn(self, text: str) -> None:
        """Read a text, JSON in it decoded, for values to look for everywhere."""
        if not self._passes or text in self._read:
            return
        self._read.add(text)
        known = len(self._vocabulary)
        for document in documents(text):
            for one in self._passes:
                one.learn(document, self._vocabulary)
        if len(self._vocabulary) != known:
            self._done.clear()

    def scrub(self, text: str) -> str:
        """Return a text with everything replaced that the passes find."""
        return rewrite_text(text, self._replaced) if self._passes else text

    def findings(self, text: str) -> Iterator[tuple[str, Hit, str]]:
        """Yield pass, place and value of everything in a text that would be replaced."""
        found: list[tuple[str, Hit, str]] = []

        def look(part: str) -> str:
            for one in self._passes:
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
            for one in self._passes:
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
        hits = chain(one.hits(text), self._vocabulary.hits(one.name, text))
        return without_overlaps(
            hit for hit in hits if not is_pseudonym(hit.kind, text[hit.start : hit.end])
        )
