"""The published versions as they are, on a shipped fixture.

They are run where they are installed: ``compression-eval compressors install hermes --version V``
for each, then ``pytest -m slow``.
"""

import pytest

from compression_eval.compressors.hermes import environment_folder, python_of
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_fixture
from tests.compressors.arms import compressed

pytestmark = pytest.mark.slow

SUMMARY = "## Goal\nTriage of PR 2187.\n## Key Decisions\nChanges were requested."

LEFT = {"0.13.0": (11, 0.85), "0.18.2": (14, 0.79), "0.19.0": (14, 0.78)}
"""Messages left of the 61 of ``pr-triage``, and the share of the tokens that is gone."""


@pytest.mark.parametrize("version", LEFT)
def test_what_each_version_leaves(version: str) -> None:
    if not python_of(environment_folder(version)).is_file():
        pytest.skip(f"hermes-agent {version} is not installed")
    fixture = load_fixture(shipped_fixtures()["pr-triage"])
    arguments = {"version": version, "focus_topic": "envelopes"}
    state, asked = compressed(fixture, "hermes", arguments, lambda _: SUMMARY)
    assert state.status == "ok", state.failure
    messages, removed = LEFT[version]
    assert len(state.messages) == messages
    assert state.tokens_removed == pytest.approx(removed, abs=0.01)
    assert state.regions[0] == "head"
    assert sum("Changes were requested." in message.text for message in state.messages) == 1
    (prompt,) = [messages[0].text for messages in asked]
    assert "envelopes" in prompt
    assert ("The current date is 2026-09-01" in prompt) == (version != "0.13.0")
