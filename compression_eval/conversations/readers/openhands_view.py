"""What an OpenHands agent holds of its events, as condensations leave it."""

from collections.abc import Container
from dataclasses import dataclass, field

from compression_eval.conversations.drafts import Compaction, Draft


@dataclass(frozen=True)
class _Item:
    """An event in the view."""

    event: str
    draft: Draft | None
    summary: bool = False


@dataclass
class View:
    """The events that the agent still sees, in order."""

    items: list[_Item] = field(default_factory=list)
    trigger: str = ""
    """Why the next condensation was asked for, in the agent's own word."""

    def add(self, event: str, draft: Draft | None) -> None:
        """Add an event; one without a message still counts in offsets."""
        self.items.append(_Item(event, draft))

    def condense(
        self, forgotten: Container[str], summary: str | None, offset: int | None
    ) -> Compaction:
        """Forget events, put the summary where it belongs and return what is left.

        Args:
            forgotten: Ids of events.
            summary: What stands for them; replaces the summary of an earlier condensation.
            offset: Number of events before the summary; without it none is shown to the model.
        """
        before = [item.draft for item in self.items if item.draft is not None and not item.summary]
        self.items = [
            item
            for item in self.items
            if item.event not in forgotten and not (item.summary and summary is not None)
        ]
        if summary is not None and offset is not None:
            self.items.insert(offset, _Item("", Draft("user", [summary]), summary=True))
        trigger, self.trigger = self.trigger, ""
        shown = (item.draft for item in self.items if item.draft is not None)
        return Compaction(
            after=before[-1] if before else None,
            kind="clear" if summary is None else "summary",
            trigger=trigger,
            summary=summary,
            state=[draft for draft in dict.fromkeys(shown) if draft.role != "system"],
        )
