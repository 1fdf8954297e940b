"""Messages of a Claude Code session: grouped, paired, told from what the client wrote itself."""

from pathlib import Path

import pytest

from compression_eval.conversations.building import build
from compression_eval.conversations.formats import formats
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.models import ImagePart
from tests.conversations.readers.claude_code_session import SESSION, Session, result, text, use
from tests.conversations.readers.reading import (
    calls,
    fates,
    json_lines,
    kinds,
    read_all,
    results,
    said,
)

FORMAT = formats()["claude-code"]

THINKING = {"type": "thinking", "thinking": "hidden words", "signature": "s"}


def parallel() -> Session:
    """Two calls of one message, linked as the agent does: the first result ends its own branch."""
    session = Session()
    session.user("look at both")
    session.model("m1", THINKING)
    first = session.model("m1", text("Reading."), use("c1", file="a.py"))
    second = session.model("m1", use("c2", file="b.py"))
    session.user([result("c1", "of a")], parent=first, toolUseResult={"stdout": "of a"})
    session.user([result("c2", [text("of b"), text("more")])], parent=second)
    session.model("m2", text("Done."))
    return session


def test_a_message_over_several_lines_with_parallel_calls_is_one(tmp_path: Path) -> None:
    built = parallel().read(tmp_path)
    assert said(built) == [
        ("user", "look at both"),
        ("assistant", "Reading."),
        ("tool", "of a"),
        ("tool", "of b\nmore"),
        ("assistant", "Done."),
    ]
    assert calls(built) == [("c1", "Read", {"file": "a.py"}), ("c2", "Read", {"file": "b.py"})]
    assert results(built) == [("c1", "of a"), ("c2", "of b\nmore")]
    assert fates(built) == [
        "line 1 (user): became message 0",
        "line 2 (assistant): became message 1; without thinking: thinking is left out",
        "line 3 (assistant): merged into message 1",
        "line 4 (assistant): merged into message 1",
        "line 5 (user): became message 2; "
        "without toolUseResult: a second form of the result, for the display",
        "line 6 (user): became message 3",
        "line 7 (assistant): became message 4",
    ]


def test_parallel_calls_survive_whichever_result_the_next_message_names(tmp_path: Path) -> None:
    session = parallel()
    session.lines[-1]["parentUuid"] = "u5"
    built = session.read(tmp_path)
    assert [identifier for identifier, _, _ in calls(built)] == ["c1", "c2"]
    assert results(built) == [("c1", "of a"), ("c2", "of b\nmore")]
    assert built.account.added == ()


def test_what_is_known_of_the_session(tmp_path: Path) -> None:
    fixture = parallel().read(tmp_path).fixture
    assert fixture.name == "claude-code-000000000001"
    assert fixture.model == "m-1"
    assert fixture.description == "Imported from Claude Code 2.1.0."
    assert fixture.source is not None
    assert fixture.source.caveats == ["the system prompt and the tools are not in the file"]
    assert fixture.tools == []


def test_a_rewind_leaves_the_branch_out_that_the_user_left(tmp_path: Path) -> None:
    session = Session()
    start = session.user("one")
    session.model("m1", text("first answer"))
    session.user("wrong way")
    session.model("m2", use("c1"))
    session.user([result("c1", "lost")])
    session.user("right way", parent=start)
    session.model("m3", text("second answer"))
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == ["one", "right way", "second answer"]
    assert fates(built)[1:5] == [
        f"line {n} ({kind}): skipped: on a branch that the user left (a rewind or a retry)"
        for n, kind in ((2, "assistant"), (3, "user"), (4, "assistant"), (5, "user"))
    ]
    assert built.fixture.source is not None
    assert "4 lines on branches that the user left were left out" in built.fixture.source.caveats


def test_a_branch_that_begins_with_a_note_is_left_out_with_it(tmp_path: Path) -> None:
    session = Session()
    start = session.user("one")
    session.attach("queued_command", prompt="wrong way")
    session.model("m1", text("lost"))
    session.model("m2", text("kept"), parent=start)
    session.attach("hook_additional_context", content=["noted"], parent=start)
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == [
        "one",
        "kept",
        "<system-reminder>\nnoted\n</system-reminder>",
    ]


def test_a_rewind_to_the_start_leaves_everything_before_it_out(tmp_path: Path) -> None:
    session = Session()
    session.user("never mind")
    session.model("m1", text("Fine."))
    session.user("the real task", parent=None)
    assert said(session.read(tmp_path)) == [("user", "the real task")]


def test_a_report_that_comes_late_does_not_end_the_conversation_early(tmp_path: Path) -> None:
    session = Session()
    early = session.user("go")
    session.model("m1", text("Gone."))
    session.attach("hook_additional_context", content=["late"], parent=early)
    assert [words for _, words in said(session.read(tmp_path))][:2] == ["go", "Gone."]


def test_a_lost_line_does_not_part_the_conversation(tmp_path: Path) -> None:
    session = Session()
    session.user("go")
    session.model("m1", text("half"), parent="gone")
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == ["go", "half"]
    assert built.fixture.source is not None
    assert any("1 lines follow one that is not" in c for c in built.fixture.source.caveats)


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    session = Session()
    session.user("one", uuid="a", parent="b")
    session.user("two", uuid="b", parent="a")
    assert len(said(session.read(tmp_path))) == 2


def test_a_line_that_stands_twice_is_one_message(tmp_path: Path) -> None:
    session = parallel()
    session.lines += session.lines[:3]
    built = session.read(tmp_path)
    assert len(said(built)) == 5
    assert fates(built)[7:] == [
        "line 8 (user): merged into message 0",
        "line 9 (assistant): merged into message 1",
        "line 10 (assistant): merged into message 1",
    ]


def test_a_line_with_the_uuid_of_another_one_is_a_message_of_its_own(tmp_path: Path) -> None:
    session = Session()
    for words in ("first", "second", "third", "fourth"):
        session.user(words)
    session.lines[2]["uuid"] = session.lines[3]["parentUuid"] = session.lines[1]["uuid"]
    assert said(session.read(tmp_path)) == [
        ("user", words) for words in ("first", "second", "third", "fourth")
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<local-command-caveat>Caveat: x", "the client's words around a command to itself"),
        ("<local-command-stdout>Bye</local-command-stdout>", "output of a command to the client"),
        ("<local-command-stderr>No</local-command-stderr>", "output of a command to the client"),
    ],
)
def test_words_of_the_client_are_not_the_users(tmp_path: Path, content: str, reason: str) -> None:
    session = Session()
    session.user("hello")
    session.user(content, isMeta=True)
    assert fates(session.read(tmp_path))[1] == f"line 2 (user): skipped: {reason}"


def command(name: str, arguments: str = "") -> str:
    return f"<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>"


def test_commands_to_the_client_are_skipped_and_those_with_words_are_kept(tmp_path: Path) -> None:
    session = Session()
    session.user("hello")
    session.user(command("exit"))
    session.user("<local-command-stdout>Bye</local-command-stdout>")
    session.user(command("compact", "keep the port"))
    session.user("<local-command-stdout></local-command-stdout>")
    session.user(command("review"))
    session.user([text("What the skill says.")], isMeta=True)
    session.user("<bash-input>ls</bash-input>")
    session.user("[Request interrupted by user]")
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == [
        "hello",
        command("compact", "keep the port"),
        command("review"),
        "What the skill says.",
        "<bash-input>ls</bash-input>",
        "[Request interrupted by user]",
    ]
    assert fates(built)[1] == "line 2 (user): skipped: a command to the client, not to the model"


def test_what_the_client_says_in_the_models_place_is_skipped(tmp_path: Path) -> None:
    session = Session()
    session.user("hello")
    session.model("x1", text("No response requested."), message={"model": "<synthetic>"})
    session.model("x2", text("API Error"), isApiErrorMessage=True)
    session.user("shown only", isVisibleInTranscriptOnly=True)
    built = session.read(tmp_path)
    assert said(built) == [("user", "hello")]
    assert built.fixture.model == ""
    assert fates(built)[1:] == [
        "line 2 (assistant): skipped: written by the client, not by the model",
        "line 3 (assistant): skipped: written by the client, not by the model",
        "line 4 (user): skipped: shown to the user only",
    ]


def test_subagents_and_side_chains_are_conversations_of_their_own(tmp_path: Path) -> None:
    session = Session()
    start = session.user("main task")
    session.linked("user", message={"content": "side task"}, isSidechain=True, parent=None)
    side = session.last
    session.model("s1", text("side answer"), isSidechain=True)
    session.model("m1", text("main answer"), parent=start)
    session.user("sub task", isSidechain=True, agentId="7f", parent=None)
    session.model("s2", text("sub answer"), isSidechain=True, agentId="7f")
    session.user("second side", isSidechain=True, parent=start)
    session.model("s3", text("more of the first"), isSidechain=True, parent=side)
    session.loose("summary", summary="A title", leafUuid="u4")
    built = read_all(FORMAT, session.write(tmp_path))
    texts = {item.fixture.name: [words for _, words in said(item)] for item in built}
    name = "claude-code-000000000001"
    assert texts == {
        name: ["main task", "main answer"],
        f"{name}-side-1": ["side task", "more of the first"],
        f"{name}-agent-7f": ["sub task", "sub answer"],
        f"{name}-side-2": ["second side"],
    }
    places = [entry.place for item in built for entry in item.account.entries]
    assert sorted(places) == [f"line {n}" for n in range(1, 10)]


def test_a_subagents_own_file_is_read(tmp_path: Path) -> None:
    session = Session(isSidechain=True, agentId="7f3a")
    session.user("sub task")
    session.model("s1", text("sub answer"))
    built = session.read(tmp_path)
    assert built.fixture.name == "claude-code-000000000001-agent-7f3a"
    assert len(said(built)) == 2


def test_sessions_in_one_file_are_told_apart(tmp_path: Path) -> None:
    session = parallel()
    session.user("other", parent=None, sessionId=SESSION.replace("1", "2"))
    built = read_all(FORMAT, session.write(tmp_path))
    assert [len(item.fixture.messages) for item in built] == [5, 1]


def test_content_of_every_kind(tmp_path: Path) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
    }
    reference = {"type": "tool_reference", "tool_name": "WebFetch"}
    document = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
    }
    session = Session()
    session.user([text("see"), image, document])
    session.model("m1", use("c1"), use("c2"), use("c3"))
    session.user([result("c1", [reference])])
    session.user([result("c2", [text("shot"), image])])
    session.user([result("c3", "<tool_use_error>no</tool_use_error>", is_error=True), text("stop")])
    path = session.write(tmp_path)
    (built,) = read_all(FORMAT, path)
    assert [words for _, words in said(built)] == [
        "see\n[image: image/png, 3 bytes]\n[document: application/pdf, 3 bytes]",
        "",
        "[tool: WebFetch]",
        "shot\n[image: image/png, 3 bytes]",
        "<tool_use_error>no</tool_use_error>",
        "stop",
    ]
    entries = built.account.entries
    assert ("document", "only texts are carried over; a description stands for it") in entries[
        0
    ].left_out
    assert [part for part, _ in entries[4].left_out] == ["is_error"]
    (conversation,) = FORMAT.read(source_file(path))
    kept = build(conversation, images="keep").fixture.messages[0].content
    assert isinstance(kept, list)
    assert isinstance(kept[1], ImagePart)
    assert kept[1].image_url.url == "data:image/png;base64,QUJD"


def test_lines_that_are_no_messages_are_skipped_by_name(tmp_path: Path) -> None:
    session = parallel()
    for kind in ("file-history-snapshot", "summary", "ai-title", "mode", "last-prompt", "pr-link"):
        session.loose(kind)
    session.system("turn_duration")
    session.linked("progress", data={"type": "agent_progress"})
    built = session.read(tmp_path)
    assert len(said(built)) == 5
    assert {entry.fate for entry in built.account.entries[7:]} == {"skipped"}
    assert kinds(built)[("progress:agent_progress", "skipped")] == 1


def test_unknown_kinds_are_reported_and_not_guessed(tmp_path: Path) -> None:
    session = parallel()
    session.loose("hologram", content="words of somebody")
    session.system("levitation")
    session.attach("telepathy", content="x")
    session.queue("shuffle")
    session.loose("user", message={"content": "no uuid"})
    session.user({"odd": 1})
    session.user([{"type": "scent", "data": 1}])
    session.lines.append("just a text")
    built = session.read(tmp_path)
    assert len(said(built)) == 5
    assert [str(entry).split(": ")[0] for entry in built.account.unsettled()] == [
        "line 8 (hologram)",
        "line 9 (system:levitation)",
        "line 10 (attachment:telepathy)",
        "line 11 (queue-operation:shuffle)",
        "line 12 (user)",
        "line 13 (user)",
        "line 14 (user)",
        "line 15 (no object)",
    ]
    assert "words of somebody" not in "".join(fates(built))


def test_progress_between_lines_does_not_part_them(tmp_path: Path) -> None:
    session = Session()
    session.user("go")
    session.linked("progress", data={"type": "hook_progress"})
    session.model("m1", text("Going."))
    assert len(said(session.read(tmp_path))) == 2


def test_a_line_behind_a_report_follows_what_was_said_since(tmp_path: Path) -> None:
    session = Session()
    session.user("go")
    call = session.model("m1", use("t1", "Bash", command="ls"))
    session.user([result("t1", "a.py")])
    session.model("m2", text("One file."))
    report = session.linked("progress", data={"type": "hook_progress"}, parent=call)
    session.user("undone")
    session.model("m3", text("Forgotten."))
    session.user("again", parent=report)
    assert [words for _, words in said(session.read(tmp_path))] == [
        *("go", "", "a.py", "One file.", "again"),
    ]


def test_the_format_is_known_by_its_lines(tmp_path: Path) -> None:
    seen = FORMAT.recognise(source_file(parallel().write(tmp_path)))
    assert seen == "lines with sessionId, uuid, parentUuid and a type such as user or assistant"
    other = json_lines(tmp_path / "other.jsonl", {"type": "user", "sessionId": "s", "uuid": "u"})
    assert FORMAT.recognise(source_file(other)) is None
