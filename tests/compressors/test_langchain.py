"""LangChain's middleware behind the strategy; skipped where the package is not installed."""

import sys

import pytest

from compression_eval.compressors.registry import compressor_spec
from compression_eval.errors import DataError
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed, session
from tests.compressors.conftest import conversation_fixture

KEEP = {"keep": ["messages", 6]}


@pytest.fixture
def _installed() -> None:
    pytest.importorskip("langchain")


def test_without_the_package_it_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "langchain", None)
    with pytest.raises(
        DataError, match=r"needs the extra langchain: pip install -e '\.\[langchain\]'"
    ):
        compressor_spec("langchain")


@pytest.mark.usefixtures("_installed")
class TestInstalled:
    def test_the_last_messages_stay_with_their_ids(self, fixture: Fixture) -> None:
        state, asked = compressed(fixture, "langchain", KEEP, lambda _: "Their summary.")
        assert state.status == "ok", state.failure
        assert [message.role for message in state.messages[:2]] == ["system", "user"]
        assert state.messages[1].text.endswith("Their summary.")
        # Six would begin with a result, whose call is kept as well.
        assert [message.id for message in state.messages[2:]] == [f"m{i}" for i in range(22, 29)]
        assert len(asked) == 1
        assert state.cycles[0].model_calls == 1
        assert "You are a coding agent." not in asked[0][-1].text

    def test_the_model_reads_only_the_newest_4000_tokens(self) -> None:
        fixture = conversation_fixture(60)
        state, asked = compressed(fixture, "langchain")
        assert state.status == "ok", state.failure
        assert "code E000" not in asked[0][-1].text
        assert "code E4800" in asked[0][-1].text
        _, asked = compressed(fixture, "langchain", {"trim_tokens_to_summarize": None})
        assert "code E000" in asked[0][-1].text

    def test_a_fixed_sentence_instead_of_a_summary_is_a_fallback(self) -> None:
        many = [("", "bash", {"command": str(n)}, "word " * 600) for n in range(20)]
        state, asked = compressed(session("Go.", *many), "langchain", KEEP)
        assert asked == []
        assert state.status == "fallback"
        assert "no user message in the last 4000 tokens" in state.failure

    def test_the_next_cycle_reads_the_earlier_summary(self, fixture: Fixture) -> None:
        replies = iter(["First.", "Second."])
        state, asked = compressed(
            fixture, "langchain", KEEP, lambda _: next(replies), (19, len(fixture.messages))
        )
        assert state.status == "ok", state.failure
        assert "First." in asked[1][-1].text
        text = "\n".join(message.text for message in state.messages)
        assert "Second." in text
        assert "First." not in text

    def test_nothing_is_recorded_elsewhere(
        self, fixture: Fixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from langsmith import Client, tracing_context

        sent: list[object] = []
        monkeypatch.setattr(Client, "create_run", lambda *_, **kwargs: sent.append(kwargs))
        client = Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)
        with tracing_context(enabled=True, client=client):
            state, _ = compressed(fixture, "langchain", KEEP)
        assert state.status == "ok", state.failure
        assert sent == []
