"""Take secrets and personal data out of conversations, so that they can be shown and shared."""

from compression_eval.conversations.scrubbing.auditing import AuditFinding, audit, audit_all
from compression_eval.conversations.scrubbing.listed import Listed, read_names
from compression_eval.conversations.scrubbing.paraphrasing import paraphrase_first_message
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.report import Report
from compression_eval.conversations.scrubbing.scrubber import Scrubbed, scrub, scrub_bank
from compression_eval.conversations.scrubbing.settings import ScrubSettings, all_passes, profiles
from compression_eval.conversations.scrubbing.text_passes import TextPasses

__all__ = [
    "AuditFinding",
    "Listed",
    "Pseudonyms",
    "Report",
    "ScrubSettings",
    "Scrubbed",
    "TextPasses",
    "all_passes",
    "audit",
    "audit_all",
    "paraphrase_first_message",
    "profiles",
    "read_names",
    "scrub",
    "scrub_bank",
]
