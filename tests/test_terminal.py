import io
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from compression_eval import terminal
from compression_eval.cli import main
from compression_eval.errors import DataError
from compression_eval.terminal import CleanCommand, CleanGroup, Display, LateGroup, examples
from tests.e2e import small
from tests.fixtures.building import plain_messages


def _commands(error: Exception) -> list[click.Command]:
    def fail() -> None:
        raise error

    group = CleanGroup("all", commands=[click.Command("one", callback=fail)])
    return [CleanCommand("one", callback=fail), group]


@pytest.mark.parametrize("error", [DataError("a.json: name: missing"), OSError("disk full")])
def test_what_is_wrong_with_data_is_one_clean_line(error: Exception) -> None:
    for command in _commands(error):
        done = CliRunner().invoke(command, ["one"] if isinstance(command, click.Group) else [])
        assert done.exit_code == 1
        assert done.output == f"Error: {error}\n"


@pytest.mark.parametrize(
    "command",
    [
        "fixtures check GONE",
        "probes check GONE",
        "scrub GONE --out OUT",
        "import GONE --out OUT",
        "sweep --arms tail --fixtures GONE",
        "facts GONE",
    ],
)
def test_a_path_that_is_not_there_ends_as_other_wrong_arguments_do(
    command: str, tmp_path: Path
) -> None:
    places = {"GONE": str(tmp_path / "gone.json"), "OUT": str(tmp_path / "out")}
    for name, place in places.items():
        command = command.replace(name, place)
    done = CliRunner().invoke(main, command.split())
    assert (done.exit_code, "no such file" in done.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


WRITES = {
    "file": (
        *("compare GONE --to GONE --out", "compare GONE --to GONE --junit", "facts GONE --csv"),
        *("facts GONE --json", "probes analyse GONE --json"),
        *("probes generate GONE --report", "scrub GONE --out x --report", "import IN --explain"),
        *(
            "continuations draft GONE --out",
            "fixtures record GONE --out",
            "fixtures pack GONE --out",
        ),
    ),
    "folder": (
        *("report GONE --out", "import IN --out", "scrub GONE --out"),
        *("probes generate IN --out", "probes qualify IN --out", "quickstart GONE --out"),
    ),
}
"""Commands that write, by what; each is given a path behind."""


@pytest.mark.parametrize("command", [*WRITES["file"], *WRITES["folder"]])
def test_a_place_that_cannot_be_written_to_is_told_before_any_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = small.write(Path("in"))
    Path("locked").mkdir()
    Path("file").touch()
    Path("there").touch() if command in WRITES["folder"] else Path("there").mkdir()
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name != "locked" and access(path, mode)
    )
    before = sorted(tmp_path.rglob("*"))
    command = command.replace("IN", str(source)).replace("GONE", "gone.json")
    for place, said in (
        ("locked/out", "locked: the folder cannot be written to"),
        ("file/out", "file: not a folder"),
        ("there", "there"),
    ):
        done = CliRunner().invoke(main, f"{command}={place}".split())
        assert done.exit_code in (1, 2)
        assert isinstance(done.exception, SystemExit)
        assert said in done.stderr
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["pipe", "link", "link to nothing", "device"])
@pytest.mark.parametrize(
    "command",
    [
        "fixtures pack in/tiny.json --force --out out.parquet",
        "import chat.json --force --explain out.parquet",
        "scrub in/tiny.json --out made --report out.parquet",
    ],
)
def test_what_is_there_and_no_plain_file_is_written_into(
    command: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small.write(Path("in"))
    Path("chat.json").write_text(json.dumps({"messages": plain_messages()}), encoding="utf-8")
    out = Path("out.parquet")
    target = Path("target")
    if kind == "pipe":
        os.mkfifo(out)
    elif kind == "device":
        try:
            os.mknod(out, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # another /dev/null
        except PermissionError:
            pytest.skip("only root can make a device")
    else:
        target.write_text("old") if kind == "link" else None
        out.symlink_to(target.absolute())
    before = out.lstat().st_ino, out.lstat().st_mode
    reading = ["cat", str(out)] if kind == "pipe" else ["true"]
    with subprocess.Popen(reading, stdout=subprocess.PIPE) as reader:
        try:
            done = CliRunner().invoke(main, command.split())
            assert done.exit_code == 0, done.output
            read = reader.communicate(timeout=10)[0]
        finally:
            reader.kill()
    assert (out.lstat().st_ino, out.lstat().st_mode) == before
    if kind != "device":
        assert len(read or target.read_bytes()) > 3
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_defect_is_not_hidden() -> None:
    for command in _commands(ValueError("a bug")):
        done = CliRunner().invoke(command, ["one"] if isinstance(command, click.Group) else [])
        assert isinstance(done.exception, ValueError)


def test_examples_stay_a_line_each_and_name_the_whole_command() -> None:
    command = click.Command("one", epilog=examples("one a", "one b --c"))
    shown = CliRunner().invoke(command, ["--help"]).output
    assert "  compression-eval one a\n" in shown
    assert "  compression-eval one b --c\n" in shown
    assert (
        "compression-eval fixtures check"
        in CliRunner().invoke(main, ["fixtures", "check", "--help"]).output
    )


def test_every_command_takes_h_for_help_and_is_listed_by_its_first_sentence() -> None:
    context = click.Context(main)

    def named(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                sub = command.get_command(context, name)
                assert sub is not None
                if isinstance(command, LateGroup):
                    assert sub.get_short_help_str(1000) == command.late[name][1]
                yield from named(sub, (*path, name))

    for path in named(main, ()):
        shown = CliRunner().invoke(main, [*path, "-h"])
        assert shown.exit_code == 0, path
        assert "-h, --help" in shown.output
    assert CliRunner().invoke(main, ["no-such"]).exit_code == 2


@pytest.mark.skipif(
    [int(part) for part in version("click").split(".")[:2]] < [8, 4], reason="it suggests none"
)
@pytest.mark.parametrize(("given", "meant"), [("compre", "compare"), ("probes chek", "check")])
def test_a_misspelt_command_is_told_the_one_that_may_be_meant(given: str, meant: str) -> None:
    done = CliRunner().invoke(main, given.split())
    assert done.exit_code == 2
    assert "id you mean" in done.stderr
    assert f"'{meant}'" in done.stderr


@pytest.mark.parametrize("command", [[], ["probes", "generate"], ["import"]])
def test_help_is_there_at_once(command: list[str]) -> None:
    shown = f"main({[*command, '-h']}, standalone_mode=False);"
    code = f"import sys; from compression_eval.cli import main; {shown}"
    code += "print('inspect_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\nFalse\n")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_in_a_terminal_and_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "LINE_SECONDS", (0.02,))
    monkeypatch.setenv("TERM", "xterm")
    said = {}
    for stream in (io.StringIO(), _Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        with Display("scrub", 4, lambda: "2 min left", lambda: "1 of 4 files") as shown:
            shown.advance()
            time.sleep(0.3)
        said[stream.isatty()] = stream.getvalue()
    plain, drawn = said[False], said[True]
    assert plain.count("1 of 4 files\n") > 2
    assert "\x1b" not in plain
    assert all(shown in drawn for shown in ("scrub", "1/4", "2 min left"))
