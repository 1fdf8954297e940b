"""What the index is for: the files of the answer keys, in the state and in the answers."""

import pytest

from compression_eval.compressors.registry import compressor_spec
from compression_eval.file_ops.calls import calls_of_fixture
from compression_eval.file_ops.ledger import inventory_of
from compression_eval.file_ops.tools import read_calls
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_pair
from tests.compressors.test_artifacts import OPERATIONS, run, shown


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
