"""What arrives at the vendors: the conversation whole and in their form, each role at its model."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import scripted, small
from tests.e2e.vendors.conftest import Setup
from tests.e2e.vendors.wire import Asked, Vendor, as_json

QUESTIONS = [probe["question"] for probe in small.bank()["probes"]]
SAMPLES = len(QUESTIONS)


def shared_start(texts: list[str]) -> str:
    """Return the longest text that all begin with."""
    first, last = min(texts), max(texts)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    return first[:length]


def items(asked: Asked) -> list[dict[str, Any]]:
    """Return the messages of a request as they were sent."""
    found: list[dict[str, Any]] = asked.body.get("messages") or asked.body["input"]
    return found


_ASKED: dict[str, list[Asked]] = {}
"""By the model that answers; several tests look at the same requests."""


@pytest.fixture
def asked(setup: Setup, tiny: Path, log_dir: Path) -> list[Asked]:
    """The answering requests about the whole, uncompressed conversation."""
    if setup.answers not in _ASKED:
        log = setup.run(log_dir, tiny, compressor="full", compressor_args={})
        assert setup.vendor.refused == []
        assert len(small.samples(log)) == SAMPLES
        _ASKED[setup.answers] = setup.vendor.of(setup.answers)
    return _ASKED[setup.answers]


def test_the_history_arrives_whole_and_paired(asked: list[Asked]) -> None:
    messages = small.conversation()["messages"]
    for request in asked:
        # Inspect gives Anthropic a placeholder where a message has calls and no text.
        texts = [p.text for p in request.parts if p.kind == "text" and p.text != "(no content)"]
        said = [m["content"] for m in messages if m["role"] != "tool" and m["content"]]
        assert texts[: len(said)] == said
        calls = [part for part in request.parts if part.kind == "call"]
        made = [call["function"] for m in messages for call in m.get("tool_calls", [])]
        assert [call.name for call in calls] == [function["name"] for function in made]
        assert [json.loads(call.text) for call in calls] == [
            json.loads(function["arguments"]) for function in made
        ]
        results = {part.id: part.text for part in request.parts if part.kind == "result"}
        assert [results[call.id] for call in calls] == [
            m["content"] for m in messages if m["role"] == "tool"
        ]


def test_the_question_comes_last_and_all_before_it_is_alike(asked: list[Asked]) -> None:
    dumps = [json.dumps(items(request)) for request in asked]
    assert sorted(next(q for q in QUESTIONS if q in dump) for dump in dumps) == sorted(QUESTIONS)
    shared = shared_start(dumps)
    for dump, request in zip(dumps, asked, strict=True):
        question = next(q for q in QUESTIONS if q in dump)
        # Nothing but the question, and the brackets and marks that close the message, differs.
        assert dump.index(question) - len(shared) <= 0
        assert request.parts[-1].text.endswith(question)
        rest = {
            key: value for key, value in request.body.items() if key not in ("messages", "input")
        }
        first = {key: value for key, value in asked[0].body.items() if key in rest}
        assert as_json(rest) == as_json(first)


def test_tools_are_declared_only_where_the_vendor_demands_it(
    asked: list[Asked], setup: Setup
) -> None:
    for request in asked:
        if setup.is_anthropic:
            assert {tool["name"] for tool in request.body["tools"]} == {"bash", "edit_file"}
            assert request.body["tool_choice"] == {"type": "none"}
        else:
            assert not request.body.get("tools")
            assert "tool_choice" not in request.body


def test_anthropic_is_told_where_the_shared_prefix_ends(
    anthropic: Vendor, tiny: Path, log_dir: Path
) -> None:
    setup = Setup(
        anthropic, "anthropic", "claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5"
    )
    setup.run(log_dir, tiny)
    for request in anthropic.of("claude-sonnet-4-5"):
        *before, question = items(request)[-1]["content"]
        assert before[-1]["cache_control"] == {"type": "ephemeral"}
        assert "cache_control" not in question
        assert "cache_control" not in request.body, "it would move the mark behind the question"
    for request in anthropic.of("claude-opus-4-5"):
        rubric, (context, question) = request.body["system"], items(request)[-1]["content"]
        assert "cache_control" in rubric[-1]
        assert "cache_control" in context
        assert "compacted_context" in context["text"]
        assert "cache_control" not in question


def test_the_grader_is_asked_in_a_form_it_can_be_held_to(
    either: Setup, tiny: Path, log_dir: Path
) -> None:
    either.run(log_dir, tiny)
    requests = either.vendor.of(either.grades)
    assert len(requests) == SAMPLES
    for request in requests:
        if either.is_anthropic:
            schema = request.body["output_format"]["schema"]
        else:
            form = request.body["response_format"]
            assert form["type"] == "json_schema"
            assert form["json_schema"]["strict"] is True
            schema = form["json_schema"]["schema"]
        known = schema["properties"]["criterionResults"]["items"]["properties"]["criterionId"]
        asked_for = scripted.criteria_in(request.text)
        assert set(asked_for) <= set(known["enum"])
        assert len(asked_for) > 5
        system = "\n".join(part.text for part in request.parts if part.role == "system")
        assert all(id_ in system for id_ in asked_for), "the rubric explains each criterion"
        assert "compacted_context" in request.parts[1].text
        assert "model_response" in request.parts[-1].text


def test_each_role_is_asked_at_its_own_model(setup: Setup, tiny: Path, log_dir: Path) -> None:
    log = setup.run(log_dir, tiny)
    small.samples(log)
    assert setup.counts() == (1, SAMPLES, SAMPLES)
    (compression,) = setup.vendor.of(setup.compresses)
    assert "current_summary" in compression.text
    assert "Logins fail." in compression.text
    assert not any("current_summary" in r.text for r in setup.vendor.of(setup.answers))
    assert not any("current_summary" in r.text for r in setup.vendor.of(setup.grades))
    usage = log.stats.role_usage
    assert usage["compressor"].output_tokens == 20
    assert usage["grader"].output_tokens == 20 * SAMPLES
    for sample in small.samples(log):
        assert small.state(sample).cycles[0].input_tokens == 200


# Inspect's own summary is not among them: it counts tokens at the vendor or downloads a vocabulary.
STRATEGIES: dict[str, dict[str, Any]] = {
    "tail": {"tail_tokens": 60},
    "regenerative": small.BUDGETS,
    "edit": {"keep_tool_uses": 1},
}


@pytest.mark.parametrize("compressor", STRATEGIES)
def test_every_state_is_one_that_the_vendor_accepts(
    compressor: str, either: Setup, tiny: Path, log_dir: Path
) -> None:
    either.vendor.speeches[either.compresses] = lambda _: "Logins failed with E4401. Limit 7."
    arguments = STRATEGIES[compressor]
    log = either.run(log_dir, tiny, compressor=compressor, compressor_args=arguments)
    assert either.vendor.refused == []
    for sample in small.samples(log):
        assert small.state(sample).status == "ok", small.state(sample).failure
        assert small.values(sample, "six_dimensions")["overall"] == 4
