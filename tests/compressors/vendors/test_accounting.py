"""What a vendor billed, as it is added up and as the log shows it."""

from typing import Any

import pytest
from anthropic.types.beta import BetaUsage
from inspect_ai.event import InfoEvent

from compression_eval.compressors.vendors.anthropic_api import billed
from compression_eval.compressors.vendors.calls import SOURCE, VendorCall, vendor_call


def entry(kind: str, read: int, written: int) -> dict[str, Any]:
    cached = {"cache_creation_input_tokens": 1, "cache_read_input_tokens": 2}
    model = {"model": "claude-sonnet-4-6"} if kind == "fallback_message" else {}
    return {"type": kind, "input_tokens": read, "output_tokens": written, **cached, **model}


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        (None, (10, 4)),
        ([], (10, 4)),
        ([entry("compaction", 900, 40)], (903, 40)),
        ([entry("compaction", 900, 40), entry("message", 50, 6)], (956, 46)),
        ([entry("message", 900, 40), entry("fallback_message", 10, 4)], (10, 4)),
    ],
)
def test_iterations_are_summed_unless_a_fallback_answered(
    iterations: list[dict[str, Any]] | None, expected: tuple[int, int]
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 4, "iterations": iterations}
    assert billed(BetaUsage.model_validate(usage)) == expected


def test_only_our_own_events_are_calls() -> None:
    call = VendorCall(
        endpoint="POST /x", model="a/b", fed_messages=3, input_tokens=5, output_tokens=2
    )
    data = call.model_dump(mode="json")
    assert vendor_call(InfoEvent(source=SOURCE, data=data)) == call
    assert vendor_call(InfoEvent(source="compression", data=data)) is None
    assert vendor_call(InfoEvent(source=SOURCE, data={"endpoint": "POST /x"})) is None
