"""Every strategy in an Inspect agent of any task: it compresses at its threshold and goes on."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from inspect_ai.model import CompactionStrategy

import compression_eval
from compression_eval import (
    AnchoredCompaction,
    AnthropicEditCompaction,
    AnthropicTextCompaction,
    ArtifactIndexCompaction,
    ClaudeCodeCompaction,
    ClearToolsCompaction,
    CodexCompaction,
    CommandCompaction,
    FullContext,
    LangChainCompaction,
    MaskingCompaction,
    OpenAICompaction,
    OpenHandsCompaction,
    PiCompaction,
    RecordedState,
    RegenerativeCompaction,
    TailOnly,
)
from compression_eval.compressors.registry import COMPRESSORS, compressor_spec
from tests.compressors.agents import THRESHOLD, agent_run, went_on

PROGRAM = "import json, sys; m = json.load(sys.stdin); print(json.dumps([*m[:2], *m[-2:]]))"

STRATEGIES: list[Callable[[], CompactionStrategy]] = [
    lambda: TailOnly(tail_tokens=300, threshold=THRESHOLD),
    lambda: AnchoredCompaction(tail_tokens=300, summary_tokens=200, threshold=THRESHOLD),
    lambda: RegenerativeCompaction(tail_tokens=300, threshold=THRESHOLD),
    lambda: MaskingCompaction(keep=2, threshold=THRESHOLD),
    lambda: ClearToolsCompaction(keep=2, threshold=THRESHOLD),
    lambda: ClaudeCodeCompaction(threshold=THRESHOLD),
    lambda: CodexCompaction(user_tokens=300, threshold=THRESHOLD),
    lambda: PiCompaction(keep_recent_tokens=300, threshold=THRESHOLD),
    lambda: OpenHandsCompaction(threshold=THRESHOLD),
    lambda: LangChainCompaction(
        keep=("messages", 4), trim_tokens_to_summarize=None, threshold=THRESHOLD
    ),
    lambda: CommandCompaction(command=[sys.executable, "-c", PROGRAM], threshold=THRESHOLD),
    lambda: ArtifactIndexCompaction(
        RegenerativeCompaction(tail_tokens=300, threshold=THRESHOLD), index_tokens=100
    ),
]


@pytest.mark.parametrize("make", STRATEGIES, ids=lambda make: make.__code__.co_names[0])
def test_an_agent_goes_on_after_its_context_was_compressed(
    make: Callable[[], CompactionStrategy], tmp_path: Path
) -> None:
    if "LangChain" in make.__code__.co_names[0] and find_spec("langchain") is None:
        pytest.skip("langchain is not installed")
    strategy = make()
    log = agent_run(strategy, tmp_path)
    assert log.status == "success", log.error
    assert went_on(log, type(strategy).__name__)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (FullContext, "Compaction insufficient"),
        (RecordedState, "no compaction was recorded"),
        (OpenAICompaction, "is not a model of openai"),
        (AnthropicEditCompaction, "is not a model of anthropic"),
        (AnthropicTextCompaction, "is not a model of anthropic"),
    ],
)
def test_what_an_agent_cannot_use_says_so(
    make: Callable[[], CompactionStrategy], says: str, tmp_path: Path
) -> None:
    strategy = make()
    strategy.threshold = THRESHOLD
    log = agent_run(strategy, tmp_path)
    assert log.status == "error"
    assert log.error is not None
    assert says in log.error.message


def test_every_strategy_with_a_name_is_public() -> None:
    # Hermes and LangChain may not be there, and a command has to be given.
    for name in COMPRESSORS.keys() - {"hermes", "langchain", "command"}:
        kind = type(compressor_spec(name).build())
        if not kind.__module__.startswith("inspect_ai"):
            assert getattr(compression_eval, kind.__name__) is kind
