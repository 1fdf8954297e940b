"""``compression-eval quickstart``, on chat sessions of a few messages."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval import quickstart, states_frame
from compression_eval.authoring import generate
from compression_eval.authoring.by_model import REPAIRS
from compression_eval.cli import main
from compression_eval.conversations import pipeline
from compression_eval.sweeping import running
from tests.authoring import story
from tests.conversations.readers.claude_code_session import Session, text
from tests.conversations.readers.reading import json_lines
from tests.e2e import scripted
from tests.fixtures.building import Json, assistant, system, user

FILLER = "One more look at the worker pool, and nothing new came out of it. " * 12


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("INSPECT_EVAL_MODEL", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str | Path, **options: Any) -> Result:
    done = CliRunner().invoke(main, ["quickstart", *map(str, arguments)], **options)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def chat(path: Path, messages: list[Json]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    return path


def long_session() -> list[Json]:
    """A session so long that something of it is compressed; a person is named in it."""
    return [
        *story.messages()[: story.CUT],
        *[
            item
            for _ in range(12)
            for item in (user("Go on, anna@ferrant.com."), assistant(FILLER))
        ],
    ]


def compacted(path: Path) -> None:
    """Write a session that its agent compacted at its end."""
    more = [user("And once more."), assistant(FILLER)]
    messages = [*long_session(), *more, user("Now the other one."), assistant("Gladly.")]
    cut = len(messages) - 2
    left = {"cut": cut, "summary": "All well.", "state": [user("All well."), cut - 2, cut - 1]}
    data = {"messages": messages, "recorded_compactions": [left]}
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """One session that can be used, a short one, and something else."""
    folder = tmp_path / "sessions"
    chat(folder / "long.json", long_session())
    chat(folder / "short.json", [system(), user("Hello, who are you?"), assistant("An agent.")])
    (folder / "notes.txt").write_text("x" * 100_000, encoding="utf-8")
    return folder


def refused(done: Result, *said: str, exit_code: int = 1) -> None:
    assert done.exit_code == exit_code
    for part in said:
        assert part in done.output


@pytest.mark.slow
def test_sessions_become_a_report_and_nothing_is_done_twice(sessions: Path, tmp_path: Path) -> None:
    compacted(sessions / "compacted.json")
    done = run(sessions)
    assert done.exit_code == 0, done.output
    out = tmp_path / quickstart.DEFAULT_OUT
    steps = done.stdout
    assert "1 with compactions among the newest 3, then the newest: 3 of 4 files (--limit" in steps
    assert ": no known format; " in steps
    assert re.search(
        r"\nfetched +\S+ \(OpenAI chat messages\): 1 compaction, no verdict: too few calls\n", steps
    )
    assert "imported 3 conversations" in steps
    assert " about 2 conversations, by rules (" in steps
    assert "no probe could be made: nothing is compressed" in done.stderr
    assert "arms     anchored, masking, and controls full, none, tail" in steps
    assert "recorded on the 1 of these whose own compaction can be read" in steps
    first = steps.partition("\n\nOn these 2 conversations (")[2].splitlines()
    assert "too few to rank arms), " in first[0]
    assert re.search(r"anchored \([\d,]+ tokens\) keeps", first[0])
    assert "recorded" not in first[0]
    assert "too few to rank arms" in first[1]
    assert "compacted: On this conversation (" in first[2]
    assert "recorded (" in first[2]
    assert "no language model was involved" in steps
    runs = out / "embedded-lexical"
    assert f"  {Path(quickstart.DEFAULT_OUT) / 'report' / 'index.html'} (or" in steps
    for name in ("report", "report-recorded"):
        line = (out / name / "report.md").read_text("utf-8").splitlines()[2]
        assert line.startswith("On th")
        assert ("recorded" in line) == (name == "report-recorded")
    assert "\nreport   wrote " in steps
    assert "report   computing\n" in done.stderr
    assert "report: " not in done.output
    assert not any(b"ferrant.com" in path.read_bytes() for path in (out / "fixtures").iterdir())
    logs = list_eval_logs(str(runs / "logs"))
    assert len(logs) == 5
    told = json.loads((out / "report-recorded" / "figures.json").read_text("utf-8"))["of_arm"]
    (alone,) = states_frame(runs / "recorded")["fixture"].unique()
    own = states_frame(runs / "logs").query("compressor == 'full'")
    assert own["tokens_state"].nunique() == 2, "they differ in size"
    size = own[own["fixture"] == alone]["tokens_state"].mean()
    assert told["full"]["costs"]["tokens_after"] == size, "as its score, of that one"
    assert {read_eval_log(log, header_only=True).status for log in logs} == {"success"}
    table = steps.partition("knowledge")[2].partition("knowledge: 0 to 5")[0].splitlines()[1:]
    rows = {line.split()[0]: line.split() for line in table if line.strip()}
    assert list(rows) == ["full", "none", "tail", "anchored", "masking"]
    states = states_frame(runs / "logs").groupby("compressor")["tokens_state"].mean()
    assert rows["anchored"][5] == f"{states['anchored']:,.0f}", "a mean over states"
    before = {path: path.stat().st_mtime_ns for path in (runs / "logs").glob("*.eval")}
    again = run(sessions)
    assert again.exit_code == 0, again.output
    assert "sessions the 3 that compression-quickstart was begun with" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in (runs / "logs").glob("*.eval")} == before


def test_what_was_interrupted_is_gone_on_with(
    sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    for place, step in ((pipeline.Import, "run"), (generate, "generate_bank")):
        with monkeypatch.context() as patched:
            patched.setattr(place, step, interrupt)
            done = run(sessions)
        refused(
            done, "Stopped. The same command continues in compression-quickstart.", exit_code=130
        )
        assert "imported before" not in done.stdout
    chat(sessions / "longer.json", long_session() * 2)  # new since then: not taken
    with monkeypatch.context() as patched:
        patched.setattr(quickstart, "_planned", interrupt)
        done = run(sessions)
    assert "imported before, see compression-quickstart/import.txt" in done.stdout

    with monkeypatch.context() as patched:
        # So an eval set returns after Ctrl-C.
        patched.setattr(running, "eval_set", lambda *_, **__: (True, []))
        done = run(sessions)
    refused(done, "Stopped. The same command continues in compression-quickstart.", exit_code=130)
    assert "Error" not in done.output
    out = tmp_path / quickstart.DEFAULT_OUT
    assert len(list((out / "fixtures").glob("*.probes.json"))) == 1
    assert len(list((out / "fixtures").glob("*.json"))) == 3


def test_a_paid_compressor_is_asked_for_where_the_embedded_model_answers(sessions: Path) -> None:
    models = ("--grader", "embedded/lexical", "--compressor-model", "mockllm/model")
    done = run(sessions, *models, "--arms", "anchored", input="n\n")
    assert done.exit_code == 1
    assert "compressor" in done.stdout
    assert "price unknown: mockllm/model" in done.stdout
    assert "Go on? [y/N]: n" in done.stdout


def test_without_a_path_the_usual_places_are_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(run(), "no agent has left sessions in ~/.claude/projects, ~/.codex/sessions")
    chat(tmp_path / "home" / ".pi" / "agent" / "sessions" / "a.json", long_session())
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    chat(tmp_path / "codex" / "sessions" / "b.json", long_session())
    done = run("--arms", "masking", "--model", "mockllm/model", input="n\n")
    places = [tmp_path / "codex" / "sessions", tmp_path / "home" / ".pi" / "agent" / "sessions"]
    assert done.stdout.startswith(f"found    {places[0]}\n         {places[1]}\n")
    assert "then the newest: 2 of 2 files" in done.stdout


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        (("--limit", "2"), ["new.json", "long.json"]),
        (("--limit", "2", "--pick", "longest"), ["long.json", "new.json"]),
        (("--limit", "9"), ["new.json", "long.json", "short.json"]),
    ],
)
def test_sessions_are_taken_the_newest_first_and_no_sub_agents(
    sessions: Path, tmp_path: Path, options: tuple[str, ...], taken: list[str]
) -> None:
    chat(sessions / "long.json", [*long_session(), *long_session()])
    chat(sessions / "new.json", [*long_session(), *long_session()][:-2])
    agent = Session(agentId="a1", isSidechain=True)
    agent.user("Look for it.", parent="of-the-caller")
    agent.model("m1", text(FILLER * 40))
    for folder in ("", "s/subagents"):
        (sessions / folder).mkdir(parents=True, exist_ok=True)
        json_lines(sessions / folder / "agent-a1.jsonl", *agent.lines)
    names = ("s/subagents/agent-a1.jsonl", "agent-a1.jsonl", "short.json", "new.json", "long.json")
    for age, name in enumerate(names):
        os.utime(sessions / name, (1e9 - age, 1e9 - age))
    done = run(sessions, *options, "--model", "mockllm/model", input="n\n")
    assert "2 files of sub-agents" in done.stdout or "longest" in options
    state = json.loads((tmp_path / quickstart.DEFAULT_OUT / quickstart.STATE_FILE).read_text())
    assert [Path(path).name for path in state["sessions"]] == taken
    refused(run(sessions / "s", "--out", "only"), "only sessions of sub-agents")
    named = run(sessions / "agent-a1.jsonl", "--out", "named")
    assert "imported 1 conversation" in named.stdout, "it was named by itself"


def test_recorded_runs_on_the_sessions_that_have_it(sessions: Path, tmp_path: Path) -> None:
    compacted(sessions / "compacted.json")
    done = run(sessions, "--compressor-model", "mockllm/model", input="n\n")
    assert "arms     anchored, masking, and controls" in done.stdout
    assert "recorded on the 1 of these whose own compaction can be read" in done.stdout
    done = run(
        sessions / "compacted.json",
        "--out",
        "all",
        "--compressor-model",
        "mockllm/model",
        input="n\n",
    )
    assert "arms     anchored, masking, recorded, and controls" in done.stdout
    arms = ("--arms", "recorded,masking")
    done = run(sessions, *arms, "--compressor-model", "mockllm/model", "--out", "one", input="n\n")
    assert "arms     masking, and controls" in done.stdout
    assert "recorded on the 1 of these" in done.stdout


def test_a_model_writes_the_questions_once_and_only_if_that_is_confirmed(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = scripted.Script(lambda _: "No idea.")
    monkeypatch.setitem(scripted.SCRIPTS, "asks", asked)
    models = ("--grader", "scripted/asks", "--arms", "masking")
    refusing = run(sessions, *models, input="n\n")
    assert not asked.calls
    assert "cost     scripted/asks writes the questions: the scrubbed text of " in refusing.stdout
    assert "asked " not in refusing.stdout
    done = run(sessions, *models, input="y\nn\n")
    assert " about 1 conversation, by rules (" in done.stdout, (
        "nothing of the model's could be used"
    )
    assert asked.calls.pop()
    asked.calls.clear()
    again = run(sessions, *models, input="n\n")
    assert not asked.calls
    assert "writes the questions" not in again.stdout
    assert "cost     estimated for all" in again.stdout


def test_questions_of_one_writer_are_not_replaced_by_those_of_another(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = scripted.Script(lambda _: "No idea.")
    monkeypatch.setitem(scripted.SCRIPTS, "asks", asked)
    assert run(sessions, "--compressor-model", "mockllm/model", input="n\n").exit_code == 1
    other = run(sessions, "--grader", "scripted/asks", "--yes")
    refused(other, "the questions in compression-quickstart are by rules; to have them written by")
    assert not asked.calls, "it is refused before anything is paid for"


def test_what_a_model_has_written_is_not_paid_for_again(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(call: scripted.Call) -> str:
        if call.number > REPAIRS:  # the first conversation is done
            raise KeyboardInterrupt
        return "No idea."

    chat(sessions / "longer.json", [*long_session(), *long_session()])
    for reply in (interrupt, lambda _: "No idea."):
        asked = scripted.Script(reply)
        monkeypatch.setitem(scripted.SCRIPTS, "asks", asked)
        done = run(sessions, "--grader", "scripted/asks", "--arms", "masking", input="y\nn\n")
        banks = Path(quickstart.DEFAULT_OUT, "fixtures").glob("*.probes.json")
        if reply is interrupt:
            refused(done, "The same command continues in", exit_code=130)
            (written,) = banks
            before = written.stat().st_mtime_ns
    assert written.stat().st_mtime_ns == before
    assert len(list(Path(quickstart.DEFAULT_OUT, "fixtures").glob("*.probes.json"))) == 2


def test_a_compacted_session_is_taken_before_newer_ones(sessions: Path, tmp_path: Path) -> None:
    compacted(sessions / "old.json")
    os.utime(sessions / "old.json", (1e9, 1e9))
    done = run(sessions, "--limit", "1", "--compressor-model", "mockllm/model", input="n\n")
    assert "sessions 1 with compactions among the newest 3, then the newest: 1 of " in done.stdout
    state = json.loads((tmp_path / quickstart.DEFAULT_OUT / quickstart.STATE_FILE).read_text())
    assert [Path(path).name for path in state["sessions"]] == ["old.json"]


def test_wrong_arguments_are_refused_before_anything_is_made(
    sessions: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "a.txt").write_text("mine")
    refused(run(sessions, "--out", foreign), "was not made by quickstart; name another")
    refused(run(sessions, "--arms", "anchord"), "did you mean 'anchored'")
    refused(run(sessions, "--model", "none-such/x"), "--model: 'none-such/x'")
    notes = sessions / "notes.txt"
    said = (
        f"no session of a known format in {notes}:\n  {notes}: no known format; it is not JSON "
        "(import --help lists the formats)"
    )
    refused(run(notes), said)
    for number in range(7):
        (tmp_path / "lists").mkdir(exist_ok=True)
        (tmp_path / "lists" / f"{number}.json").write_text("[]")
    refused(run(tmp_path / "lists"), ".json: no known format; it is a JSON list\n", "  and 2 more")
    (tmp_path / "empty").mkdir()
    refused(run(tmp_path / "empty"), f"nothing to read: no file in {tmp_path / 'empty'}")
    refused(run(tmp_path / "nowhere"), "no such file or folder", exit_code=2)
    assert not (tmp_path / quickstart.DEFAULT_OUT).exists()
    assert [path.name for path in foreign.iterdir()] == ["a.txt"]


def test_the_extras_that_are_missing_are_named(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "english_words", None)
    refused(run(sessions), "Error: quickstart needs the extra scrub: pip install -e '.[scrub]'")
    monkeypatch.setitem(sys.modules, "scipy", None)
    said = "quickstart needs the extras analysis and scrub: pip install -e '.[analysis,scrub]'"
    refused(run(sessions), said)


def test_a_folder_begun_with_other_sessions_is_refused(sessions: Path) -> None:
    refused(run(sessions, "--model", "mockllm/model", input="n\n"))
    refused(run(sessions, "--limit", "1"), "made with other sessions (limit: 5, now 1)")
