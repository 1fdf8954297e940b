"""From what was found in a history to a probe in its language."""

import posixpath
from collections.abc import Mapping, Sequence

from compression_eval.authoring.candidates import draft, fact
from compression_eval.authoring.history import History
from compression_eval.authoring.templates import wordings
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe, ProbeType
from compression_eval.fixtures.base_names import others
from compression_eval.fixtures.matching import normalise

_MOST_EVIDENCE = 6


def made(
    history: History,
    kind: ProbeType,
    template: str,
    facts: Sequence[ExpectedFact],
    origin: str,
    values: Mapping[str, str] | None = None,
    *,
    key: AnswerKey | None = None,
) -> Probe:
    """Return a probe worded by a template.

    Args:
        history: What it is about; gives the language.
        kind: Its type.
        template: Name of the wording.
        facts: What a correct answer holds.
        origin: Kind of source, written as ``mechanical:ORIGIN``.
        values: What is put into the wording, beside the facts.
        key: What a careful reader would list.
    """
    words = wordings(history.language)
    listed = words.join.join(item.fact for item in facts)
    question, answer = words.probes[template].filled({**(values or {}), "facts": listed})
    return draft(history, kind, question, facts, answer, f"mechanical:{origin}", key)


def path_fact(history: History, path: str, messages: Sequence[int]) -> ExpectedFact:
    """Return a file as a fact; its bare name counts too where no other file has it.

    Args:
        history: Where it stands.
        path: The file.
        messages: Indices of messages that may say so; evidence is those that do, the first and
            the latest of many.
    """
    name = posixpath.basename(path)
    forms = [path]
    if name != path and _is_unique(history, path, name):
        forms.append(name)
    return fact(path, evidence(history, forms, messages), forms[1:])


def evidence(history: History, forms: Sequence[str], among: Sequence[int]) -> list[int]:
    """Return which messages state one of some forms; of many the first and the latest."""
    stated = history.stated_in(forms, among)
    half = _MOST_EVIDENCE // 2
    return stated if len(stated) <= _MOST_EVIDENCE else [*stated[:half], *stated[-half:]]


def _is_unique(history: History, path: str, name: str) -> bool:
    same = [known for known in history.files if posixpath.basename(known) == name]
    if any(known not in (path, name) for known in same):
        return False
    bare, paths = normalise(name), [normalise(path)]
    return not any(others(bare, paths, text.normalised) for text in history.texts)
