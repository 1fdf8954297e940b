"""The vendors' own compaction through whole runs: compress, answer from what came back, grade."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from inspect_ai.event import InfoEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

from compression_eval.compressors.vendors import vendor_call
from compression_eval.errors import DataError
from tests.compressors.vendors.anthropic_rules import SUMMARY, AnthropicRules
from tests.compressors.vendors.openai_rules import ITEM_TOKENS, OpenAIRules
from tests.e2e import small
from tests.e2e.scripted import Scripts
from tests.e2e.vendors.server import serving
from tests.e2e.vendors.wire import Asked, Vendor

GPT, CLAUDE = "gpt-5.1", "claude-sonnet-4-6"


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "not-a-key")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)


class Run:
    """Runs whose answers and compressions come from one fake vendor."""

    def __init__(self, vendor: Vendor, model: str, address: str, log_dir: Path, tiny: Path) -> None:
        self.vendor = vendor
        self.model = model
        self.address = address
        self.log_dir = log_dir
        self.tiny = tiny

    def __call__(self, compressor: str, **given: Any) -> EvalLog:
        return small.run(
            self.log_dir,
            self.tiny,
            **{
                "compressor": compressor,
                "compressor_args": {},
                "model": self.model,
                "model_roles": {"grader": small.ROLES["grader"]},
                "epochs": 1,
                "options": {"model_base_url": self.address, "max_retries": 1},
                **given,
            },
        )

    @property
    def answered(self) -> list[Asked]:
        """The requests that put a probe."""
        questions = [probe["question"] for probe in small.bank()["probes"]]
        return [asked for asked in self.vendor.asked if any(q in asked.text for q in questions)]


@pytest.fixture
def openai_run(log_dir: Path, tiny: Path, scripts: Scripts) -> Iterator[Run]:
    rules = OpenAIRules()
    vendor = Vendor({GPT: rules.speak})
    with serving(vendor, cast(Any, rules)) as address:
        yield Run(vendor, f"openai/{GPT}", f"{address}/v1", log_dir, tiny)
    assert [*vendor.refused, *rules.refused] == []


@pytest.fixture
def anthropic_run(log_dir: Path, tiny: Path, scripts: Scripts) -> Iterator[Run]:
    rules = AnthropicRules()
    vendor = Vendor({CLAUDE: rules.speak})
    with serving(vendor, cast(Any, rules)) as address:
        yield Run(vendor, f"anthropic/{CLAUDE}", address, log_dir, tiny)
    assert [*vendor.refused, *rules.refused] == []


def test_openai_answers_from_its_own_item_which_the_grader_is_not_shown(
    openai_run: Run, scripts: Scripts
) -> None:
    log = openai_run("openai-compact")
    samples = small.samples(log)
    assert len(openai_run.answered) == len(samples) == small.PROBES
    paths = [asked.path for asked in openai_run.vendor.asked]
    assert paths.count("/v1/responses/compact") == 1
    for asked in openai_run.answered:
        kinds = [item["type"] for item in asked.body["input"]]
        assert kinds.count("compaction") == 1
    for sample in samples:
        state = small.state(sample)
        assert (state.status, state.readable) == ("ok", False)
        assert state.state_tokens > ITEM_TOKENS
        assert [fact.in_state for fact in state.facts] == [None]
        assert state.cycles[0].output_tokens == ITEM_TOKENS
    means = small.means(log)
    assert means["failed_states"] == 0
    assert means["overall"] == means["overall"], "graded"
    assert means["fact_survival"] != means["fact_survival"], "not measurable, so NaN and not 0"
    graded = [call.text for call in scripts["grades"].calls]
    assert len(graded) == small.PROBES
    assert not any('"compacted_context":' in text or "gAAA" in text for text in graded)


def test_another_vendors_model_cannot_answer_from_an_item(
    openai_run: Run, scripts: Scripts
) -> None:
    compressing = get_model(f"openai/{GPT}", base_url=openai_run.address, memoize=False)
    roles = {**small.ROLES, "compressor": compressing}
    with pytest.raises(DataError, match="scripted/answers is to answer"):
        openai_run("openai-compact", model="scripted/answers", model_roles=roles, options={})
    assert openai_run.vendor.asked == []


def test_anthropic_answers_from_its_own_block(anthropic_run: Run) -> None:
    log = anthropic_run("anthropic-edit")
    samples = small.samples(log)
    assert {(small.state(s).status, small.state(s).failure) for s in samples} == {("ok", "")}
    assert len(anthropic_run.answered) == small.PROBES
    for asked in anthropic_run.answered:
        block = asked.body["messages"][0]["content"][0]
        assert (block["type"], block["content"]) == ("compaction", SUMMARY)
        assert asked.body["tool_choice"] == {"type": "none"}
    means = small.means(log)
    assert means["failed_states"] == 0
    assert means["fact_survival"] > 0
    events = [event for sample in samples for event in sample.events]
    calls = [call for e in events if isinstance(e, InfoEvent) and (call := vendor_call(e))]
    assert [call.fed_messages > 1 for call in calls] == [True]
