"""Codex rollouts: who spoke, what was undone, that no line is lost, what compactions left."""

from pathlib import Path
from typing import Any

import zstandard

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.models import NO_RESULT
from tests.conversations.readers.codex_lines import (
    ENVIRONMENT,
    HEAD,
    call,
    event,
    item,
    line,
    message,
    output,
    read,
    tokens,
    typed,
)
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_lines,
    read_one,
    results,
    said,
)

FORMAT = format_named("codex")


def test_a_session_becomes_messages_and_every_line_is_accounted_for(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        event("task_started", model_context_window=272000),
        message("developer", "<permissions instructions>", "Be brief."),
        ENVIRONMENT,
        line("turn_context", {"model": "gpt-x"}),
        *typed("Fix it"),
        item("reasoning", summary=[], encrypted_content="xx"),
        event("agent_message", message="On it."),
        message("assistant", "On it."),
        call("a", cmd="ls"),
        call("b", cmd="pwd"),
        output("b", "/w"),
        event("exec_command_end", call_id="a", stdout="x.py"),
        output("a", [{"type": "input_text", "text": "x.py"}]),
        item("ghost_snapshot", ghost_commit={}),
        message("assistant", "Done."),
        event("task_complete", last_agent_message="Done."),
    )
    assert said(built) == [
        ("system", "You are an agent."),
        ("system", "<permissions instructions>\nBe brief."),
        ("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        ("user", "Fix it"),
        ("assistant", "On it."),
        ("tool", "/w"),
        ("tool", "x.py"),
        ("assistant", "Done."),
    ]
    assert [call[:2] for call in calls(built)] == [("a", "shell"), ("b", "shell")]
    assert built.fixture.model == "gpt-x"
    assert built.fixture.context_length == 272000
    assert built.fixture.name == "codex-eeeeffff0001"
    assert built.fixture.source is not None
    assert built.fixture.source.origin == "Codex 0.140.0"
    assert any("1 messages in the user's name" in text for text in built.fixture.source.caveats)


def test_words_that_only_an_event_holds_are_kept(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        *typed("Start"),
        message("assistant", "Working."),
        event(
            "user_message",
            message="And never touch the lock file",
            images=["data:image/png;base64,AA=="],
        ),
        message("assistant", "Understood."),
    )
    assert said(built)[3] == (
        "user",
        "And never touch the lock file\n[image: image/png, 3 bytes]",
    )


def test_the_same_words_twice_are_two_messages(tmp_path: Path) -> None:
    built = read(tmp_path, HEAD, *typed("Continue"), *typed("Continue"))
    assert said(built)[1:] == [("user", "Continue"), ("user", "Continue")]
    once = read(tmp_path, HEAD, *typed("Continue"), event("user_message", message="Continue"))
    assert said(once) == said(built)


def test_undone_turns_are_left_out(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        ENVIRONMENT,
        *typed("First"),
        message("assistant", "One."),
        message("developer", "<permissions instructions> changed"),
        ENVIRONMENT,
        *typed("Second"),
        message("assistant", "Two."),
        *typed("Third"),
        call("c"),
        output("c", "three"),
        event("thread_rolled_back", num_turns=2),
        *typed("Instead"),
        message("assistant", "Four."),
    )
    assert [text for _, text in said(built)[2:]] == ["First", "One.", "Instead", "Four."]


def test_calls_of_every_kind_keep_id_name_and_arguments(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        *typed("Go"),
        item("custom_tool_call", call_id="p", name="apply_patch", input="*** Begin"),
        item("custom_tool_call_output", call_id="p", output="ok"),
        item("local_shell_call", call_id="l", action={"type": "exec", "command": ["ls"]}),
        output("l", {"content": "x.py", "success": True}),
        item("function_call", call_id="m", namespace="mcp__git", name="log", arguments="{}"),
        output("m", "none"),
        item("function_call", call_id="v", name="odd", arguments="not json"),
        output("v", ""),
        event("web_search_end", call_id="ws_1", query="q", action={"type": "search", "query": "q"}),
        item("web_search_call", status="completed"),
        message("assistant", "Found."),
    )
    assert calls(built) == [
        ("p", "apply_patch", {"input": "*** Begin"}),
        ("l", "local_shell", {"type": "exec", "command": ["ls"]}),
        ("m", "mcp__git__log", {}),
        ("v", "odd", {"input": "not json"}),
        ("ws_1", "web_search", {"type": "search", "query": "q"}),
    ]
    assert results(built) == [
        ("p", "ok"),
        ("l", "x.py"),
        ("m", "none"),
        ("v", ""),
        ("ws_1", NO_RESULT),
    ]
    assert said(built)[-1] == ("assistant", "Found.")


def test_a_compressed_rollout_is_known_and_read(tmp_path: Path) -> None:
    plain = json_lines(tmp_path / "r.jsonl", HEAD, *typed("Hi"), message("assistant", "Ho."))
    packed = tmp_path / "r.jsonl.zst"
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    assert FORMAT.recognise(source_file(packed)) == FORMAT.recognise(source_file(plain))
    assert read_one(FORMAT, packed).fixture == read_one(FORMAT, plain).fixture


def test_a_compaction_in_undone_turns_is_no_cut(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        *typed("A"),
        *typed("B"),
        line("compacted", {"message": "Summary."}),
        event("thread_rolled_back", num_turns=1),
        *typed("C"),
    )
    assert built.fixture.recorded_compactions == []
    assert any("undone" in caveat for caveat in caveats(built))
    assert not any("before the first" in caveat for caveat in caveats(built))
    assert [text for _, text in said(built)[1:]] == ["A", "C"]


def test_a_compaction_that_cannot_be_read_keeps_what_can_be(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        ENVIRONMENT,
        *typed("Do it"),
        message("assistant", "Yes."),
        tokens(900),
        line(
            "compacted",
            {
                "message": "",
                "replacement_history": [
                    message("user", "Do it")["payload"],
                    message("developer", "New rules")["payload"],
                    {"type": "compaction", "encrypted_content": "zz"},
                ],
            },
        ),
        event("context_compacted"),
        tokens(70),
        tokens(90),
        message("assistant", "Going on."),
    )
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (4, "opaque", None)
    assert (compaction.tokens_before, compaction.tokens_after) == (900, 70)
    assert compaction.state is not None
    kept, made = compaction.state
    assert kept == 2
    assert not isinstance(made, int)
    assert made.text == "New rules"


def test_times_and_the_first_count_behind_an_answer_are_kept(tmp_path: Path) -> None:
    def counted(given: int) -> Any:
        usage = {"input_tokens": given, "output_tokens": 7, "total_tokens": given + 7}
        return event("token_count", info={"last_token_usage": usage})

    answer = message("assistant", "Yes.")
    built = read(tmp_path, HEAD, *typed("Do it"), answer, counted(30), counted(90))
    known = [(each.model_extra or {}).get("metadata") for each in built.fixture.messages]
    time = {"timestamp": "2030-01-01T00:00:00+00:00"}
    assert known[-1] == time | {"usage": {"input_tokens": 30, "output_tokens": 7}}
    assert known[-2] == time


def test_a_local_compaction_has_its_summary_as_the_state(tmp_path: Path) -> None:
    summary = (
        "Another language model started to solve this problem and produced a summary\nAll well."
    )
    built = read(
        tmp_path,
        HEAD,
        *typed("Do it"),
        message("user", "You are performing a CONTEXT CHECKPOINT COMPACTION. Summarise."),
        message("assistant", "All well."),
        line(
            "compacted",
            {
                "message": summary,
                "replacement_history": [
                    message("user", "Do it")["payload"],
                    message("user", summary)["payload"],
                ],
            },
        ),
        *typed("Next"),
    )
    assert [text for _, text in said(built)[1:]] == ["Do it", "Next"]
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (2, "summary", summary)
    assert compaction.state is not None
    assert compaction.state[0] == 1
    assert len(compaction.state) == 2


def test_where_no_history_was_kept_the_last_20_000_tokens_of_the_user_are(tmp_path: Path) -> None:
    long = "Mind the queue. " * 2_500  # 10,000 tokens, as Codex counts them
    built = read(
        tmp_path,
        HEAD,
        ENVIRONMENT,
        *typed("The very first thing."),
        *(each for n in range(3) for each in typed(f"{n}: {long}")),
        line("compacted", {"message": "The summary."}),
        message("assistant", "Going on."),
    )
    (compaction,) = built.fixture.recorded_compactions
    assert compaction.state is not None
    shortened, newest, summary = (
        built.fixture.messages[each] if isinstance(each, int) else each for each in compaction.state
    )
    assert newest.text.startswith("2:")
    assert shortened.text.startswith("1:")
    assert "tokens truncated" in shortened.text
    assert 79_000 < len(shortened.text) + len(newest.text) < 81_000
    assert summary.text == "The summary."
