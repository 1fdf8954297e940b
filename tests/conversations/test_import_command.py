"""``compression-eval import``, from files to fixtures."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.conversations import formats
from compression_eval.conversations.readers.base import Format
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.loading import load_fixture
from tests.fixtures.building import assistant, call, plain_messages, result, system, user


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(main, ["import", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def chat(path: str | Path, messages: list[Any] | None = None) -> Path:
    """Write a conversation in the OpenAI chat form; its name follows from its content."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"messages": plain_messages() if messages is None else messages}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def written(folder: str | Path = "fixtures") -> list[Path]:
    return sorted(Path(folder).glob("*"))


def row(done: Result, head: str) -> list[str]:
    """Return the numbers of the table's line that begins so."""
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(head + "-"))
    return line.split()[1:7]


def test_a_file_becomes_a_fixture_that_loads() -> None:
    done = run(chat("a.json"))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].startswith("a.json: openai-chat, an object with messages")
    (path,) = written()
    fixture = load_fixture(path)
    assert [message.text for message in fixture.messages] == [
        message["content"] for message in plain_messages()
    ]
    assert (fixture.name, fixture.cuts) == (path.stem, [9])
    assert "  cut at  left out  " in done.stdout
    assert row(done, "openai-chat") == ["9", "2", "2", "0", "9", "0"]
    assert done.stdout.splitlines()[-3:] == [
        "1 fixture in fixtures; nothing was scrubbed (no --scrub)",
        "Go on with:",
        "  compression-eval probes generate fixtures",
    ]


def test_the_same_input_gives_the_same_bytes() -> None:
    path = chat("a.json")
    run(path, "--out", "one")
    run(path, "--out", "two")
    assert written("one")[0].read_bytes() == written("two")[0].read_bytes()
    assert run(path, "--out", "one").exit_code == 0, "what is there already is the same"


def test_folders_and_patterns() -> None:
    chat("in/a.json")
    chat("in/deep/b.json", [user("Another."), assistant("Yes.")])
    Path("in/notes.txt").write_text("hello")
    Path("in/empty.jsonl").write_text("")
    done = run("in")
    assert done.exit_code == 0, done.output
    assert len(written()) == 2
    assert "in/notes.txt: no known format; it is not JSON\n" in done.stdout
    assert "in/empty.jsonl: the file is empty" in done.stdout
    assert run("in/**/*.json", "--out", "x").exit_code == 0
    assert [path.name for path in written("x")] == [path.name for path in written()]


@pytest.mark.parametrize("out", ["fixtures", "./deep/fixtures", "corpus.parquet"])
def test_what_an_import_wrote_is_not_read_by_the_next(out: str) -> None:
    chat("a.json")
    (Path.cwd() / "deep").mkdir()
    first = run(".", "--out", out)
    again = run(".", "--out", out, "--force", "--explain=../explained.jsonl")
    assert again.exit_code == 0, again.output
    assert first.stdout.replace("\n\n1 fixture", "\n\nSkipped (1):\n\n1 fixture") == "".join(
        line for line in again.stdout.splitlines(True) if ": it is in --out" not in line
    )
    told = Path("../explained.jsonl").read_text()
    (left,) = (each for each in map(json.loads, told.splitlines()) if not each["fixture"])
    assert Path(left["file"]).is_relative_to(out)
    assert left["reason"] == "it is in --out"
    assert "it is in --out" not in run(out, "--out", out, "--force").stdout, "it is named"


def test_a_file_that_was_named_and_failed_fails_the_command_but_not_the_others() -> None:
    good, bad = chat("a.json"), Path("bad.json")
    bad.write_text('{"messages": [{"role": "user"')
    done = run(bad, good)
    assert done.exit_code == 1
    assert len(written()) == 1
    assert "bad.json: no known format" in done.stdout
    assert done.stderr.endswith("Error: 1 could not be imported; see above\n")


def test_nothing_imported_is_a_failure_that_leaves_nothing() -> None:
    Path("in").mkdir()
    Path("in/notes.txt").write_text("hello")
    for out in ("fixtures", "a.parquet"):
        done = run("in", "--out", out)
        assert done.exit_code == 1
        assert "nothing was imported" in done.stderr
        assert [path.name for path in Path().iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.json"], "absent.json: no such file or folder"),
        (["empty"], "nothing to read: no file in empty"),
        (
            ["a.json", "--format", "word"],
            "--format: unknown format 'word', expected auto or",
        ),
        (["a.json", "--cut", "x"], "--cut: 'x' is not a cut; expected auto, end"),
        (["a.json", "--names", "n"], "--names: needs --scrub"),
        (["a.json", "--column", "x=y"], "--column: unknown part 'x', expected one of messages"),
        (["a.json", "--out", "a.json"], "--out: a.json is neither a folder nor named"),
        (["a.json", "--out", "there.parquet"], "--out: there.parquet is there already"),
    ],
)
def test_arguments_are_refused_before_anything_is_read(arguments: list[str], said: str) -> None:
    chat("a.json")
    Path("there.parquet").write_bytes(b"x")
    Path("empty").mkdir()
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    done = run(*arguments)
    assert done.exit_code == (2 if "no such file" in said else 1)
    assert done.stderr.startswith("Error: ")
    assert said in done.stderr
    assert done.stdout == ""
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before


def test_what_is_left_out_is_written_down_with_its_places() -> None:
    lines = [json.dumps(message) for message in plain_messages()]
    lines[2:2] = ['{"role": ', '{"role": "wizard"}', '{"role": "wizard"}']
    Path("a.jsonl").write_text("\n".join(lines) + "\n")
    Path("b.jsonl").write_text("words\n")
    done = run("a.jsonl", "b.jsonl", "--explain", "left-out.jsonl", "--format", "openai-chat")
    assert done.exit_code == 1
    first, second = map(json.loads, Path("left-out.jsonl").read_text().splitlines())
    assert (first["file"], first["fixture"]) == ("a.jsonl", written()[0].stem)
    found = {one["what"]: (one["count"], one["first"], one["known"]) for one in first["left_out"]}
    assert found == {
        "unreadable": (1, ["line 3"], False),
        "message:wizard": (2, ["line 4", "line 5"], False),
    }
    assert (second["file"], second["fixture"]) == ("b.jsonl", None)
    assert second["reason"]


def test_a_recording_named_behind_explain_is_not_written_over() -> None:
    path = chat("a.json")
    before = path.read_bytes()
    done = CliRunner().invoke(main, ["import", "--explain", str(path), str(path)])
    assert done.exit_code != 0
    assert path.read_bytes() == before


def test_copies_of_a_session() -> None:
    path = chat("a.json")
    Path("b.json").write_bytes(path.read_bytes())
    done = run(path, "b.json")
    assert done.exit_code == 0, done.output
    (fixture,) = written()
    assert f"skipped: the same as {fixture.stem} from a.json" in done.stdout
    assert run(path, path, "./a.json", "--out", "x").stdout.count("a.json: openai-chat") == 1


def test_the_longest_copy_of_a_session_can_be_kept_alone() -> None:
    def session(path: str, messages: list[Any], name: str = "a" * 12) -> None:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(json.dumps({"session_id": name, "messages": messages}))

    whole = plain_messages()
    begun = "I look at the code."
    asked = [*whole[:2], assistant(begun, call("c1", "read_file", path="src/limits.py"))]
    session("in/a.json", whole[:6])
    session("in/b.json", whole)
    session("in/c.json", asked)  # the file ended before the result
    session("in/d.json", [*whole[:2], assistant(begun)])  # and before the call
    session("in/h.json", [*whole[:5], user("Leave it."), assistant("As you wish.")])
    session("in/i.json", [*whole[:2], assistant("No.")])  # a branch
    session("in/j.json", [*whole[:7], result("c2", "Refused.")])
    session("in/e.json", [user("Something else."), assistant("Yes."), user("Good.")])
    session("in/f.json", whole[:6], name="b" * 12)
    (Path("in") / "g.json").write_bytes(Path("in/b.json").read_bytes())
    done = run("in", "--out", "all")
    assert len(written("all")) == 9, done.output
    assert "they begin differently" in done.stdout
    for out in ("longest", "longest.parquet"):
        done = run("in", "--duplicates", "longest", "--out", out)
        assert done.exit_code == 0, done.output
    for file in "acdg":
        assert f"in/{file}.json: a copy with " in done.stdout
    assert "of the session that in/b.json holds with 9 (--duplicates longest)" in done.stdout
    kept = {len(load_fixture(path).messages) for path in written("longest")}
    assert kept == {9, 3, 6, 7, 8}, "the whole one, another conversation, another session, branches"
    assert len(written("longest")) == pq.read_table("longest.parquet").num_rows == 6


def test_the_table_says_what_a_conversation_begins_with() -> None:
    notice = user("<system-reminder>not this</system-reminder>")
    words = user("Please mend the\n\x1b[31m parser, which fails on empty files.")
    done = run(chat("a.json", [system(), notice, words, assistant("Yes.")]))
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("openai-chat-"))
    assert line.endswith("  Please mend the ?[31m parser, which fail…")


def big_archive(path: Path, stated: int) -> None:
    """Write an Inspect log with a sample of 80 MiB, of which it states another size."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", b"a" * 80 * 2**20)
    size, said = ((80 * 2**20).to_bytes(4, "little"), stated.to_bytes(4, "little"))
    path.write_bytes(path.read_bytes().replace(size, said))


def test_an_archive_that_unpacks_to_far_more_than_it_holds_is_skipped() -> None:
    Path("in").mkdir()
    big_archive(Path("in/log.eval"), stated=1000)
    chat("in/a.json")
    done = run("in")
    assert done.exit_code == 0, done.output
    size = Path("in/log.eval").stat().st_size
    assert f"in/log.eval: {size:,} bytes that unpack to more than 64 MiB" in done.stdout
    assert len(written()) == 1


def test_other_content_is_not_overwritten_unless_asked_for() -> None:
    path = chat("a.json")
    run(path)
    (fixture,) = written()
    fixture.write_text("mine")
    done = run(path)
    assert done.exit_code == 1
    assert "is there already with other content; --force overwrites it" in done.stdout
    assert fixture.read_text() == "mine"
    assert run(path, "--force").exit_code == 0
    assert load_fixture(fixture).messages


def test_a_parquet_file() -> None:
    chat("in/a.json")
    chat("in/b.json", [user("Another."), assistant("Yes.")])
    done = run("in", "--out", "deep/corpus.parquet")
    assert done.stdout.endswith(
        "  compression-eval probes generate deep/corpus.parquet --out banks\n"
    )
    assert done.exit_code == 0, done.output
    rows = pq.read_table("deep/corpus.parquet").to_pylist()
    assert [row["messages"] for row in rows] == [9, 2]
    assert [row["probes"] for row in rows] == [None, None]
    assert [path.name for path in Path("deep").iterdir()] == ["corpus.parquet"]
    run("in", "--out", "files")
    texts = {path.stem: path.read_text() for path in written("files")}
    assert {row["name"]: row["fixture"] for row in rows} == texts


def test_scrubbed_on_the_way_and_audited() -> None:
    messages = [
        system(),
        user("I am jane.doe@megacorp.com, see /home/jdoe/app/main.py"),
        assistant("Read.", call("c1", path="/home/jdoe/app/main.py")),
        result("c1", "x = 1"),
        assistant(""),
        assistant("Done, jdoe."),
    ]
    done = run(chat("a.json", messages), "--scrub", "default")
    assert "\n1 fixture in fixtures\nGo on with:\n" in done.stdout
    assert done.exit_code == 0, done.output
    (path,) = written()
    text = path.read_text()
    assert "jdoe" not in text
    assert "jane.doe" not in text
    fixture = load_fixture(path)
    assert fixture.source is not None
    assert fixture.source.scrubber
    assert fixture.cuts == [len(fixture.messages)]
    assert "Replaced" in done.stdout


def test_a_defect_of_a_reader_ends_no_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: SourceFile) -> Any:
        raise KeyError("a secret of the conversation")

    broken = Format("broken", lambda source: "anything", read)
    good, bad = chat("in/good.json"), Path("in/bad.txt")
    bad.write_text("x")
    choose = formats.format_of
    monkeypatch.setattr(
        "compression_eval.conversations.pipeline.format_of",
        lambda source, name: (
            (broken, "x", source) if source.path.name == "bad.txt" else choose(source, name)
        ),
    )
    for named in ((bad, good), ("in",)):
        done = run(*named)
        assert done.exit_code == 1
        assert "the reader failed (please report this): KeyError in read, line" in done.stdout
        assert "secret" not in done.output
        assert len(written()) == 1
