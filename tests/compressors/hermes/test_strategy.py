"""One compression through the real worker, process and endpoint; only Hermes is a stand-in."""

import os
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from inspect_ai.event import InfoEvent
from inspect_ai.log import transcript
from inspect_ai.model import GenerateConfig, Model, ModelOutput, ModelUsage, get_model

from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Fixture
from tests.compressors.conftest import model_replying
from tests.compressors.hermes.conftest import Run

PROBE = Probe.model_validate(
    {"id": "p", "type": "recall", "question": "?", "expected_facts": ["E000", "E1100", "ZZ"]}
)


def failing(error: Exception) -> tuple[Model, list[int]]:
    """A model whose every call fails; the list counts them."""
    calls: list[int] = []

    def output(*_: Any) -> ModelOutput:
        calls.append(1)
        raise error

    return get_model("mockllm/model", custom_outputs=output, memoize=False), calls


class StatusError(Exception):
    """As the clients of providers raise it."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


def test_the_state_is_what_hermes_left_and_its_call_is_recorded(run: Run, fixture: Fixture) -> None:
    model, asked = model_replying(lambda _: "E000 was seen")
    state = run(model, probes=[PROBE])
    assert state.status == "ok", state.failure
    assert state.regions == ["head", "summary", "tail", "tail", "tail"]
    assert state.messages[1].text == "[SUMMARY 1] E000 was seen"
    last = len(fixture.messages) - 1
    assert [m.id for m in state.messages[2:]] == [f"m{last - 2}", f"m{last - 1}", f"m{last}"]
    assert len(asked) == 1
    (cycle,) = state.cycles
    assert (cycle.model_calls, cycle.input_tokens, cycle.output_tokens) == (1, 10, 5)
    found = {fact.fact: (fact.fed, fact.in_state, fact.regions) for fact in state.facts}
    assert found == {
        "E000": (True, True, ["summary"]),
        "E1100": (False, True, ["tail"]),
        "ZZ": (False, False, []),
    }


def test_what_hermes_is_told_and_what_it_does_not_take(run: Run) -> None:
    seen: list[tuple[str, int | None]] = []

    def output(messages: Any, _: Any, __: Any, config: GenerateConfig) -> ModelOutput:
        seen.append((messages[0].text, config.max_tokens))
        reply = ModelOutput.from_content("mockllm/model", "s")
        reply.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        return reply

    model = get_model("mockllm/model", custom_outputs=output, memoize=False)
    before = len(transcript().events)
    run(
        model,
        focus_topic="ports",
        today=date(2026, 3, 4),
        context_length=64_000,
        constructor={"protect_last_n": 5},
    )
    ((prompt, most),) = seen
    assert most == 77
    assert prompt.startswith("Date 2026-03-04\nFocus ports\n")
    (data,) = (
        event.data
        for event in transcript().events[before:]
        if isinstance(event, InfoEvent) and event.source == "hermes"
    )
    report = cast(dict[str, Any], data)
    assert report["dropped"] == ["api_mode", "quiet_mode"]
    assert report["effective"]["config_context_length"] == 64_000
    assert report["effective"]["protect_last_n"] == 5
    assert "api_key" not in report["effective"]
    assert report["clock_frozen"] is True


def test_the_process_has_no_credentials_and_a_home_of_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-hermes")
    monkeypatch.setenv("HERMES_HOME", "/home/user/.hermes")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model, asked = model_replying(lambda _: "s")
    state = run(model, constructor={"mode": "environment"})
    assert state.status == "ok", state.failure
    prompt = asked[0][0].text
    assert "sk-not-for-hermes" not in prompt
    assert f"HERMES_HOME={tmp_path}{os.sep}compression-eval-hermes-" in prompt
    assert "files config.yaml" in prompt
    assert "HTTPS_PROXY=http://127.0.0.1:9" in prompt
    assert not list(tmp_path.glob("compression-eval-hermes-*"))


def test_a_second_cycle_gives_hermes_back_its_own_marks_and_count(
    run: Run, fixture: Fixture
) -> None:
    replies = iter(["first", "second"])
    model, asked = model_replying(lambda _: next(replies))
    state = run(model, cuts=(13, len(fixture.messages)))
    assert state.status == "ok", state.failure
    assert "[user]: [SUMMARY 1] first" in asked[1][0].text
    assert "(an earlier summary) user" in asked[1][0].text
    assert state.messages[1].text == "[SUMMARY 2] second"
    assert state.regions[0] == "head"
    assert state.messages[0].text.count("[Note]") == 1


def test_an_outage_of_the_model_is_no_failure_of_hermes(run: Run) -> None:
    model, calls = failing(StatusError(401))
    with pytest.raises(StatusError):
        run(model)
    assert len(calls) == 1


def test_openais_client_is_answered_and_a_stranger_refused_at_no_cost(run: Run) -> None:
    model, asked = model_replying(lambda messages: messages[-1].text)
    state = run(model, constructor={"mode": "clients"})
    assert state.failure == ""
    said = state.messages[1].text.removeprefix("[SUMMARY 1] ").splitlines()
    assert said == [*["stop 10"] * 2, "401 wrong key"]
    assert len(asked) == 2


def test_a_failed_call_ends_as_hermes_ends_it_and_is_not_paid_for_again(run: Run) -> None:
    model, calls = failing(ValueError("no such model"))
    state = run(model, constructor={"mode": "stubborn"})
    assert (state.status, state.messages) == ("fallback", [])
    assert "no such model" in state.failure
    assert len(calls) == 1


def test_a_refusal_is_not_a_summary(run: Run) -> None:
    output = ModelOutput.from_content("mockllm/model", "I can't", stop_reason="content_filter")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    state = run(get_model("mockllm/model", custom_outputs=[output], memoize=False))
    assert (state.status, state.failure) == ("aborted", "the summarising model refused")


@pytest.mark.parametrize(
    ("mode", "status", "reason"),
    [
        ("nothing", "not_applied", "nothing to summarise"),
        ("crash", "error", "RuntimeError: the fake broke down"),
    ],
)
def test_no_compression_is_no_state(run: Run, mode: str, status: str, reason: str) -> None:
    model, asked = model_replying(lambda _: "s")
    state = run(model, constructor={"mode": mode})
    assert state.status == status
    assert reason in state.failure
    assert asked == []


def test_a_process_that_hangs_is_ended(run: Run) -> None:
    model, _ = model_replying(lambda _: "s")
    started = time.monotonic()
    state = run(model, constructor={"mode": "slow"}, timeout=1)
    assert time.monotonic() - started < 20
    assert (state.status, state.failure) == ("error", "Hermes took longer than 1 seconds")
