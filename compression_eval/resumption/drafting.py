"""``compression-eval continuations draft``: tasks begun from what a session continued with.

Whatever a conversation contains is data here: it becomes YAML strings, and no command of it is run;
only a recording's script is carried out again, as wherever a recording is used. No task is taken
from a draft before a person has finished it; see `load_continuations`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import click
import yaml

from compression_eval.errors import DataError, shorten
from compression_eval.fetching.sources import CodeBase, Sources
from compression_eval.file_ops.calls import Call, calls_of_fixture, command_outcome
from compression_eval.file_ops.ledger import FileState, Reading, inventory_of
from compression_eval.file_ops.tools import read_calls
from compression_eval.fixtures.conversation import conversation
from compression_eval.fixtures.cuts import boundaries
from compression_eval.fixtures.loading import find_sources
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.recording import recording_of
from compression_eval.fixtures.writing import write_whole
from compression_eval.resumption.qualifying import qualify_command
from compression_eval.terminal import CleanGroup, Output, examples, refuse_to_overwrite

_HEADER = """\
# Drafts of continuation tasks, made from what a session went on with; docs/resumption.md tells how
# to finish one. Each lacks what its `missing` names:
#   message      must be understood at the cut, and ask for work that can be checked; left out, it
#                is the session's own
#   checks       read every `run`: it comes from the conversation, and will be run on your machine;
#                keep what any good solution passes and the untouched code base fails
#   constraints  what the user said before (messages `said_before`) and the message does not repeat,
#                each with a probe that asks for it and a script that breaks it
#   solution     a script that does the work
#   codebase     a folder beside this file with the code base as it stood at the cut
#   folder of    where a test ran that passed is not certain, or outside of the project: add a check
# A task counts as finished when its `draft` is taken out.
"""
_MAX_FILES = 30
"""Changed files of one task that are listed and checked."""
_MAX_NAMES = 3
_MAX_COMMAND = 500
_LAST_LINES = 12
_MAX_SHOWN = 400
_TEST = re.compile(
    r"(?!.* (?:-h|--help|--version|--collect-only)(?: |$))(?:\w+=\S+ +)*"
    r"(?:(?:uv|poetry|pdm|hatch|pipenv) run +(?>-(?:-(?:with|extra|group|python|package|directory"
    r"|project|env-file)|p) +\S+ +|-\S+ +)*|npx +|bundle exec +|python[\d.]* -m +)*"
    r"(?:\S*/)?(?:pytest|py\.test|unittest|tox|nox|ctest|jest|vitest|mocha|rspec|phpunit"
    r"|python[\d.]* +(?:\S*/)?(?:tests?/\S+|test_\w+|run_?tests?\w*)\.py"
    r"|(?:ba|z)?(?:sh +)?(?:\S*/)?run[-_]?tests?(?:\.sh)?"
    r"|(?:go|cargo|npm|pnpm|yarn|bun|deno|make|mvn|mvnw|gradle|gradlew|dotnet|swift|mix|rake|bazel)"
    r"(?: +run|(?> +-(?:[Cfp]|-prefix|-cwd|-filter|-workspace|-manifest-path) +\S+| +-j +\d+"
    r"| +-\S+))* +(?:test|check)[\w:.-]*)(?![\w/.-])"
)
"""How a command begins that runs tests: a runner's name, or a build tool told to test."""
_FAILS = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b|^(?:FAILED|FAIL|ERROR)\b"
    r"|\b(?:failures|errors)=[1-9]|^--- FAIL|test result: FAILED",
    re.MULTILINE,
)
_PASSES = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:passed|passing)\b|^OK\b|^ok\s|^PASS\b|^--- PASS|test result: ok",
    re.MULTILINE,
)


@dataclass(frozen=True, eq=False)
class TestRun:
    """One test command that the session ran."""

    message: int
    """The index of the message that called it."""
    command: str
    """The command alone, without what changed its folder or shortened its output."""
    folder: str | None
    """Where it ran, within the project; None for a folder outside of it or not certain."""
    outcome: str
    """``passed``, ``failed`` or ``unknown``: what its output counts, else its exit code."""
    shown: dict[str, Any]
    """What the draft says about it."""

    @classmethod
    def of(cls, call: Call, command: str, folder: str | None) -> "TestRun":
        """Return the run of a command in a call."""
        ended = command_outcome(call.result or "", call.error)
        end = ended.text.rstrip()
        last = "\n".join(end.splitlines()[-_LAST_LINES:])
        outcome = "unknown"
        if call.result is not None and (ended.failed or _FAILS.search(last)):
            outcome = "failed"
        elif call.result is not None and (_PASSES.search(last) or ended.exit_code == 0):
            outcome = "passed"
        shown = {
            "command": command[:_MAX_COMMAND],
            "message": call.message,
            **({} if folder == "" else {"folder": folder}),
            "outcome": outcome,
            **({} if ended.exit_code is None else {"exit_code": ended.exit_code}),
            "output_ends": end[-_MAX_SHOWN:],
        }
        return cls(call.message, command, folder, outcome, shown)

    @property
    def key(self) -> object:
        """What it has in common with another run of the same; nothing if it is unknown where."""
        return self if self.folder is None else (self.folder, self.command)

    @property
    def run(self) -> str:
        """The script of a check that runs it again."""
        return f"cd {shlex.quote(self.folder)} && {self.command}" if self.folder else self.command


class Session:
    """A conversation, with what its calls changed and tested."""

    def __init__(self, fixture: Fixture) -> None:
        self.fixture = fixture
        self.calls = calls_of_fixture(fixture.messages)
        self.reading: Reading = read_calls(self.calls)
        self.tests = list(self._tests())
        self.typed = [i for i, message in enumerate(fixture.messages) if message.typed.strip()]

    def _tests(self) -> Iterator[TestRun]:
        left: str | None = ""  # where the shell stands, if it keeps its folder between calls
        for call in self.calls:
            reading = read_calls([call], root=self.reading.root)
            for ran in reading.commands:
                text = " ".join(ran.text.split())
                if _TEST.match(text[:_MAX_COMMAND]):
                    # To enter the folder again by the same relative path, the shell was above it.
                    certain = ran.fixed or left in ("", ran.folder)
                    known = certain and ran.folder is not None
                    yield TestRun.of(call, text, self._within(ran.folder or "") if known else None)
            if (end := reading.ended) and (end.fixed or end.folder != ""):
                left = end.folder

    def _within(self, path: str) -> str | None:
        """Return a path relative to the project; None for one outside of it."""
        root, path = self.reading.root, path.rstrip("/")
        if root and f"{path}/".startswith(f"{root}/"):
            return path[len(root) + 1 :]
        return None if path.startswith(("/", "..")) else path.removeprefix("./")

    def turns(self) -> dict[int, int]:
        """Return where a task may begin: the index of a user's message, to that of the next.

        Not the first message, and only those after which something was changed or tested.
        """
        allowed = set(boundaries(self.fixture)) - set(self.typed[:1])
        spans = pairwise([*self.typed, len(self.fixture.messages)])
        return {
            start: end
            for start, end in spans
            if start in allowed and (self.changed(start, end) or self.tested(start, end))
        }

    def tested(self, start: int, end: int) -> list[TestRun]:
        """Return the test commands that some messages ran."""
        return [run for run in self.tests if start <= run.message < end]

    def changed(self, start: int, end: int) -> dict[str, FileState]:
        """Return what became of each file that the calls of some messages changed."""
        events = [event for event in self.reading.events if start <= event.message < end]
        states = inventory_of(events).states
        return {
            path: state
            for path, state in states.items()
            if state.status in ("created", "modified", "renamed", "deleted")
            and not state.folder
            and not path.startswith(("/", "~", ".."))
        }


def drafted(session: Session, cut: int, end: int, code: CodeBase) -> dict[str, Any]:
    """Return the draft of the task that a session itself was given at a cut.

    Args:
        session: The conversation.
        cut: The index of the user's message.
        end: That of the user's next one.
        code: The code base at the cut, as far as it is known.

    Returns:
        The fields of a task, and ``draft``.
    """
    changed = session.changed(cut, end)
    listed = dict(list(changed.items())[:_MAX_FILES])
    latest = {run.key: run for run in session.tested(cut, end)}
    before = {run.key: run.outcome for run in session.tested(0, cut)}
    passing = [
        run
        for key, run in latest.items()
        if run.outcome == "passed" and before.get(key) != "passed" and len(run.run) <= _MAX_COMMAND
    ]
    checks = [
        *_file_checks(session, listed, (cut, end), code),
        *(
            {"what": f"{run.command} passes", "run": run.run}
            for run in passing
            if run.folder is not None
        ),
    ]
    notes = []
    if brought := [path for path in changed if any(path in run.run for run in latest.values())]:
        notes.append(
            f"tests that the session wrote itself, so nobody else has: {', '.join(brought)}"
        )
    if len(listed) < len(changed):
        notes.append(f"the first {len(listed)} of {len(changed)} changed files are listed")
    unsure = [item for item in session.reading.unclassified if cut <= item.message < end]
    if unsure:
        what = shorten(unsure[0].what)
        notes.append(f"{len(unsure)} calls may have changed other files, as one of {what}")
    recorded = recording_of(session.fixture) is not None
    lacks = [
        *("message", "checks", "constraints", "solution", *([] if recorded else ["codebase"])),
        *dict.fromkeys(f"folder of {run.command}" for run in passing if run.folder is None),
    ]
    return {
        "id": f"message-{cut}",
        "cut": cut,
        **({} if recorded else {"codebase": ""}),
        "message": session.fixture.messages[cut].typed,
        "checks": checks,
        "constraints": [],
        "solution": "",
        "draft": {
            "missing": lacks,
            **({"notes": notes} if notes else {}),
            "said_before": [index for index in session.typed if index < cut],
            "changed": {path: state.status for path, state in listed.items()},
            "tests": [
                run.shown | ({"before": before[key]} if key in before else {})
                for key, run in latest.items()
            ],
        },
    }


def _file_checks(
    session: Session, changed: Mapping[str, FileState], span: tuple[int, int], code: CodeBase
) -> Iterator[dict[str, str]]:
    """Yield checks of what became of files, where the code base at the cut is known to differ."""
    for path, state in changed.items():
        name = shlex.quote(path)
        if state.status == "created" and path not in code.texts:
            yield {"what": f"{path} is there", "run": f"test -f {name}"}
        elif state.status == "deleted":
            yield {"what": f"{path} is gone", "run": f"test ! -e {name}"}
        elif state.status == "renamed":
            old = shlex.quote(state.original)
            run = f"test -f {name} && test ! -e {old}"
            yield {"what": f"{state.original} is {path} now", "run": run}
        elif path in code.texts and path not in code.uncertain:
            defined = (
                word
                for event in session.reading.events
                if event.path == path and span[0] <= event.message < span[1]
                for word in event.names
            )
            before = set(re.findall(r"\w+", code.texts[path]))
            for word in list(dict.fromkeys(word for word in defined if word not in before))[
                :_MAX_NAMES
            ]:
                run = f"grep -qw -e {shlex.quote(word)} -- {name}"
                yield {"what": f"{path} has {word}", "run": run}


async def drafts(fixture: Fixture, cuts: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Return the drafts of all tasks that a session was given, or of those at some cuts.

    Raises:
        DataError: There is nothing to draft at a cut, or nowhere.
    """
    session = Session(fixture)
    turns = session.turns()
    if unfit := [cut for cut in cuts if cut not in turns]:
        fit = ", ".join(map(str, turns)) or "no place"
        raise DataError(
            f"--cut {unfit[0]}: not before a message of the user after which files were changed or "
            f"tests run; {shorten(fixture.name)} has such at {fit}"
        )
    if not turns:
        raise DataError(
            f"{shorten(fixture.name)}: after none of the user's messages but the first did a call "
            "change a file of the project or run tests"
        )
    messages = await conversation(fixture)
    found = []
    chosen = sorted(set(cuts) or turns)
    for number, cut in enumerate(chosen, 1):
        click.echo(f"{number} of {len(chosen)}: before message {cut}", err=True)
        code = await Sources(fixture, messages[:cut]).code_base()
        found.append(drafted(session, cut, turns[cut], code))
    return found


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Return the node of a text."""
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


@click.group(cls=CleanGroup)
def continuations() -> None:
    """Draft and qualify tasks in which an agent continues a session."""


continuations.add_command(qualify_command)


@continuations.command(
    "draft",
    epilog=examples(
        "continuations draft my/fixtures/logins.json --out my/continuations/logins.yaml",
        "continuations draft logins.json --cut 11 --out logins.yaml",
    ),
)
@click.argument("path", metavar="FIXTURE")
@click.option(
    "--cut",
    "cuts",
    type=click.IntRange(min=1),
    multiple=True,
    help="Draft only the task after this number of messages. Repeatable.",
)
@click.option("--out", "-o", type=Output(parents=True), required=True, help="File to write (YAML).")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def draft_command(path: str, cuts: tuple[int, ...], out: Path, force: bool) -> None:
    """Begin a continuation task for each message of the user, from what the session then did.

    A draft has the message, checks that follow from the files that the session changed and the
    tests that passed, and a list of what a person must add. No command of the conversation is run;
    the script of a recording is carried out again, once for each draft, which takes time.
    FIXTURE is a name, a file or an address.
    """
    sources = find_sources([path])
    if len(sources) != 1:
        raise DataError(f"{shorten(path)}: {len(sources)} fixtures, expected one")
    refuse_to_overwrite(out, "--out", force=force)
    fixture = sources[0].read_fixture()
    tasks = anyio.run(drafts, fixture, cuts)
    text = yaml.dump(
        {"fixture": fixture.name, "tasks": tasks},
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=96,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, _HEADER + text)
    click.echo(
        f"wrote {out}: {len(tasks)} drafts to finish, before messages "
        f"{', '.join(str(task['cut']) for task in tasks)}"
    )
