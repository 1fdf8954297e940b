"""Both vendors with their compaction, and one compression through each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
from inspect_ai.model import Model, get_model

from compression_eval.compressors.state import State
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed
from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.anthropic_rules import AnthropicRules
from tests.compressors.vendors.openai_rules import OpenAIRules
from tests.e2e.vendors.server import serving
from tests.e2e.vendors.wire import Vendor

PROBE = Probe.model_validate(
    {
        "id": "p",
        "type": "recall",
        "question": "?",
        "expected_facts": [{"fact": "E000", "evidence": [3]}, "E4401"],
    }
)
CLAUDE = "claude-sonnet-4-6"
GPT = "gpt-5.1"


@dataclass
class Service:
    """A vendor on this machine, and a model that is reached there."""

    rules: Any
    vendor: Vendor
    model: Model
    address: str

    @property
    def refused(self) -> list[str]:
        """Why requests were not accepted."""
        return [*self.vendor.refused, *self.rules.refused]

    def compress(
        self,
        compressor: str,
        arguments: Mapping[str, Any] | None = None,
        cuts: tuple[int, ...] = (),
        fixture: Fixture | None = None,
    ) -> State:
        """Compress a conversation once; by default the small one, at its end."""
        return compressed(
            fixture or conversation_fixture(),
            compressor,
            arguments,
            cuts=cuts,
            model=self.model,
            probes=[PROBE],
        )[0]


def _service(rules: Any, provider: str, name: str, path: str) -> Iterator[Service]:
    vendor = Vendor({name: rules.speak})
    with serving(vendor, cast(Any, rules)) as address:
        # No model of this test may be reused: the address is new each time.
        model = get_model(
            f"{provider}/{name}", base_url=f"{address}{path}", api_key="not-a-key", memoize=False
        )
        yield Service(rules, vendor, model, address)


@pytest.fixture(autouse=True)
def _no_model_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INSPECT_EVAL_MODEL", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)


@pytest.fixture
def openai() -> Iterator[Service]:
    yield from _service(OpenAIRules(), "openai", GPT, "/v1")


@pytest.fixture
def anthropic() -> Iterator[Service]:
    yield from _service(AnthropicRules(), "anthropic", CLAUDE, "")


def facts(state: State) -> dict[str, tuple[bool | None, bool | None]]:
    """Return for each fact whether it was fed and whether it is in the state."""
    return {record.fact: (record.fed, record.in_state) for record in state.facts}
