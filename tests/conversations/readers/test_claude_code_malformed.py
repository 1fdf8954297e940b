"""Claude Code files as crashes and odd exporters leave them."""

import copy
from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations import sources
from compression_eval.conversations.building import build
from compression_eval.conversations.formats import formats
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.markers import NO_RESULT
from tests.conversations.readers.claude_code_session import Session, result, text, use
from tests.conversations.readers.reading import calls, fates, read_one, said

FORMAT = formats()["claude-code"]


def short() -> Session:
    session = Session()
    session.user("go")
    session.model("m1", text("Going."))
    return session


def test_a_torn_last_line_is_named(tmp_path: Path) -> None:
    path = short().write(tmp_path)
    path.write_bytes(path.read_bytes().rstrip()[:-20])
    built = read_one(FORMAT, path)
    assert said(built) == [("user", "go")]
    assert fates(built)[1].startswith(
        "line 2 (unreadable): skipped: not JSON: the file ends within it ("
    )


def test_bytes_that_are_not_utf8_are_replaced_and_said(tmp_path: Path) -> None:
    path = short().write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"Going", b"G\xffing"))
    built = read_one(FORMAT, path)
    assert said(built)[1] == ("assistant", "G\ufffding.")
    assert fates(built)[1].endswith("without bytes: bytes that are not UTF-8 were replaced")


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    path = short().write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"Going", b"\\ud83d"))
    assert said(read_one(FORMAT, path))[1] == ("assistant", "\ufffd.")


def test_two_objects_on_one_line_are_both_read(tmp_path: Path) -> None:
    path = short().write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"}\n{", b"}{"))
    built = read_one(FORMAT, path)
    assert len(said(built)) == 2
    assert fates(built)[1].startswith("line 1, value 2 (assistant)")


def test_calls_and_results_without_their_other_half_are_said(tmp_path: Path) -> None:
    session = short()
    session.model("m2", use("open"))
    session.user([result("stray", "of another file")])
    built = session.read(tmp_path)
    assert said(built)[-1] == ("tool", NO_RESULT)
    assert built.account.added == ((3, "the file holds no result of the call"),)
    assert fates(built)[3] == "line 4 (user): skipped: a result whose call is not in the file"


def test_a_line_that_is_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 2**16)
    session = short()
    session.user("x" * 2**18)
    session.model("m2", text("Still here."))
    built = session.read(tmp_path)
    assert [words for _, words in said(built)] == ["go", "Going.", "Still here."]
    assert fates(built)[2].startswith("line 3 (unreadable): skipped: the line has ")


def test_an_empty_file_and_another_format_are_errors_that_name_the_file(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(DataError, match=r"empty\.jsonl: the file is empty"):
        source_file(empty)
    for name, content in (
        ("chat.json", b'[{"role": "user", "content": "hi"}]'),
        ("text.md", b"# nothing\n"),
        ("titles.jsonl", b'{"type": "summary", "summary": "x", "leafUuid": "y"}\n'),
        ("binary", b"\x00\xff" * 50),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}: expected Claude Code lines with"):
            list(FORMAT.read(source_file(path)))


JUNK: list[Any] = [None, 7, "text", [None, 3, "x", [[]]], {"type": 4}]


def everything() -> Session:
    """A session with a line of every kind that is looked into."""
    session = short()
    session.model(
        "m2", use("c1"), {"type": "server_tool_use", "id": "s1", "name": "n", "input": {}}
    )
    session.attach("queued_command", prompt="p", commandMode="prompt")
    session.queue("enqueue", content="q")
    session.user([result("c1", [text("r")]), text("u")])
    session.queue("remove", content="q")
    session.attach("file", filename="/a", content={"type": "text", "file": {"content": "x"}})
    session.system(
        "microcompact_boundary",
        microcompactMetadata={"compactedToolIds": ["c1"], "clearedAttachmentUUIDs": ["u8"]},
    )
    session.boundary(preservedSegment={"headUuid": "u1", "tailUuid": "u2", "anchorUuid": "u9"})
    session.boundary(preservedMessages={"uuids": ["u1"], "anchorUuid": "u9"})
    session.summary("s")
    session.model("m3", text("end"))
    return session


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every value in nested JSON."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items if isinstance(value, dict | list) else ():
        found += [(*path, key)] if not isinstance(item, dict | list) else places(item, (*path, key))
    return found


def test_no_field_of_another_type_is_a_traceback_or_goes_unsaid(tmp_path: Path) -> None:
    lines = everything().lines
    session = Session()
    tried = 0
    for number, line in enumerate(lines):
        for place in places(line):
            for junk in JUNK:
                changed = copy.deepcopy(lines)
                inner = changed[number]
                for key in place[:-1]:
                    inner = inner[key]
                inner[place[-1]] = junk
                session.lines = changed
                tried += 1
                entries = 0
                for conversation in FORMAT.read(source_file(session.write(tmp_path))):
                    try:
                        account = build(conversation).account
                    except DataError:
                        entries += len(conversation.ledger.lines)
                        continue
                    entries += len(account.entries)
                    assert "unaccounted" not in {e.fate for e in account.entries}, (place, junk)
                assert entries == len(lines)
    assert tried > 500


def test_deep_nesting_is_no_traceback(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    session = short()
    session.user(deep)
    session.user([result("c9", deep)])
    session.attach("diagnostics", files=deep)
    built = session.read(tmp_path)
    assert said(built) == [("user", "go"), ("assistant", "Going.")]
    assert fates(built)[4] == "line 5 (attachment:diagnostics): unknown: nested too deeply"


def test_arguments_nested_without_end_are_kept_as_text(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"a": 1}
    for _ in range(600):
        deep = {"a": deep}
    session = short()
    session.model("m2", use("c1", **deep))
    ((_, _, arguments),) = calls(session.read(tmp_path))
    assert arguments["input"].startswith('{"a": {"a": ')
