"""Inspect's logs: samples, compactions of its own agents, sub-agents, damage."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.agent import AgentState, as_tool, react
from inspect_ai.log import EvalLog, EvalSample, write_eval_log
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    CompactionEdit,
    CompactionStrategy,
    CompactionSummary,
    CompactionTrim,
    ModelOutput,
)
from inspect_ai.tool import ToolInfo

from compression_eval.conversations.building import Built
from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.errors import DataError
from compression_eval.fixtures.models import Message
from tests.conversations.readers.reading import unknown

from .inspect_logs import NAME, agent, look, looks, path_of, read, run

FORMAT = format_named("inspect")

SUMMARY = "[CONTEXT COMPACTION SUMMARY]"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, EvalLog]]:
    """Runs an agent once for every compaction that is asked for."""
    done: dict[str, tuple[Path, EvalLog]] = {}
    strategies: dict[str, Callable[[], CompactionStrategy | None]] = {
        "none": lambda: None,
        "summary": lambda: CompactionSummary(threshold=700, memory=False),
        "edit": lambda: CompactionEdit(threshold=700, memory=False, keep_tool_uses=1),
        "trim": lambda: CompactionTrim(threshold=700, memory=False, preserve=0.5),
    }

    def log(strategy: str, name: str = "plain") -> tuple[Path, EvalLog]:
        key = f"{strategy}-{name}"
        if key not in done:
            folder = tmp_path_factory.mktemp(key)
            made = run(folder, agent(strategies[strategy]()), looks(8), name=name)
            done[key] = (path_of(made), made)
        return done[key]

    return log


def only(path: Path) -> Built:
    (built,) = read(path)
    assert unknown(built) == []
    return built


def sample_of(log: EvalLog) -> EvalSample:
    assert log.samples
    return log.samples[0]


def shape(messages: list[Message]) -> list[tuple[str, str, list[str], str | None]]:
    return [(m.role, m.text, [call.id for call in m.calls], m.tool_call_id) for m in messages]


def logged(messages: list[ChatMessage]) -> list[tuple[str, str, list[str], str | None]]:
    """What Inspect itself says was said, but for summaries."""
    found: list[tuple[str, str, list[str], str | None]] = []
    for message in messages:
        if message.text.startswith(SUMMARY):
            continue
        calls = message.tool_calls or [] if isinstance(message, ChatMessageAssistant) else []
        answered = message.tool_call_id if isinstance(message, ChatMessageTool) else None
        found.append((message.role, message.text, [call.id for call in calls], answered))
    return found


@pytest.mark.parametrize("strategy", ["none", "summary", "edit", "trim"])
@pytest.mark.parametrize("name", ["plain", "joining"])
def test_the_history_is_whole_whatever_was_compacted(
    logs: Callable[..., tuple[Path, EvalLog]], strategy: str, name: str
) -> None:
    path, log = logs(strategy, name)
    built = only(path)
    said = shape(built.fixture.messages)
    # The agent writes the answer that it submits into its last message; here it stays a call.
    *expected, last = logged(sample_of(log).messages)
    assert last[1].endswith("done")
    assert (said[-1][0], said[-1][1]) == ("tool", "done")
    assert [item for item in said if item in expected] == expected
    assert [text for _, text, _, _ in said if text.startswith("look ")] == [
        f"look {number}" for number in range(1, 9)
    ]
    assert len(said) == 2 + 2 * 9
    assert bool(built.fixture.recorded_compactions) == (strategy != "none")


def test_a_sample_has_its_model_tools_and_names(
    logs: Callable[..., tuple[Path, EvalLog]],
) -> None:
    path, log = logs("none")
    fixture = only(path).fixture
    assert fixture.model == "replayed/plain"
    assert [tool.function.name for tool in fixture.tools] == ["look", "submit"]
    assert fixture.tools[0].function.parameters["required"] == ["what"]
    assert fixture.name.startswith("inspect-")
    assert fixture.name.endswith("-epoch-1")
    assert fixture.source is not None
    version = log.eval.packages["inspect_ai"]
    assert (fixture.source.origin, fixture.source.caveats) == (f"Inspect {version} log", [])


@pytest.mark.parametrize("name", ["plain", "joining"])
def test_a_summary_is_recorded_with_what_the_agent_went_on_with(
    logs: Callable[..., tuple[Path, EvalLog]], name: str
) -> None:
    fixture = only(logs("summary", name)[0]).fixture
    first = fixture.recorded_compactions[0]
    assert (first.kind, first.trigger, first.cut) == ("summary", "threshold", 10)
    assert first.summary is not None
    assert first.summary.startswith(SUMMARY)
    assert "the port is 8080" in first.summary
    assert first.tokens_before is not None
    assert first.tokens_after is not None
    assert first.tokens_before > first.tokens_after
    state = first.state or []
    made = [item.text for item in state if isinstance(item, Message)]
    if name == "plain":
        assert state[0] == 1
        assert made == [first.summary]
    else:
        assert made == [f"Look at all.\n{first.summary}"]


def test_cleared_results_are_recorded_and_stay_in_the_history(
    logs: Callable[..., tuple[Path, EvalLog]],
) -> None:
    fixture = only(logs("edit")[0]).fixture
    first = fixture.recorded_compactions[0]
    assert (first.kind, first.summary, first.cut) == ("clear", None, 10)
    state = first.state or []
    assert [item for item in state if isinstance(item, int)] == [1, 2, 4, 6, 8, 9]
    made = [item for item in state if isinstance(item, Message)]
    assert {(item.role, item.text) for item in made} == {("tool", "(Tool result removed)")}
    assert [item.tool_call_id for item in made] == ["look-1", "look-2", "look-3"]
    assert all("removed" not in message.text for message in fixture.messages)


def test_trimmed_messages_are_recorded_and_stay_in_the_history(
    logs: Callable[..., tuple[Path, EvalLog]],
) -> None:
    first = only(logs("trim")[0]).fixture.recorded_compactions[0]
    assert (first.kind, first.cut, first.state) == ("clear", 10, [1, 6, 7, 8, 9])


@pytest.mark.parametrize("strategy", ["summary", "edit", "trim"])
def test_what_the_last_state_lost_comes_from_what_the_model_was_given(
    logs: Callable[..., tuple[Path, EvalLog]], tmp_path: Path, strategy: str
) -> None:
    """Agents behind a bridge keep only what their last compaction left."""
    path, log = logs(strategy)
    whole = only(path).fixture
    shortened = log.model_copy(deep=True)
    sample = sample_of(shortened)
    last = next(
        event for event in reversed(sample.events) if event.event == "model" and event.tools
    )
    sample.messages = [*last.input, last.output.message]
    other = tmp_path / "short.eval"
    write_eval_log(shortened, str(other))
    fixture = only(other).fixture
    assert shape(fixture.messages) == shape(whole.messages)
    assert [found.cut for found in fixture.recorded_compactions] == [
        found.cut for found in whole.recorded_compactions
    ]


def test_a_json_log_says_the_same(
    logs: Callable[..., tuple[Path, EvalLog]], tmp_path: Path
) -> None:
    path, log = logs("summary")
    other = tmp_path / "log.json"
    write_eval_log(log, str(other))
    seen = FORMAT.recognise(source_file(other))
    assert seen == "a JSON object with status and eval.task"
    assert only(other).fixture == only(path).fixture
    renamed = tmp_path / "renamed.txt"
    renamed.write_bytes(path.read_bytes())
    assert FORMAT.recognise(source_file(renamed)) == (
        "a zip archive with the header of an Inspect log"
    )
    assert only(renamed).fixture == only(path).fixture


def test_a_sub_agent_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    def script(messages: list[ChatMessage], tools: list[ToolInfo]) -> ModelOutput:
        names = {info.name for info in tools}
        if not names:
            return ModelOutput.from_content(NAME, "yes")
        if "helper" in names and messages[-1].role == "user":
            return ModelOutput.for_tool_call(NAME, "helper", {"input": "Help me."})
        if "look" in names and messages[-1].role == "user":
            return ModelOutput.for_tool_call(NAME, "look", {"what": "nothing"})
        return ModelOutput.for_tool_call(NAME, "submit", {"answer": "done"})

    helper = react(name="helper", description="Helps.", prompt="You help.", tools=[look()])
    solver = react(prompt="You lead.", tools=[as_tool(helper)])
    main, sub = read(path_of(run(tmp_path, solver, script)))
    assert [m.text for m in main.fixture.messages if m.role == "user"] == ["Look at all."]
    assert [m.text for m in sub.fixture.messages if m.role == "user"] == ["Help me."]
    assert sub.fixture.name.endswith("-epoch-1-agent-1")
    results = [m.text for m in sub.fixture.messages if m.role == "tool"]
    assert results == ["there is nothing", "done"]


def test_what_a_sub_agent_was_told_before_a_compaction_is_kept(tmp_path: Path) -> None:
    step = 0

    def script(messages: list[ChatMessage], tools: list[ToolInfo]) -> ModelOutput:
        nonlocal step
        names = {info.name for info in tools}
        if not names:
            return ModelOutput.from_content(NAME, "<summary>the port is 8080</summary>")
        if "helper" in names and messages[-1].role == "user":
            return ModelOutput.for_tool_call(NAME, "helper", {"input": "Help me."})
        step += "look" in names
        if "look" in names and step < 6:
            return ModelOutput.from_content(NAME, f"thought {step} " + "x" * 1200)
        return ModelOutput.for_tool_call(NAME, "submit", {"answer": "done"})

    async def go_on(state: AgentState) -> str:
        return f"Please CONTINUE after {step}."

    helper = react(
        name="helper",
        description="Helps.",
        prompt="You help.",
        tools=[look()],
        compaction=CompactionSummary(threshold=500, memory=False),
        on_continue=go_on,
    )
    solver = react(prompt="You lead.", tools=[as_tool(helper)])
    _, sub = read(path_of(run(tmp_path, solver, script)))
    assert sub.fixture.recorded_compactions
    assert [m.text.rstrip(" x") for m in sub.fixture.messages[2:12]] == [
        text for n in range(1, 6) for text in (f"thought {n}", f"Please CONTINUE after {n}.")
    ]


def damaged(path: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return target


@pytest.mark.parametrize(
    "make",
    [
        lambda path, target: target.write_bytes(path.read_bytes()[:-200]),
        lambda path, target: target.write_bytes(b"PK\x03\x04" + b"\x00" * 50),
        lambda path, target: target.write_text('{"status": "success", "eval": {"task": "x"}}'),
        lambda path, target: target.write_text('{"role": "user", "content": "secret"}\n'),
        lambda path, target: damaged(
            path, target, lambda name, content: None if name.startswith("samples") else content
        ),
        lambda path, target: damaged(path, target, lambda name, _: b'{"secret": '),
    ],
)
def test_damage_is_a_clear_error(
    logs: Callable[..., tuple[Path, EvalLog]], tmp_path: Path, make: Callable[[Path, Path], Any]
) -> None:
    target = tmp_path / "bad.eval"
    make(logs("none")[0], target)
    with pytest.raises(DataError, match=r"bad\.eval: ") as caught:
        read(target)
    assert "secret" not in str(caught.value)
