"""Claude Code files as crashes and odd exporters leave them."""

from pathlib import Path
from typing import Any

from compression_eval.conversations.formats import formats
from compression_eval.fixtures.models import NO_RESULT
from tests.conversations.readers.claude_code_session import Session, result, text, use
from tests.conversations.readers.reading import calls, fates, read_one, said

FORMAT = formats()["claude-code"]


def short() -> Session:
    session = Session()
    session.user("go")
    session.model("m1", text("Going."))
    return session


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
