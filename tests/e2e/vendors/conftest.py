"""Both vendors as servers on this machine, with well-behaved models."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog

from tests.e2e import scripted, small
from tests.e2e.vendors import anthropic_wire, openai_wire
from tests.e2e.vendors.server import serving
from tests.e2e.vendors.wire import Asked, Vendor


def answer(asked: Asked) -> str:
    """Answer any question."""
    return f"The code was E4401 (reply {asked.number})."


def grade(asked: Asked) -> str:
    """Grade whatever is asked for."""
    return scripted.grading(scripted.criteria_in(asked.text), scripted.facts_in(asked.text))


def compress(asked: Asked) -> str:
    """Add one entry to the anchored memory."""
    return scripted.operations(f"Logins failed with E4401; summary {asked.number}.")


@pytest.fixture(scope="session")
def openai_server() -> Iterator[tuple[Vendor, str]]:
    """Serve for all tests: Inspect keeps a model's client, and with it the address."""
    vendor = Vendor()
    with serving(vendor, openai_wire) as address:
        yield vendor, address


@pytest.fixture(scope="session")
def anthropic_server() -> Iterator[tuple[Vendor, str]]:
    """Serve for all tests."""
    vendor = Vendor()
    with serving(vendor, anthropic_wire) as address:
        yield vendor, address


@pytest.fixture
def openai(openai_server: tuple[Vendor, str], monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """OpenAI: gpt-4o and gpt-5 answer, gpt-4o-mini grades, gpt-4.1-mini compresses."""
    vendor, address = openai_server
    vendor.begin(
        {"gpt-4o": answer, "gpt-5": answer, "gpt-4o-mini": grade, "gpt-4.1-mini": compress}
    )
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    return vendor


@pytest.fixture
def anthropic(anthropic_server: tuple[Vendor, str], monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """Anthropic: Sonnet answers, Opus grades, Haiku compresses."""
    vendor, address = anthropic_server
    vendor.begin(
        {"claude-sonnet-4-5": answer, "claude-opus-4-5": grade, "claude-haiku-4-5": compress}
    )
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    return vendor


@dataclass(frozen=True)
class Setup:
    """Models of one vendor in all three roles."""

    vendor: Vendor
    provider: str
    answers: str
    grades: str
    compresses: str

    @property
    def is_anthropic(self) -> bool:
        """Whether it is Anthropic's interface, with blocks and declared tools."""
        return self.provider == "anthropic"

    def run(self, log_dir: Path, fixture: Path, **given: Any) -> EvalLog:
        """Run the task with each model in its role; one epoch if not told otherwise."""
        roles = {
            "grader": f"{self.provider}/{self.grades}",
            "compressor": f"{self.provider}/{self.compresses}",
        }
        given = {"epochs": 1, "model_roles": roles, "options": {"max_retries": 2}, **given}
        return small.run(log_dir, fixture, model=f"{self.provider}/{self.answers}", **given)

    def counts(self) -> tuple[int, int, int]:
        """Return how many requests came to compress, to answer and to grade."""
        models = (self.compresses, self.answers, self.grades)
        compresses, answers, grades = (len(self.vendor.of(model)) for model in models)
        return compresses, answers, grades


def models_of(name: str, request: pytest.FixtureRequest) -> Setup:
    """Return the models behind an interface."""
    if name == "anthropic":
        vendor: Vendor = request.getfixturevalue("anthropic")
        models = ("claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5")
        return Setup(vendor, "anthropic", *models)
    answers = "gpt-4o" if name == "openai chat" else "gpt-5"
    vendor = request.getfixturevalue("openai")
    return Setup(vendor, "openai", answers, "gpt-4o-mini", "gpt-4.1-mini")


@pytest.fixture(params=["openai chat", "openai responses", "anthropic"])
def setup(request: pytest.FixtureRequest) -> Setup:
    """Each interface in turn."""
    return models_of(request.param, request)


@pytest.fixture(params=["openai chat", "anthropic"])
def either(request: pytest.FixtureRequest) -> Setup:
    """Each vendor in turn, for what does not depend on how the answering model is asked."""
    return models_of(request.param, request)
