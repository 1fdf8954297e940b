"""The scanner of Inspect Scout, on a log of an agent that was compacted."""

import json
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner
from inspect_ai.agent import as_tool, react
from inspect_ai.model import ChatMessage, CompactionSummary, ModelOutput
from inspect_ai.tool import ToolInfo
from inspect_scout import scan, scan_results_df, transcripts_from
from pandas import DataFrame

from compression_eval.cli import main
from compression_eval.postmortem.scanner import fetched_again
from compression_eval.postmortem.sessions import read_sessions
from tests.conversations.readers.inspect_logs import NAME, agent, looks, path_of, run


def scanned(log: Path, folder: Path) -> DataFrame:
    done = scan(
        [fetched_again()],
        transcripts=transcripts_from(str(log)),
        scans=str(folder / "scans"),
        max_processes=1,
        display="none",
    )
    assert done.complete, done.errors
    return scan_results_df(done.location).scanners["fetched_again"]


def test_the_scanner_says_of_transcripts_what_a_post_mortem_says_of_their_log(
    tmp_path: Path,
) -> None:
    strategy = CompactionSummary(threshold=4000, memory=False)
    logged = run(tmp_path, agent(strategy), looks(80, things=25))
    log = path_of(logged)
    assert logged.samples
    (row,) = read_sessions([str(log)])
    assert row.compactions
    frame = scanned(log, tmp_path)
    assert list(frame["label"]) == [told.verdict for told in row.compactions]
    held = [told.compaction.window.held for told in row.compactions if told.compaction.window]
    assert list(frame["value"].dropna()) == held
    assert any(held)
    made = {
        message.id: {call.id for call in message.tool_calls or ()}
        for message in logged.samples[0].messages
        if message.role == "assistant"
    }
    window = next(each.compaction.window for each in row.compactions if each.compaction.window)
    (text, *_), (references, *_) = frame["explanation"], frame["message_references"]
    for number, (tokens, call) in enumerate(zip(window.by_call, window.calls, strict=True), 1):
        found = [each for each in json.loads(references) if each["cite"] == f"[call {number}]"]
        assert len(found) == bool(tokens)
        assert (f"[call {number}]" in text) == bool(tokens)
        assert all(call in made[each["id"]] for each in found)
    page = tmp_path / "page"
    told = CliRunner().invoke(main, ["report", str(log), "--out", str(page)])
    assert told.exit_code == 0, told.output
    (arm,) = json.loads((page / "figures.json").read_text())["arms"]
    assert arm["means"]["fetched_again"]["mean"] == pytest.approx(fmean(held))


def test_calls_of_a_sub_agent_are_referred_to_by_their_events(tmp_path: Path) -> None:
    work = looks(60, things=25)

    def script(messages: list[ChatMessage], tools: list[ToolInfo]) -> ModelOutput:
        if "helper" not in {info.name for info in tools}:
            return work(messages, tools)
        if messages[-1].role == "user":
            return ModelOutput.for_tool_call(NAME, "helper", {"input": "Help me."})
        return ModelOutput.for_tool_call(NAME, "submit", {"answer": "done"})

    strategy = CompactionSummary(threshold=4000, memory=False)
    helper = agent(strategy, name="helper", description="Helps.")
    logged = run(tmp_path, react(prompt="You lead.", tools=[as_tool(helper)]), script)
    assert logged.samples
    tools = {event.uuid: event for event in logged.samples[0].events if event.event == "tool"}
    found = json.loads(scanned(path_of(logged), tmp_path)["event_references"][0])
    assert {tools[each["id"]].function for each in found} == {"look"}
