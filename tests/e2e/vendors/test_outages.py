"""What is between us and the compressor's vendor is an error of the sample, not its failure."""

import json
from pathlib import Path

import pytest
from inspect_ai import eval_retry

from tests.e2e import small
from tests.e2e.scripted import COMPRESSES, ScriptedModel, Scripts
from tests.e2e.vendors.conftest import Setup, compress, models_of
from tests.e2e.vendors.wire import Broken, Failed

READS_JSON = """
import json
from inspect_ai.model import get_model

async def reads_json(messages):
    return json.loads((await get_model(role="compressor").generate("JSON!")).completion)
"""

NO_RETRIES = {"max_retries": 0, "fail_on_error": False}
ONE_SAMPLE = {**NO_RETRIES, "limit": 1}

OUTAGES: dict[str, Failed | Broken] = {
    "no key": Failed(401, "authentication_error", "invalid x-api-key", "invalid_api_key"),
    "no quota": Failed(429, "insufficient_quota", "You exceeded your current quota", "quota"),
    "no credit": Failed(400, "invalid_request_error", "Your credit balance is too low"),
    "no payment": Failed(400, "billing_error", "Your account is not active"),
    "connection lost": Failed(0, "", ""),
    "a page": Broken("<html><h1>Log in to the Wi-Fi</h1></html>", "text/html"),
    "no body": Broken(""),
}


@pytest.mark.parametrize(
    ("interface", "name"),
    [
        ("openai chat", "no quota"),
        ("openai chat", "connection lost"),
        ("anthropic", "no credit"),
        ("anthropic", "no payment"),
        ("openai responses", "no body"),
        ("anthropic", "a page"),
    ],
)
def test_an_outage_of_the_compressor_can_be_retried(
    interface: str, name: str, request: pytest.FixtureRequest, tiny: Path, log_dir: Path
) -> None:
    either = models_of(interface, request)
    either.vendor.speeches[either.compresses] = lambda _: OUTAGES[name]
    first = either.run(log_dir, tiny, options=ONE_SAMPLE)
    assert [sample.error is not None for sample in small.samples(first, "error")] == [True]
    assert not list(log_dir.rglob("*.state.gz")), "an outage is never kept"
    assert either.vendor.of(either.answers) == []
    either.vendor.speeches[either.compresses] = compress
    again = eval_retry(first, log_dir=str(log_dir), display="log")[0]
    assert small.means(again)["overall"] == 4
    assert small.means(again)["failed_states"] == 0


def test_a_refused_request_that_speaks_of_billing_is_the_compressions_failure(
    either: Setup, tiny: Path, log_dir: Path
) -> None:
    said = "Invalid schema for function 'create_billing_invoice': see your billing settings"
    either.vendor.speeches[either.compresses] = lambda _: Failed(
        400, "invalid_request_error", said, "invalid_function_parameters"
    )
    log = either.run(log_dir, tiny, options=NO_RETRIES)
    for sample in small.samples(log, "error"):
        assert sample.error is None
        assert small.state(sample).status == "error"
        assert said[:40] in small.state(sample).failure[:200], "a failure begins with its reason"


@pytest.mark.parametrize("by_provider", [True, False])
def test_what_a_provider_may_pass_is_an_outage_only_where_the_provider_met_it(
    by_provider: bool,
    scripts: Scripts,
    tiny: Path,
    tmp_path: Path,
    log_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ScriptedModel, "should_retry", lambda _, ex: isinstance(ex, ValueError))
    scripts[COMPRESSES].reply = lambda _: json.loads("<html>") if by_provider else "<html>"
    mine = tmp_path / "mine.py"
    mine.write_text(READS_JSON, encoding="utf-8")
    log = small.run(
        log_dir,
        tiny,
        epochs=1,
        compressor=f"{mine}@reads_json",
        compressor_args={},
        options=NO_RETRIES,
    )
    for sample in small.samples(log, "error"):
        assert (sample.error is not None) == by_provider
        if not by_provider:
            assert "JSONDecodeError" in small.state(sample).failure
