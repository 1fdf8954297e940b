"""The wording of mechanically made probes, as data, one file per language."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from compression_eval.fixtures.models import Language

_PLACE = re.compile(r"\{(\w+)\}")


class Wording(BaseModel):
    """A question and its answer, with places for values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    answer: str

    def filled(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Return question and answer with values in their places.

        Values come from conversations: each is put in as it is, and never read as a place itself.
        """
        return _filled(self.question, values), _filled(self.answer, values)


class Wordings(BaseModel):
    """All texts of one language."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    language_name: str
    """As the instructions for a model name it."""
    join: str
    """What stands between the items of a list."""
    only_tools: str
    """Added to a question about files where commands may have touched others."""
    future: str
    """Opens a question about what the recorded agent went on to use."""
    probes: dict[str, Wording]


@cache
def wordings(language: Language) -> Wordings:
    """Return the texts of one language."""
    text = (files(__package__) / f"{language}.yaml").read_text(encoding="utf-8")
    data: Any = yaml.safe_load(text)
    return Wordings.model_validate(data)


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values[match[1]], template)
