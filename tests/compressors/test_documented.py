"""The examples of docs/compressors/user-supplied.md, as a reader would copy them."""

import re
from pathlib import Path

import pytest
from inspect_ai import eval as inspect_eval

from compression_eval import safe_head, safe_tail
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_fixture
from tests.compressors.yours import run, written
from tests.fixtures.building import assistant, call, result, system, user

PAGE = Path(__file__).parents[2] / "docs" / "compressors" / "user-supplied.md"


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, str]:
    sources = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = ("keep_ends", "references")
    return {
        name: f"{written(tmp_path, source, f'{name}.py')}@{name}"
        for name, source in zip(names, sources, strict=True)
    }


@pytest.fixture
def documented(examples: dict[str, str]) -> str:
    return examples["keep_ends"]


def test_it_leaves_no_failed_state(documented: str, tmp_path: Path) -> None:
    (log,) = inspect_eval(
        "compression_eval/compression",
        task_args={"fixtures": "all", "compressor": documented, "compressor_args": {"last": 6}},
        epochs=1,
        limit=6,  # samples take turns over the fixtures
        log_dir=str(tmp_path / "logs"),
        display="log",
        log_realtime=False,
    )
    assert log.status == "success"
    assert log.results is not None
    (failed,) = [score for score in log.results.scores if score.name == "failed_states"]
    assert [metric.value for metric in failed.metrics.values()] == [0]


def test_references_name_the_messages_that_were_removed(examples: dict[str, str]) -> None:
    fixture = load_fixture(shipped_fixtures()["401-debug"])
    cut = len(fixture.messages)
    state = run(examples["references"], {"last": 4}, fixture, (cut,))
    assert state.status == "ok", state.failure
    listed = next(m.text for m in state.messages if "read_message(number)" in m.text)
    for line in listed.splitlines()[1:]:
        number, role = line.removeprefix("- ").partition(":")[0].split()
        assert fixture.messages[int(number)].role == role


def test_a_call_stays_with_its_results() -> None:
    messages = [
        system(),
        user("a"),
        assistant("b", call("c1"), call("c2")),
        result("c1", "x"),
        result("c2", "y"),
        user("c"),
    ]
    assert [len(safe_head(messages, count)) for count in range(8)] == [0, 1, 2, 5, 5, 5, 6, 6]
    assert [len(safe_tail(messages, count)) for count in range(8)] == [0, 1, 4, 4, 4, 5, 6, 6]
    assert safe_tail(messages, 2) == messages[2:]
    assert safe_head(messages, 3) == messages[:5]
