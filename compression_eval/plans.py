"""What the dataset plans for each sample and the solver carries out."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from compression_eval.compressors.running import CompressionPlan
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language
from compression_eval.record import AskedProbe


@dataclass(frozen=True)
class ProbePlan:
    """One probe with the compression it is about."""

    probe: Probe
    language: Language
    compression: CompressionPlan
    digests: Mapping[str, str]
    asked: tuple[AskedProbe, ...] = ()
    """All probes that are put to the same state, this one among them."""


@cache
def question_preamble() -> str:
    """Return the text that is before every probe."""
    return (files(__package__) / "question.md").read_text(encoding="utf-8").strip()


def preamble_digest() -> str:
    """Return the digest of `question_preamble`."""
    return hashlib.sha256(question_preamble().encode()).hexdigest()
