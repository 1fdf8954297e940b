"""``compression-eval import`` of damaged, oddly encoded and unknown files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.models import Fixture
from tests.conversations.readers.claude_code_session import Session, result, text, use
from tests.conversations.readers.reading import json_lines

TASK = "Raise the limit to 17, bitte schön."


def session() -> Session:
    """A session of eight messages."""
    made = Session()
    made.user(TASK)
    for number in (1, 2):
        made.model(f"m{number}", use(f"c{number}", path="a.py"))
        made.user([result(f"c{number}", f"LIMIT = {number}")])
    made.model("m3", text("One test fails."))
    made.user("Mend that test.")
    made.model("m4", text("Done."))
    return made


def run(folder: Path, *paths: Path, options: tuple[str, ...] = ()) -> tuple[Result, list[Fixture]]:
    out = folder / "out"
    done = CliRunner().invoke(main, ["import", *map(str, paths), "--out", str(out), *options])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done, [load_fixture(path) for path in sorted(out.glob("*.json"))]


ENCODED: dict[str, Callable[[str], bytes]] = {
    "UTF-16 with a mark": lambda text: text.encode("utf-16"),
    "a list": lambda text: json.dumps([*map(json.loads, text.splitlines())], indent=1).encode(),
}


@pytest.mark.parametrize("form", ENCODED)
def test_a_session_in_another_encoding_or_list_is_read_as_its_lines_are(
    tmp_path: Path, form: str
) -> None:
    lines = "\n".join(json.dumps(line, ensure_ascii=False) for line in session().lines)
    (tmp_path / "a.json").write_bytes(ENCODED[form](lines))
    done, (fixture,) = run(tmp_path, tmp_path / "a.json")
    assert done.exit_code == 0
    plain, _ = run(tmp_path / "plain", session().write(tmp_path))
    assert plain.exit_code == 0
    assert fixture.messages[0].text == TASK
    (written,) = (tmp_path / "plain" / "out").iterdir()
    assert written.read_bytes() == (tmp_path / "out" / written.name).read_bytes()


@pytest.mark.parametrize("message", [None, "text", {"role": "user"}, {"role": "user", "x": []}])
def test_one_odd_line_is_named_by_its_number_and_the_others_are_read(
    tmp_path: Path, message: Any
) -> None:
    made = session()
    made.lines[6]["message"] = message
    done, (fixture,) = run(tmp_path, made.write(tmp_path))
    assert done.exit_code == 0
    assert [m.text for m in fixture.messages if m.role == "user"] == [TASK]
    assert len(fixture.messages) == 7
    assert "session.jsonl: line 7" in done.stdout


@pytest.mark.parametrize("key", ["null", "missing"])
def test_lines_that_name_none_before_them_are_read_in_their_order(tmp_path: Path, key: str) -> None:
    made = session()
    for line in made.lines:
        line["parentUuid"] = None
        if key == "missing":
            del line["parentUuid"]
    made.lines.insert(3, made.lines[2])  # written twice, as crashes leave it
    done, (fixture,) = run(tmp_path, made.write(tmp_path))
    assert done.exit_code == 0
    assert [message.role for message in fixture.messages[-3:]] == ["assistant", "user", "assistant"]
    assert len(fixture.messages) == 8
    assert "in the order of the file" in done.stdout
    assert fixture.source is not None
    assert any("in the order of the file" in caveat for caveat in fixture.source.caveats)


def _unlinked(made: Session) -> None:
    made.lines[6]["parentUuid"] = None


def _torn(made: Session) -> None:
    made.lines[3:6] = [json.dumps(line).encode()[:40] for line in made.lines[3:6]]


def _renamed(made: Session) -> None:
    for line in made.lines[5:]:
        line["message"]["contents"] = line["message"].pop("content")


@pytest.mark.parametrize(
    ("damage", "lost"), [(_unlinked, "6 of 8"), (_torn, "3 of 8"), (_renamed, "3 of 8")]
)
def test_a_session_of_which_more_than_a_third_is_lost_fails_unless_told(
    tmp_path: Path, damage: Callable[[Session], None], lost: str
) -> None:
    whole, damaged = session(), session()
    damage(damaged)
    (tmp_path / "in").mkdir()
    json_lines(tmp_path / "in" / "a.jsonl", *damaged.lines)
    for line in whole.lines:
        line["sessionId"] = "aaaaaaaa-0000-4000-8000-000000000002"
    json_lines(tmp_path / "in" / "b.jsonl", *whole.lines)
    done, written = run(tmp_path, tmp_path / "in")
    assert done.exit_code == 1
    assert [len(fixture.messages) for fixture in written] == [8]
    assert f"a.jsonl: {lost} messages are left out" in done.stdout
    assert "--allow-missing" in done.stdout
    done, written = run(tmp_path, tmp_path / "in", options=("--allow-missing",))
    assert done.exit_code == 0
    assert len(written) == 2
    assert f"{lost} messages are left out" in done.stdout
    assert sum(lost in " ".join(f.source.caveats if f.source else ()) for f in written) == 1


def test_a_refusal_names_the_formats_that_could_read_the_file(tmp_path: Path) -> None:
    blocks = [{"type": "hologram", "text": "words"}]
    messages = [{"role": role, "content": blocks} for role in ("user", "assistant")]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"messages": messages, "meta": {}}))
    done, _ = run(tmp_path, path)
    assert done.exit_code == 1
    assert "--format openai-chat" in done.stdout.partition("could read it")[0]
    done, (fixture,) = run(tmp_path, path, options=("--format", "openai-chat"))
    assert done.exit_code == 0
    assert [message.text for message in fixture.messages] == ["words", "words"]
    path.write_text("words")
    done, _ = run(tmp_path, path)
    assert "could read it" not in done.stdout
    assert "import --help lists" in done.stdout


@pytest.mark.parametrize(
    ("agent", "name", "content"),
    [
        ("Kimi CLI", "context.jsonl", [
            {"role": "_checkpoint", "id": 0}, {"role": "user", "content": "Go."},
            {"role": "assistant", "content": "Gone."}, {"role": "_usage", "token_count": 9},
            {"role": "user", "content": "On."}, {"role": "_checkpoint", "id": 1}]),
        ("Grok CLI", ".grok/sessions/x/a.json", [{"turns": []}]),
        ("Antigravity", ".gemini/antigravity/conversations/a.pb", [b"\n\x04\x08\x01"]),
        ("Aider", "history.md", [b"\n# aider chat started at 2026-01-01", b"#### Go."]),
    ],
)  # fmt: skip
def test_a_session_of_an_agent_that_is_not_read_is_named_so(
    tmp_path: Path, agent: str, name: str, content: list[Any]
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    done, written = run(tmp_path, json_lines(tmp_path / name, *content))
    assert (done.exit_code, written) == (1, [])
    assert f"{agent}, which is not read" in done.stdout


def test_what_a_reader_drops_of_a_message_is_always_listed(tmp_path: Path) -> None:
    odd, time = {"type": "hologram", "data": "x"}, "2026-01-01T00:00:00Z"
    blocks = [{"type": "text", "text": "Read a.py."}, odd, odd]
    said = [{"role": "user", "content": blocks}, {"role": "assistant", "content": "Done."}]
    head = {"type": "session", "id": "s", "timestamp": time, "cwd": "/w"}
    lines = [{"type": "message", "timestamp": time, "message": message} for message in said]
    done, _ = run(tmp_path, json_lines(tmp_path / "a.jsonl", head, *lines))
    assert done.exit_code == 0, done.output
    assert (
        "Left out by rule:\n"
        "  2 x pi, block hologram: unknown kind of content (first at a.jsonl: line 2)\n"
    ) in done.stdout
