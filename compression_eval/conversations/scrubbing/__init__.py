"""Take secrets and personal data out of conversations, so that they can be shown and shared."""

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.scrubber import (
    AuditFinding,
    NotScrubbedError,
    Scrubbed,
    audit,
    paraphrase_first_message,
    scrub,
    scrub_bank,
)
from compression_eval.conversations.scrubbing.settings import (
    LOADED,
    ScrubSettings,
    all_passes,
    profiles,
    read_names,
)
from compression_eval.conversations.scrubbing.texts import Report, TextPasses
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary

__all__ = [
    "LOADED",
    "AuditFinding",
    "NotScrubbedError",
    "Pseudonyms",
    "Report",
    "ScrubSettings",
    "Scrubbed",
    "TextPasses",
    "Vocabulary",
    "all_passes",
    "audit",
    "paraphrase_first_message",
    "profiles",
    "read_names",
    "scrub",
    "scrub_bank",
]
