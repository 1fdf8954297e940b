"""The published versions as they are, on shipped fixtures.

They are run where they are installed: ``compression-eval compressors install hermes --version V``
for each, then ``pytest -m slow``.
"""

import pytest
from inspect_ai.model import Model

from compression_eval.compressors.hermes import environment_folder, python_of
from compression_eval.compressors.state import State
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed
from tests.compressors.conftest import model_replying

pytestmark = pytest.mark.slow

SUMMARY = "## Goal\nTriage of PR 2187.\n## Key Decisions\nChanges were requested."

LEFT = {
    ("0.13.0", "pr-triage"): (11, 0.85),
    ("0.18.2", "pr-triage"): (14, 0.79),
    ("0.19.0", "pr-triage"): (14, 0.78),
    ("0.13.0", "401-debug"): (176, 0.56),
    ("0.18.2", "401-debug"): (162, 0.59),
    ("0.19.0", "401-debug"): (97, 0.56),
}
"""Messages left of 61 and 178, and the share of the tokens that is gone."""


def run(version: str, fixture: str | Fixture, model: Model, cuts: tuple[int, ...] = ()) -> State:
    if not python_of(environment_folder(version)).is_file():
        pytest.skip(f"hermes-agent {version} is not installed")
    loaded = load_fixture(shipped_fixtures()[fixture]) if isinstance(fixture, str) else fixture
    arguments = {"version": version, "focus_topic": "envelopes"}
    return compressed(loaded, "hermes", arguments, cuts=cuts, model=model)[0]


@pytest.mark.parametrize(("version", "fixture"), LEFT)
def test_what_each_version_leaves(version: str, fixture: str) -> None:
    model, asked = model_replying(lambda _: SUMMARY)
    state = run(version, fixture, model)
    assert state.status == "ok", state.failure
    messages, removed = LEFT[version, fixture]
    assert len(state.messages) == messages
    assert state.tokens_removed == pytest.approx(removed, abs=0.01)
    assert state.regions[0] == "head"
    assert sum("Changes were requested." in message.text for message in state.messages) == 1
    (prompt,) = [messages[0].text for messages in asked]
    assert "envelopes" in prompt
    assert ("The current date is 2026-09-01" in prompt) == (version != "0.13.0")
