"""Probes whose type does not fit what they ask.

A type decides the criteria of a probe and the row that its results count in, so a plain look-up
filed as a decision makes reasoning look easy. Wording is a heuristic, hence only warnings.
"""

import re
from collections.abc import Iterator

from compression_eval.authoring.check_words import mentions
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.findings import Finding
from compression_eval.fixtures.models import Language

_ARTIFACT_SHAPE = re.compile(
    r"[\w.-]+/[\w.*/-]+"  # a path
    r"|\w\.[a-zA-Z]\w{0,4}\b"  # a file, or an attribute
    r"|\w_\w|[a-z][A-Z]|\w\(\)"  # a name in code
    r"|#\d+|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b"  # a pull request, a commit
)


def type_findings(probe: Probe, language: Language) -> Iterator[Finding]:
    """Warn where nothing in a probe speaks for its type.

    Args:
        probe: The probe.
        language: The language it asks in.
    """
    missing = _missing(probe, language)
    if missing:
        yield Finding("warning", ".type", f"{probe.type}, but {missing}")


def _missing(probe: Probe, language: Language) -> str:
    key = probe.answer_key
    if probe.type == "artifact":
        listed = key.files_created or key.files_modified or key.files_read
        shaped = any(
            _ARTIFACT_SHAPE.search(form) for fact in probe.expected_facts for form in fact.forms
        )
        if not (listed or shaped or mentions("artifact", probe.question, language)):
            return "no fact is a file or a name in code, and the question asks for none"
    elif probe.type == "continuation":
        if not (key.open_tasks or mentions("continuation", probe.question, language)):
            return "the question asks for nothing open and there is no answer_key.open_tasks"
    elif probe.type == "decision" and not (
        key.reasons or mentions("decision", probe.question, language)
    ):
        return "the question asks for no choice or reason and there is no answer_key.reasons"
    return ""
