"""What the index is for: the files of the answer keys, in the state and in the answers."""

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, Model, get_model

from compression_eval.compressors.registry import compressor_spec
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.facts.records import track
from compression_eval.file_ops.calls import calls_of_fixture
from compression_eval.file_ops.ledger import inventory_of
from compression_eval.file_ops.naming import history_files
from compression_eval.file_ops.tools import read_calls
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import FixtureWithBank, load_pair
from compression_eval.grading.artifact_files import file_findings, key_of
from tests.compressors.test_artifacts import OPERATIONS, run, shown

MANY = 60
"""With more files in the history an index of its default size leaves some out."""


async def recalls(pair: FixtureWithBank, compressor: str, model: Model) -> tuple[list[float], int]:
    """Return the file recall of each artifact answer from a compressed state, and its tokens."""
    cut = len(pair.fixture.messages)
    spec = compressor_spec(compressor)
    probes = [probe for probe in pair.bank.probes if probe.type == "artifact" and key_of(probe)]
    plan = CompressionPlan(pair.fixture, [], (cut,), spec, track(pair.fixture, cut, probes))
    state = await compress(plan, 0, model)
    assert state.status == "ok", state.failure
    files = history_files(pair.fixture.messages)
    found: list[float] = []
    for probe in probes:
        output = await model.generate([*state.messages, ChatMessageUser(content=probe.question)])
        found.append(file_findings(probe, output.completion, files).recall)
    if compressor.endswith("+artifacts"):
        missing = [fact.fact for fact in state.facts if not fact.in_state]
        assert not missing or len(files) > MANY, missing
    return found, state.state_tokens


@pytest.mark.slow
def test_the_index_raises_the_recall_of_files_with_the_same_strategy() -> None:
    async def measure() -> dict[str, tuple[list[float], list[int]]]:
        model = get_model("embedded/lexical")
        result: dict[str, tuple[list[float], list[int]]] = {}
        for compressor in ("anchored", "anchored+artifacts"):
            shares: list[float] = []
            tokens: list[int] = []
            for path in shipped_fixtures().values():
                found, cost = await recalls(load_pair(path), compressor, model)
                shares.extend(found)
                tokens.append(cost)
            result[compressor] = shares, tokens
        return result

    measured = anyio.run(measure)
    plain, plain_tokens = measured["anchored"]
    wrapped, wrapped_tokens = measured["anchored+artifacts"]
    assert sum(wrapped) > sum(plain) + 0.2 * len(plain)
    costs = [after - before for before, after in zip(plain_tokens, wrapped_tokens, strict=True)]
    assert all(0 < cost <= 810 for cost in costs), costs


@pytest.mark.parametrize("name", ["pr-triage", "feature-impl", "zh-log-rotation"])
def test_on_shipped_fixtures_every_changed_file_survives_several_cycles(name: str) -> None:
    pair = load_pair(shipped_fixtures()[name])
    end = len(pair.fixture.messages)
    calls = [str(message.tool_calls) for message in pair.fixture.messages]
    inventory = inventory_of(read_calls(calls_of_fixture(pair.fixture.messages)).events)
    turns = [
        n for n, message in enumerate(pair.fixture.messages) if message.role == "user" and n > 9
    ]
    changed = ("created", "modified", "renamed", "deleted")
    for cuts, statuses in (
        ((end,), (*changed, "read")),
        # That a name which was only read is a file's may show later, when its call is gone.
        ((turns[len(turns) // 3], turns[-1], end), changed),
    ):
        given = {"index_tokens": 30 * end, "tail_tokens": 300}
        state, _ = run(
            compressor_spec("anchored+artifacts", given), pair.fixture, cuts, lambda _: OPERATIONS
        )
        assert state.status == "ok", state.failure
        text = shown(state)
        for path in inventory.with_status(*statuses):
            # Which files a pattern meant is known from a listing, which may be gone by then.
            by_name = any(path.rpartition("/")[2] in call for call in calls)
            assert f"- {path}" in text or not by_name, (cuts, path)
