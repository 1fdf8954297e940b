"""Facts that a redactor would alter: they measure the redactor, and not what a summary kept.

Some agents mask what looks like a secret before they summarise, and take plain settings along
(``MAX_TOKENS=2600``). The shapes stand in ``redactors.yaml``.
"""

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict

from compression_eval.authoring.history import History
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.errors import shorten
from compression_eval.fixtures.findings import Finding
from compression_eval.fixtures.matching import Text

_MASK = "***"


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    pattern: str


class _Redactor(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    shapes: list[_Shape]


@dataclass(frozen=True)
class _Rule:
    redactor: str
    shape: str
    apply: Callable[[str], str]


def redaction_findings(probe: Probe, history: History) -> Iterator[Finding]:
    """Warn of facts that no message would still state once a redactor had been over the history.

    Args:
        probe: The probe.
        history: What lies before its cut.
    """
    for position, fact in enumerate(probe.expected_facts):
        stating = history.stated_in(fact.forms)
        sources = [history.messages[index].searchable() for index in stating]
        for rule in _rules():
            # One message that is left as it is keeps the fact: the others need not be read.
            if sources and all(_lost(rule, source, fact.forms) for source in sources):
                text = (
                    f"{shorten(fact.fact)} is masked by the redactor of {rule.redactor} "
                    f"wherever it stands ({rule.shape})"
                )
                yield Finding("warning", f".expected_facts[{position}]", text)
                break


def _lost(rule: _Rule, source: str, forms: list[str]) -> bool:
    masked = rule.apply(source)
    return masked != source and not Text(masked).has_any(forms)


@functools.cache
def _rules() -> tuple[_Rule, ...]:
    content = (files(__package__) / "redactors.yaml").read_text(encoding="utf-8")
    redactors = [_Redactor.model_validate(item) for item in yaml.safe_load(content)]
    return tuple(
        _Rule(redactor.name, shape.name, functools.partial(_mask, re.compile(shape.pattern)))
        for redactor in redactors
        for shape in redactor.shapes
    )


def _mask(pattern: re.Pattern[str], text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        start, end = (place - match.start() for place in match.span("masked"))
        return match[0][:start] + _MASK + match[0][end:]

    return pattern.sub(replaced, text)
