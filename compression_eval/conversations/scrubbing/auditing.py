"""Look at what was scrubbed once more, as if it had never been seen."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compression_eval.conversations.scrubbing import orphans
from compression_eval.conversations.scrubbing.hits import shape
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.removing import changes
from compression_eval.conversations.scrubbing.scrubber import Scrubbed
from compression_eval.conversations.scrubbing.settings import ScrubSettings
from compression_eval.conversations.scrubbing.text_passes import TextPasses
from compression_eval.conversations.scrubbing.walking import rewritten
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.models import Fixture


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


def audit(
    target: Fixture | ProbeBank, settings: ScrubSettings, scrubbed: Scrubbed | None = None
) -> list[AuditFinding]:
    """Return what in a fixture or a bank the passes would still change; empty if nothing.

    Args:
        target: What is to be written, or was.
        settings: The passes that it must be clean for.
        scrubbed: The scrub that it comes from, if that is at hand: then every value that it
            replaced wherever it stands is looked for too.

    Raises:
        DataError: A package is missing.
    """
    known = scrubbed.texts.passes if scrubbed and scrubbed.settings == settings else None
    fresh = TextPasses(settings, Pseudonyms(), passes=known)
    data = target.model_dump(mode="json", exclude_unset=True)
    fresh.learn_all(data, type(target))
    found: list[AuditFinding] = []

    def look(text: str, where: str) -> str:
        for texts in (fresh, scrubbed.texts) if scrubbed else (fresh,):
            for passage, hit, value in texts.findings(text):
                found.append(AuditFinding(where, passage, hit.rule, shape(value)))
        return text

    rewritten(data, type(target), look)
    if isinstance(target, Fixture):
        found.extend(_to_take_away(target, settings))
    return list(dict.fromkeys(found))


def audit_all(
    targets: Iterable[tuple[str, Fixture | ProbeBank]], settings: ScrubSettings
) -> Iterator[tuple[str, AuditFinding]]:
    """Audit one target after another; yields the label of each with what was found in it."""
    for label, target in targets:
        for finding in audit(target, settings):
            yield label, finding


def _to_take_away(fixture: Fixture, settings: ScrubSettings) -> Iterator[AuditFinding]:
    messages = [message.model_dump(mode="json", exclude_unset=True) for message in fixture.messages]
    for index, message in enumerate(messages):
        for passage, _ in changes(settings.passes, message):
            yield AuditFinding(f"messages[{index}]", passage, passage)
    if orphans.NAME in settings.passes:
        for index in sorted(orphans.dropped(messages)):
            yield AuditFinding(f"messages[{index}]", orphans.NAME, "dropped")
