"""Superseded values that a state gives as current."""

import pytest

from compression_eval.facts.stale import stale_forms, stale_values
from compression_eval.fixtures.banks import ExpectedFact
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import value_markers


def fact(**fields: object) -> ExpectedFact:
    return ExpectedFact.model_validate(fields)


POOL = fact(
    fact="max_connections=8", any_of=["max_connections: 8"], superseded=["max_connections=24", "24"]
)


@pytest.mark.parametrize(
    ("given", "value", "forms"),
    [
        (POOL, "24", ("max_connections=24", "max_connections:24")),
        (POOL, "max_connections=24", ("max_connections=24", "max_connections:24")),
        (fact(fact="360 s", any_of=["360"], superseded=["240"]), "240", ("240 s",)),
        (fact(fact="70 s", any_of=["70 seconds"]), "47 s", ("47 s", "47 seconds")),
        (fact(fact="attempts=3", any_of=["3 attempts"]), "attempts=5", ("attempts=5",)),
        (fact(fact="w3"), "canary on w1", ("canary on w1",)),
        (fact(fact="Mon 07:20"), "Mon 06:30", ("Mon 06:30",)),
        (fact(fact="prompts/new.md"), "prompts/old.md", ("prompts/old.md",)),
        # A bare number of a fact without one is nothing that could be looked for.
        (fact(fact="the weekend"), "24", ()),
    ],
)
def test_by_what_a_superseded_value_is_recognised(
    given: ExpectedFact, value: str, forms: tuple[str, ...]
) -> None:
    assert stale_forms(given, value) == forms


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("en", "- pool: max_connections=24", ["max_connections=24", "24"]),
        ("en", "- max_connections: 24", ["max_connections=24", "24"]),
        ("en", "- max_connections was changed from max_connections=24 to a lower value.", []),
        ("en", "- max_connections=24 was replaced", []),
        ("en", "- 24 workers are up", []),
        ("en", "- nothing of it", []),
        ("zh", "不再是 max_connections=24", []),
        ("zh", "max_connections=24", ["max_connections=24", "24"]),
    ],
)
def test_what_a_state_gives_as_current(language: Language, text: str, found: list[str]) -> None:
    assert stale_values(POOL, text, value_markers(language)) == found
