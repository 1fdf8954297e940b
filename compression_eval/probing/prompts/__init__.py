"""What stands before every probe, as data."""

import hashlib
from functools import cache
from importlib.resources import files

QUESTION = "question.md"


@cache
def question_preamble() -> str:
    """Return the text that introduces a probe to the model under test."""
    return (files(__package__) / QUESTION).read_text(encoding="utf-8").strip()


def preamble_digest() -> str:
    """Return the digest of `question_preamble`."""
    return hashlib.sha256(question_preamble().encode()).hexdigest()
