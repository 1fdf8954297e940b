"""Whether an answer says nothing, or says that it does not know."""

import re

from compression_eval.facts.matching import Text
from compression_eval.fixtures.banks import Probe
from compression_eval.grading.rubric_models import Abstention

_LONGEST = 600
"""An answer longer than this, in letters of the Latin script, says more than that."""

_EDGES = " \t\r\n.!?。！？…*_`'\"「」“”()（）{}[]"
_SENTENCES = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
_WIDE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uac00-\ud7af]")


def abstained(answer: str, probe: Probe, abstention: Abstention) -> bool:
    """Return whether an answer is empty or says that it does not know.

    An answer that holds an expected fact, that goes on at length, or that says anything beside
    not knowing has not abstained, whatever it says it is unsure about.

    Args:
        answer: What the model said.
        probe: The question with its expected facts.
        abstention: How the answer's language says so.
    """
    plain = answer.strip(_EDGES).casefold()
    if not plain:
        return True
    if plain in {word.casefold() for word in abstention.whole}:
        return True
    text = Text(answer)
    if len(plain) + 2 * len(_WIDE.findall(plain)) > _LONGEST:
        return False
    if any(text.has_any(fact.forms) for fact in probe.expected_facts):
        return False
    phrases = [phrase.casefold() for phrase in abstention.phrases]
    sentences = [part for part in _SENTENCES.split(plain) if part.strip(_EDGES)]
    return all(any(phrase in part for phrase in phrases) for part in sentences)
