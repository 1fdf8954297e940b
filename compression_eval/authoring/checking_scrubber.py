"""Facts that would be lost if the conversation were scrubbed before it is shared.

A name, a host or a path below a home folder becomes a pseudonym then. A probe that asks for one
has another answer in the scrubbed copy, or none.
"""

from collections.abc import Iterator, Mapping, Sequence

from compression_eval.authoring.history import History
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.errors import shorten
from compression_eval.fixtures.findings import Finding
from compression_eval.fixtures.matching import Text
from compression_eval.fixtures.models import Fixture


class ScrubbedCopy:
    """A scrubbed copy of a conversation, for look-ups.

    Args:
        fixture: The conversation as it is.

    Raises:
        DataError: The scrubber cannot run: a package that it needs is missing.
    """

    def __init__(self, fixture: Fixture) -> None:
        self._texts: Mapping[int, Text] | None = None
        if fixture.source is not None and fixture.source.scrubber:
            return  # scrubbing once more changes nothing
        from compression_eval.conversations.scrubbing import Pseudonyms, ScrubSettings, scrub

        settings = ScrubSettings.of()
        scrubbed = scrub(fixture, settings, Pseudonyms())
        messages = scrubbed.fixture.messages
        self.profile = settings.profile
        self._texts = {
            old: Text(messages[new].searchable())
            for old, new in scrubbed.moved.items()
            if messages[new] != fixture.messages[old]
        }
        self._left = frozenset(scrubbed.moved)

    def loses(self, forms: Sequence[str], stating: Sequence[int]) -> bool:
        """Return whether no message that states a fact still does so when it is scrubbed.

        Args:
            forms: The forms of the fact.
            stating: Indices of the messages that state one of them.
        """
        if self._texts is None or not stating:
            return False
        return not any(
            index in self._left and (index not in self._texts or self._texts[index].has_any(forms))
            for index in stating
        )


def scrubber_findings(probe: Probe, history: History, copy: ScrubbedCopy) -> Iterator[Finding]:
    """Warn of facts that a scrubbed copy no longer states.

    Args:
        probe: The probe.
        history: What lies before its cut.
        copy: The whole conversation, scrubbed.
    """
    for position, fact in enumerate(probe.expected_facts):
        if copy.loses(fact.forms, history.stated_in(fact.forms)):
            text = (
                f"{shorten(fact.fact)} is altered by the scrubber (profile {copy.profile}) "
                "wherever it stands"
            )
            yield Finding("warning", f".expected_facts[{position}]", text)
