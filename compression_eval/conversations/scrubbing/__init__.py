"""Take secrets and personal data out of conversations, so that they can be shown and shared."""

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.scrubber import (
    Scrubbed,
    audit,
    paraphrase_first_message,
    scrub,
    scrub_bank,
)
from compression_eval.conversations.scrubbing.texts import (
    ALL_PASSES,
    PROFILES,
    AuditFinding,
    Report,
    ScrubSettings,
    TextPasses,
    read_names,
)
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary

__all__ = [
    "ALL_PASSES",
    "PROFILES",
    "AuditFinding",
    "Pseudonyms",
    "Report",
    "ScrubSettings",
    "Scrubbed",
    "TextPasses",
    "Vocabulary",
    "audit",
    "paraphrase_first_message",
    "read_names",
    "scrub",
    "scrub_bank",
]
