"""Changes to a grading request that must not move a score."""

import functools
from collections.abc import Sequence
from importlib.resources import files
from typing import Literal

import yaml

from compression_eval.calibration.models import Kind
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import Criterion, Rubric, load_rubric

Variant = Literal["original", "criteria_reversed", "padded", "method_named", "language_swapped"]

ORIGINAL: Variant = "original"

_OTHER_LANGUAGE: dict[Language, Language] = {"en": "zh", "zh": "ja", "ja": "en"}


def variants_of(probe: Probe, kind: Kind) -> list[Variant]:
    """Return the changes that an answer can go through without being worth more or less.

    Words around an answer break a requested format, and are an answer where there was none.

    Args:
        probe: What was asked.
        kind: What is special about the answer.
    """
    found: list[Variant] = ["criteria_reversed", "language_swapped"]
    if probe.format is None and kind not in ("abstention", "refetch"):
        found += ["padded", "method_named"]
    return found


def varied_answer(answer: str, variant: Variant, language: Language) -> str:
    """Return the answer as the grader gets it.

    Args:
        answer: As it stands in the set.
        variant: The change.
        language: The fixture's language.
    """
    if variant not in ("padded", "method_named"):
        return answer
    return _texts()[language][variant].replace("{answer}", answer)


def varied_rubric(
    probe: Probe, variant: Variant, language: Language
) -> tuple[Rubric, Sequence[Criterion]]:
    """Return the rubric and the criteria, in the order in which they are asked for.

    Args:
        probe: What was asked.
        variant: The change.
        language: The language to grade in, if it is not swapped.
    """
    rubric = load_rubric(_OTHER_LANGUAGE[language] if variant == "language_swapped" else language)
    criteria = rubric.criteria_for(probe)
    return rubric, criteria[::-1] if variant == "criteria_reversed" else criteria


@functools.cache
def _texts() -> dict[str, dict[str, str]]:
    source = (files(__package__) / "variants.yaml").read_text(encoding="utf-8")
    texts: dict[str, dict[str, str]] = yaml.safe_load(source)
    return texts
