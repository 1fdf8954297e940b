"""What commands tell about the state of the work: how the checks stand, and what git was told.

A check is known by its program and by the form in which its output ends. What it found counts only
where the exit status, or what the agent said next, agrees with the output.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from compression_eval.authoring.asking import Answer
from compression_eval.authoring.history import History, command_line
from compression_eval.file_ops.calls import Call, Outcome, command_outcome
from compression_eval.file_ops.tools import deed_of

Kind = Literal["tests", "linter"]

_MAX_COMMAND = 110
_MAX_READ = 20_000
_MAX_FAILING = 6
_MIN_TESTS = 5
"""Tests below which a count tells nothing."""
_SAID_WITHIN = 4
"""Messages after a result in which the agent may say what came out."""
_PARTS = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_TRIMS = re.compile(
    r"\s*(?:2>&1|\|\s*(?:tail|head|cat|grep|sed|awk|sort|uniq|cut|wc|less|tee)\b.*)\s*$"
)
_UNQUOTABLE = ("<<", "`", "“", "”", "|", " &")
_PIPED = re.compile(r"(?<!\|)\|(?!\|)")
_READS = re.compile(
    r"(?:sudo )?(?:ps|pgrep|rg|grep|ls|cat|find|diff|which|head|tail|sed|awk|less|echo|printf|git"
    r"|gh|curl|ssh|docker logs|kubectl)\b"
)
"""Programs that show what others printed, or only name them."""
_KINDS: dict[Kind, re.Pattern[str]] = {
    "tests": re.compile(
        r"\b(?:pytest|unittest|tox|nox|ctest|jest|vitest|mocha|rspec|phpunit|playwright"
        r"|gotestsum|tests?|specs?)\b"
    ),
    "linter": re.compile(
        r"\b(?:lint|ruff|eslint|golangci-lint|mypy|pyright|tsc|typecheck|type-check|biome|checks?)\b"
    ),
}
_ENDS: dict[Kind, tuple[str, ...]] = {
    "tests": (
        # pytest
        r"^(?:=+ )?(?=\d+ [a-z])(?:(?P<failed>\d+) failed)?(?:, )?(?:(?P<passed>\d+) passed)?"
        r"(?:(?:, )?\d+ (?:skipped|deselected|xfailed|xpassed|warnings?|reruns?))*"
        r"(?:, (?P<errors>\d+) errors?)? in \d[\d.]*s\b",
        # unittest, gotestsum
        r"^Ran (?P<total>\d+) tests? in .*\n+(?:OK|FAILED \((?:failures=(?P<failed>\d+))?)",
        r"^DONE (?P<total>\d+) tests(?:, \d+ skipped)?(?:, (?P<failed>\d+) failures?)? in ",
        # Jest, Vitest, Mocha, Playwright
        r"^Tests: +(?:(?P<failed>\d+) failed, )?(?:\d+ (?:skipped|todo), )*"
        r"(?:(?P<passed>\d+) passed, )?\d+ total$",
        r"^ *Tests +(?:(?P<failed>\d+) failed(?: \| )?)?(?:(?P<passed>\d+) passed)?.*\(\d+\)$",
        r"^ +(?P<passed>\d+) passing \(.+\)$(?:\n+ +\d+ pending$)?"
        r"(?:\n+ +(?P<failed>\d+) failing$)?",
        r"^ +(?P<passed>\d+) passed \([\d.]+m?s?\)$",
        # Cargo, Bun, Node, Deno
        r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed;",
        r"^ *(?P<passed>\d+) pass\n(?: *\d+ (?:skip|todo)\n)* *(?P<failed>\d+) fail$",
        r"^(?:#|ℹ) pass (?P<passed>\d+)\n(?:#|ℹ) fail (?P<failed>\d+)$",
        r"^(?:ok|FAILED) \| (?P<passed>\d+) passed.*?\| (?P<failed>\d+) failed",
        # RSpec, PHPUnit, .NET, CTest
        r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?",
        r"^OK \((?P<total>\d+) tests?, \d+ assertions?\)",
        r"\bFailed: +(?P<failed>\d+), Passed: +(?P<passed>\d+)",
        r"tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)",
    ),
    "linter": (
        r"^Found (?P<failed>\d+) errors?\b",  # Ruff, mypy, tsc, Biome
        r"^(?:All checks passed!|Success: no issues found)",
        r"^(?P<failed>\d+) errors?, \d+ warnings?\b",  # Pyright
        r"^✖ (?P<failed>\d+) problems? \(",  # ESLint
        r"^(?P<failed>\d+) issues?[.:]",  # golangci-lint
    ),
}
"""How a check ends its output, in a line of a known form."""
_CONVENTION = re.compile(
    r"(?:python3? -m |npx |uv run |bundle exec )?"
    r"(?:pytest|unittest|mypy|pyright|ruff|flake8|tsc|eslint|jest|vitest|mocha|rspec)\b"
    r"|(?:npm|pnpm|yarn|bun|make|just)(?: run)? (?:test|lint|check|typecheck)(?![\w:])"
    r"|(?:go|cargo) (?:test|vet|clippy|build|check)\b"
)
"""Commands that anybody would try first."""
_FAILED_TEST = re.compile(
    r"^FAILED (\S+?)(?: - .*)?$|^[ \t]*--- FAIL: (\S+)|^test (\S+) \.\.\. FAILED$"
    r"|^(?:FAIL|ERROR): (\w+) \(|^[ \t]*● (\S.{3,90}?)\s*$|^[ \t]*[✕✗×] (\S.{3,90}?)"
    r"(?: \(?\d+ ?m?s\)?)?$",
    re.MULTILINE,
)
_COMMITTED = re.compile(
    r"^\[(?P<branch>[\w./#-]+)(?: \(root-commit\))? (?P<hash>[0-9a-f]{7,40})\] "
    r"(?P<subject>\S.{0,150})$",
    re.MULTILINE,
)
_COMMITS = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_MOVES_HEAD = re.compile(
    r"\bgit\b[^|;&\n]*\b(?:reset|rebase|revert|cherry-pick|merge|pull|am|stack)\b"
)
_TAKES_BACK = re.compile(r"\bgit\b[^|;&\n]*\b(?:reset|revert|rebase -i|rebase --interactive)\b")
_MIN_SUBJECT_WORDS = 2
_MAX_COMMITS = 8
_BRANCHES = re.compile(r"\bgit (?:checkout -[bB]|switch (?:-[cC]|--create)) +([\w./-]{3,80})")
_ON_BRANCH = re.compile(
    r"^(?:On branch |Switched to (?:a new )?branch '|## |\[)(?P<name>[\w./#-]{3,80}?)"
    r"(?:'|\.\.\.\S+|(?: \(root-commit\))? [0-9a-f]{7,40}\] .*)?(?: \[.*\])?$",
    re.MULTILINE,
)
_USUAL_BRANCHES = frozenset({"main", "master", "develop", "dev", "trunk", "HEAD", "staging"})
_SWITCHES = re.compile(
    r"\bgit\b[^|;&\n]*\b(?:checkout|switch|worktree)\b|\bgh (?:pr (?:checkout|merge)|stack)\b"
)
"""Commands that leave a branch, work beside it, or end what it was for."""
_RESTORES = re.compile(r"\bgit checkout (?:\S+ )*-- ")
_OPENS = re.compile(
    r"\b(?:gh pr|glab mr|hub pull-request|tea pr)\b.{0,40}\bcreate\b|hub pull-request"
)
_ANY_REQUEST = re.compile(
    r"/(?:pull|pulls|merge_requests)/(\d{1,7})\b"
    r"|\b(?:PR|MR|[Pp]ull [Rr]equest|gh pr \w+) ?[#!]?(\d{1,7})\b"
)
_CLOSES = re.compile(r"\b(?:gh pr|glab mr)\b.{0,40}\b(?:merge|close)\b")
_REQUEST = re.compile(r"https?://\S+/(?:pull|pulls|merge_requests)/(\d{1,7})\b")


@dataclass(frozen=True)
class Run:
    """One run of a check, whose output ends in a known form."""

    kind: Kind
    command: str
    """The command without what only changed the folder or shortened the output."""
    given: str
    """The command as it was given."""
    outcome: Outcome
    counts: dict[str, int]
    """What the last line counts: ``passed``, ``failed``, ``errors``, ``total``."""
    message: int
    places: Sequence[int]
    """The message of the call and its results: where evidence may be."""
    history: History
    marked: bool
    """Whether the agent's results name exit codes, so that one without any succeeded."""

    @property
    def failures(self) -> int:
        """How many tests failed, or how much a linter found."""
        return self.counts.get("failed", 0) + self.counts.get("errors", 0)

    @cached_property
    def failed_tests(self) -> list[str]:
        """The tests that failed; a suite fails with each of its tests and is left out."""
        groups = _FAILED_TEST.findall(self.outcome.text)
        names = dict.fromkeys("".join(each).strip() for each in groups)
        return [n for n in names if not any(other.startswith(f"{n}/") for other in names)]

    @cached_property
    def agrees(self) -> bool:
        """Whether the exit status, or else the agent, says what the last line says."""
        known = self.outcome.exit_code is not None or self.marked
        if known and not _PIPED.search(self.given):
            return bool(self.outcome.exit_code) == bool(self.failures)
        said = self.failures or self.counts.get("passed") or self.counts.get("total")
        after = range(
            self.places[-1] + 1, min(self.places[-1] + 1 + _SAID_WITHIN, self.history.cut)
        )
        spoken = (self.history.messages[i] for i in after)
        texts = [message.text for message in spoken if message.role == "assistant"]
        return said is not None and any(re.search(rf"\b{said}\b", text) for text in texts)


def about_commands(history: History) -> Iterator[Answer]:
    """Yield how the checks stand, and by which command the project runs them."""
    runs = list(_runs(history))
    for kind in _KINDS:
        latest = [run for run in runs if run.kind == kind][-1:]
        if not latest or _ran_later(history, latest[0]):
            continue
        (run,) = latest
        if run.agrees and run.failures:
            names = run.failed_tests
            named = kind == "tests" and len(names) == run.failures <= _MAX_FAILING
            yield Answer("check_failing", run.command, run.places)
            count = [
                _count_forms(noun, number)
                for noun, number in run.counts.items()
                if noun in ("failed", "errors") and number
            ]
            for shown, *forms in [[n, n.split("::")[-1]] for n in names] if named else count:
                yield Answer("check_failing", shown, run.places, forms=forms)
        elif run.agrees and kind == "tests":
            for noun, number in run.counts.items():
                if noun in ("passed", "total") and number >= _MIN_TESTS:
                    shown, *forms = _count_forms(noun, number)
                    values = {"command": run.command}
                    yield Answer("test_counts", shown, run.places, values, forms)
    for kind in _KINDS:
        of_kind = [run for run in runs if run.kind == kind]
        names = list(dict.fromkeys(run.command for run in of_kind))
        if not names or _CONVENTION.match(names[0]):
            continue
        parts = (part for call in history.calls for part in _PARTS.split(command_line(call)))
        ran = [part for part in parts if _runs_check(part, kind)]
        if len(of_kind) > 1 and all(names[0] in part for part in ran):
            places = [place for run in of_kind for place in run.places]
            yield Answer(f"command_{kind}", names[0], places)


def _runs(history: History) -> Iterator[Run]:
    """Yield the runs of checks before the cut, in their order."""
    given = [(call, line) for call in history.calls if (line := command_line(call)) and call.result]
    outcomes = [command_outcome(call.result or "", call.error) for call, _ in given]
    marked = any(outcome.exit_code for outcome in outcomes)
    for (call, line), outcome in zip(given, outcomes, strict=True):
        end = outcome.text[-_MAX_READ:]
        for kind in _KINDS:
            commands = [part for part in _PARTS.split(line.strip()) if _runs_check(part, kind)]
            ends = [match for form in _ENDS[kind] for match in re.finditer(form, end, re.MULTILINE)]
            # Of several, nobody knows which output is whose.
            if len(commands) == len(ends) == 1 and (command := _quotable(commands[0])):
                found = ends[0].groupdict()
                counts = {noun: int(number) for noun, number in found.items() if number}
                places = history.with_results(call.message)
                yield Run(
                    kind, command, line, outcome, counts, call.message, places, history, marked
                )


def _runs_check(command: str, kind: Kind) -> bool:
    """Return whether a command runs a check, and does not only show what another printed."""
    return bool(_KINDS[kind].search(command)) and not _READS.match(command)


def _ran_later(history: History, run: Run) -> bool:
    """Return whether a later call may have run the check in a way that is not understood."""
    later = (command_line(call) for call in history.calls if call.message > run.message)
    return any(_runs_check(part, run.kind) for line in later for part in _PARTS.split(line))


def _quotable(command: str) -> str | None:
    """Return a command as a question can quote it; None if it is long or not whole."""
    text = command.strip()
    while (shorter := _TRIMS.sub("", text)) != text:
        text = shorter
    fits = text and len(text) <= _MAX_COMMAND and text.isprintable()
    whole = text.count('"') % 2 == text.count("'") % 2 == 0
    return text if fits and whole and not any(part in text for part in _UNQUOTABLE) else None


def _count_forms(noun: str, number: int) -> list[str]:
    """Return how a count can be given, the shown form first."""
    words = {
        "passed": ("passed", "tests passed", "tests", "pass", "passing"),
        "failed": ("failed", "tests failed", "fail", "failing", "failures", "errors", "problems"),
        "errors": ("error", "errors") if number == 1 else ("errors", "error"),
        "total": ("tests", "test", "examples"),
    }[noun]
    forms = [f"{number} {word}" for word in words]
    return [*forms, f"{words[0]}: {number}", f"{words[-1]}={number}", f"Ran {number} test"]


def about_git(history: History) -> Iterator[Answer]:
    """Yield the branch, the last commit and the pull request, from what git and its hosts print."""
    lines = [(call, command_line(call)) for call in history.calls if call.result is not None]
    shell = [(call, line) for call, line in lines if deed_of(call.name) == "shell"]
    yield from _branch(history, shell)
    yield from _commits(history, shell)
    yield from _pull_request(history, shell)


def _pull_request(history: History, shell: Sequence[tuple[Call, str]]) -> Iterator[Answer]:
    """Yield the pull request that was opened, if a later message and no other one comes up."""
    opened = [
        (call, match)
        for call, line in shell
        if _OPENS.search(line)
        for match in _REQUEST.finditer((call.result or "")[:_MAX_READ])
    ]
    if not opened:
        return
    call, match = opened[-1]
    places = history.with_results(call.message)
    later = history.messages[places[-1] + 1 :]
    text = "\n".join(message.searchable() for message in later)
    others = {found[1] or found[2] for found in _ANY_REQUEST.finditer(text)} - {match[1]}
    single = {found[1] for _, found in opened} == {match[1]}
    again = re.search(rf"(?:#|/){match[1]}\b", text)
    if single and again and not others and not _CLOSES.search(text):
        forms = [f"#{match[1]}", f"pull/{match[1]}"]
        yield Answer("pull_request", match[0], places, also=forms)


def _branch(history: History, shell: Sequence[tuple[Call, str]]) -> Iterator[Answer]:
    """Yield the branch at the cut, if two calls name it and none after them may have left it."""
    seen: list[tuple[int, str]] = []
    for call, line in shell:
        names = [match["name"] for match in _ON_BRANCH.finditer((call.result or "")[:_MAX_READ])]
        if not command_outcome(call.result or "", call.error).failed:
            names += _BRANCHES.findall(line)
        if names and "git" in line:
            if len(set(names)) > 1 or (seen and seen[-1][1] != names[0]):
                seen = []
            seen.append((call.message, names[-1]))
        elif _SWITCHES.search(line) and not _RESTORES.search(line):
            seen = []
    if len({message for message, _ in seen}) > 1 and seen[-1][1] not in _USUAL_BRANCHES:
        yield Answer("branch", seen[-1][1], history.with_results(*(message for message, _ in seen)))


def _commits(history: History, shell: Sequence[tuple[Call, str]]) -> Iterator[Answer]:
    """Yield the commits and the last of them, if the commands and git give the same subjects."""
    found: list[Answer] = []
    whole = last = True
    for call, line in shell:
        if _COMMITS.search(line):
            made = list(_COMMITTED.finditer((call.result or "")[:_MAX_READ]))
            told = " ".join(line.split())
            places = history.with_results(call.message)
            read = [
                Answer("last_commit", match["subject"].strip(), places, also=[match["hash"]])
                for match in made
                if match["subject"].isprintable() and match["subject"].strip() in told
            ]
            last = bool(made) and len(read) == len(made)
            whole = whole and last and "--amend" not in line
            found += read
        elif _MOVES_HEAD.search(line):
            last = False
            whole = whole and not _TAKES_BACK.search(line)
    if found and last and len(found[-1].text.split()) >= _MIN_SUBJECT_WORDS:
        yield found[-1]
    if whole and 1 < len(found) <= _MAX_COMMITS:
        yield from (replace(answer, row="commits") for answer in found)
