"""What is recorded of a fact: what was fed, where it is, and what is in its place."""

from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ChatMessageUser

from compression_eval.compressors.registry import compressor_spec
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.facts.records import FactRecord, Region, fact_records, variants
from compression_eval.fixtures.banks import ExpectedFact, Probe
from tests.compressors.conftest import conversation_fixture, model_replying


def asking(**fact: Any) -> Probe:
    return Probe(id="p", type="recall", question="?", expected_facts=[ExpectedFact(**fact)])


POOL = asking(fact="pool_size=8", superseded=["pool_size=24"], evidence=[5])


def recorded(
    state: list[tuple[ChatMessage, Region]],
    *,
    fed: list[str] | None = None,
    readable: bool = True,
    cuts: tuple[int, ...] = (10,),
    seen: dict[bytes, list[bool]] | None = None,
) -> FactRecord:
    (record,) = fact_records(
        [POOL],
        cuts=cuts,
        fed=fed,
        state=[message for message, _ in state],
        regions=[region for _, region in state],
        readable=readable,
        seen=seen,
    )
    return record


def said(text: str) -> ChatMessage:
    return ChatMessageUser(content=text)


def test_a_stale_value_in_the_summary() -> None:
    record = recorded([(said("Settings: pool_size=24."), "summary")], fed=["pool_size=8"])
    assert (record.fed, record.in_state) == (True, False)
    assert record.superseded_in_state == ["pool_size=24"]
    assert record.variants_in_state == ["pool_size 24"]


def test_what_replicates_were_fed_is_told_apart() -> None:
    seen: dict[bytes, list[bool]] = {}
    feeds = [["pool_size=8"], ["pool_size=24"], ["pool_size=8"], ["\ud800"]]
    assert [recorded([], fed=fed, seen=seen).fed for fed in feeds] == [True, False, True, False]
    assert len(seen) == 3


def test_beside_the_fact_itself_nothing_stands_in_its_place() -> None:
    record = recorded([(said("pool_size=24"), "summary"), (said("pool_size=8"), "tail")])
    assert (record.in_state, record.regions) == (True, ["tail"])
    assert record.superseded_in_state == record.variants_in_state == []


@pytest.mark.parametrize(
    ("message", "region", "superseded", "variants"),
    [
        (said("pool_size=24"), "head", ["pool_size=24"], []),
        (ChatMessageAssistant(content="pool_size=24"), "tail", ["pool_size=24"], []),
        # A kept result shows what a file once held; it claims nothing, and was not rewritten.
        (ChatMessageTool(content="pool_size=24", tool_call_id="c"), "tail", [], []),
        (said("pool_size=99"), "tail", [], []),
        (said("pool_size=99"), "summary", [], ["pool_size 99"]),
    ],
)
def test_what_may_stand_in_the_place_of_a_fact(
    message: ChatMessage, region: Region, superseded: list[str], variants: list[str]
) -> None:
    record = recorded([(message, region)])
    assert record.superseded_in_state == superseded
    assert record.variants_in_state == variants


def test_nothing_is_said_of_a_state_that_cannot_be_read() -> None:
    record = recorded([(said("pool_size=24"), "summary")], readable=False)
    assert record.in_state is None
    assert record.superseded_in_state == record.variants_in_state == []


def test_instructions_of_a_summariser_are_not_fed_material() -> None:
    fixture = conversation_fixture()
    plan = CompressionPlan(
        fixture=fixture,
        tools=[],
        cuts=(len(fixture.messages),),
        spec=compressor_spec(
            "regenerative", {"tail_tokens": 120, "prompt": "Mind the zebra crossing."}
        ),
        tracked=[asking(fact="zebra crossing", evidence=[1]), asking(fact="E000", evidence=[3])],
    )
    model, asked = model_replying(lambda _: "A short summary.")
    state = anyio.run(compress, plan, 0, model)
    assert "zebra crossing" in asked[0][0].text
    assert [record.fed for record in state.facts] == [False, True]


POOL_FORMS = ["max_connections=8", '"max_connections": 8']


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("max_connections=24", ["max_connections 24"]),
        ("`max_connections` is set to 24.", ["max_connections 24"]),
        ('{"max_connections": 80}', ["max_connections 80"]),
        ("| max_connections | 24 |", ["max_connections 24"]),
        ("max_connections=8.", []),
        ("max_connections of 8.0", []),
        ("max_connections: 24 -> 8", []),
        ("max_connections=8 -> 24", ["max_connections 24"]),
        ("max_connections went from 24 to 8", []),
        ("pool.max_connections=24", []),
        ("max_connections_total=24", []),
        ("max_connections", []),
        ("24", []),
        ("max_connections=24 and max_connections=24, max_connections=9", None),
    ],
)
def test_variants_of_a_setting(text: str, found: list[str] | None) -> None:
    expected = ["max_connections 24", "max_connections 9"] if found is None else found
    assert variants(POOL_FORMS, text) == expected


@pytest.mark.parametrize(
    ("forms", "text", "found"),
    [
        (["Retry-After 2", "2 s"], "Retry-After: 5", ["retry-after 5"]),
        (["48 小时", "compress_after_hours = 48"], "compress_after_hours = 24", None),
        (["timeout 120", "timeout: 120"], "timeout 300", ["timeout 300"]),
        # Without a form that sets it apart as a name, a word before a number is not one.
        (["run 8815"], "run 8842", []),
        (["17 ranges"], "12 ranges", []),
        (["2026-02-24"], "2026-02-25", []),
        (["auth/session.py"], "auth/sessions.py", []),
        (["health_check_interval_s: int = 30"], "health_check_interval_s = 60", None),
    ],
)
def test_only_what_has_a_name_has_variants(
    forms: list[str], text: str, found: list[str] | None
) -> None:
    result = variants(forms, text)
    assert (result == found) if found is not None else len(result) == 1
