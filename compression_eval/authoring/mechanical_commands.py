"""What commands tell: what they reported, how they ended, what is failing still."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from compression_eval.authoring.asking import Answer, tells
from compression_eval.authoring.history import History, command_line
from compression_eval.file_ops.calls import Call, Outcome, command_outcome
from compression_eval.file_ops.naming import mentioned_files
from compression_eval.file_ops.tools import deed_of

_MAX_COMMAND = 110
_MAX_READ = 20_000
_MAX_SAID = 60
_LAST_LINES = 12
_ENTERS = re.compile(r"^cd \S+ ?&& ?")
_TRIMS = re.compile(
    r"\s*(?:2>&1|\|\s*(?:tail|head|cat|grep|sed|awk|sort|uniq|cut|wc|less|tee)\b.*)\s*$"
)
_SEVERAL = ("&&", "||", ";", "<<", "`", "\n", "“", "”")
_ERROR = re.compile(
    r"^(?:[\w./-]+:\d+(?::\d+)?:? ?)?(?:E +)?"
    r"(?P<kind>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception)"
    r"|(?:fatal )?error(?:\[E\d+\]| TS\d+)?|ERR_\w+|fatal|panic): (?P<said>\S.{2,300})$",
    re.MULTILINE,
)
_CHAINED = re.compile(
    r"During handling of the above exception|exception was the direct cause of the following"
)
_TELLING = re.compile(r"\w+(?:Error|Exception)$|E\d+|TS\d+|ERR_\w+")
_QUOTED = re.compile(r"[\"'`‘“]([^\"'`’”\n]{3,60})[\"'`’”]")
_COUNT = re.compile(
    r"(?<![\w.])(\d+) "
    r"(passed|failed|skipped|xfailed|failures?|errors?|issues?|problems?|warnings?)\b"
)
_RAN = re.compile(r"^Ran (\d+) tests?\b", re.MULTILINE)
_CHECKS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|ctest|jest|vitest|mocha|rspec|phpunit|mypy|pyright|ruff|eslint|tsc"
    r"|flake8|pylint|golangci-lint|clippy)\b|\b(?:go|cargo|npm|pnpm|yarn|make|mise|gradlew?|mvn|dotnet)"
    r"(?: run| -\S+)* (?:test|check|lint|build|vet|typecheck|verify)\b|-m tests\b"
)
_KINDS = {
    "tests": re.compile(
        r"\b(?:pytest|unittest|tox|nox|ctest|jest|vitest|mocha|rspec|phpunit|tests?)\b"
    ),
    "linter": re.compile(
        r"\b(?:lint|ruff|eslint|golangci-lint|clippy|flake8|pylint|mypy|pyright|tsc|typecheck|vet)\b"
    ),
}
_CONVENTION = re.compile(
    r"(?:python3? -m |npx |uv run |bundle exec )?"
    r"(?:pytest|unittest|mypy|pyright|ruff|flake8|tsc|eslint|jest|vitest|mocha|rspec)\b"
    r"|(?:npm|pnpm|yarn|make)(?: run)? (?:test|lint|check|typecheck)(?![\w:])"
    r"|(?:go|cargo) (?:test|vet|clippy|build|check)\b"
)
"""Commands that anybody would try first."""
_FAILED_TEST = re.compile(
    r"^FAILED (\S+?)(?: - .*)?$|^\s*--- FAIL: (\S+)|^test (\S+) \.\.\. FAILED$"
    r"|^(?:FAIL|ERROR): (\w+) \(|^\s*● (\S.{3,90}?)\s*$|^\s*[✕✗×] (\S.{3,90}?)"
    r"(?: \(?\d+ ?m?s\)?)?$",
    re.MULTILINE,
)
_FINDING = re.compile(
    r"^(?:\S+ )?((?:[\w@.-]+/)*[\w@-][\w@.-]*\.\w{1,5}):\d+(?::\d+)?[: ]", re.MULTILINE
)
_RULE = re.compile(
    r"^\S*\w:\d+(?::\d+)?: .*?(?:\((\w[\w-]{2,30})\)|\[([a-z]+(?:-[a-z]+)+)\])$"
    r"|:\d+:\d+:? ([A-Z]{1,4}\d{3,4})\b|error (TS\d{4}):"
    r"|^ +\d+:\d+ +(?:error|warning) .*? {2,}([@\w/-]+)$",
    re.MULTILINE,
)
_GIVEN = {
    "packages": re.compile(
        r"\b(?:(?:pip3?|uv pip|npm|pnpm|apt(?:-get)?|brew|cargo|gem) install"
        r"|(?:uv|poetry|pnpm|yarn|cargo) add"
        r"|go get|npm i)((?: +-{1,2}[\w-]+| +[\w@./:=~^<>\[\]-]+)+)"
    ),
    "branch": re.compile(r"\bgit (?:checkout -b|switch -c|switch --create) +([\w./-]{3,80})"),
    "port": re.compile(r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{4,5})\b"),
}
"""What a command that succeeded tells by itself, by the row that asks for it."""
_NO_PACKAGE = re.compile(r"^(?:-|\.|/|e$)|^(?:requirements|package)|\.txt$")
_MAX_ADDRESS = 120
_SEARCH = re.compile(
    r"(?:rg|grep|git grep)(?: +-[\w-]+)* +(?P<quote>[\"']?)(?P<pattern>[\w\\.()]+)(?P=quote)"
    r"(?: +-[\w-]+)*(?: +(?P<within>[^|;&<>]+?))?\s*$"
)
_HIT = re.compile(r"^(?:\./)?((?:[\w@.-]+/|/)*[\w@.-]+?)(?::\d+:.*|:.*)?$", re.MULTILINE)
_LOOKS = re.compile(r"(?:grep|rg|ls|cat|find|diff|test|which|head|tail|sed|awk|stat|wc)\b")
"""Programs whose exit code says no more than that nothing was there."""
_COMMITTED = re.compile(
    r"^\[[\w./#-]+(?: \(root-commit\))? ([0-9a-f]{7,40})\] (\S.{0,150})$", re.MULTILINE
)
_OPENS = re.compile(
    r"\b(?:gh pr|glab mr|hub pull-request|tea pr)\b.{0,40}\bcreate\b|hub pull-request"
)
_REQUEST = re.compile(r"https?://\S+/(?:pull|pulls|merge_requests)/(\d{1,7})\b")


@dataclass(frozen=True)
class Run:
    """One command that was run and that a question can quote."""

    command: str
    """The command without what only changed the folder or shortened the output."""
    outcome: Outcome
    places: Sequence[int]
    """The message of the call and its results: where evidence may be."""
    only: bool
    """Whether no other call ran the command as a part of something longer."""
    latest: bool
    """Whether no later call did."""

    @cached_property
    def counts(self) -> dict[str, str]:
        """What the last lines of the output count: noun to number."""
        end = "\n".join(self.outcome.text.rstrip().splitlines()[-_LAST_LINES:])
        found = {noun: number for number, noun in _COUNT.findall(end)}
        ran = _RAN.search(end)
        return found | {"tests": ran[1]} if ran else found

    @cached_property
    def failed_tests(self) -> list[str]:
        """The tests that failed; a suite fails with each of its tests and is left out."""
        groups = _FAILED_TEST.findall(self.outcome.text)
        names = dict.fromkeys("".join(each).strip() for each in groups)
        return [n for n in names if not any(other.startswith(f"{n}/") for other in names)]

    @cached_property
    def error(self) -> list[str]:
        """What tells the error: its kind and what it names; empty if not just one is reported."""
        text = self.outcome.text
        matches = list(_ERROR.finditer(text))
        # Tracebacks that follow from one another end with the error that came out.
        chained = len(_CHAINED.findall(text)) + 1
        traced = text.count("Traceback (most recent")
        several = traced > chained or (not traced and len({match[0] for match in matches}) > 1)
        if not matches or several:
            return []
        said = matches[-1]["said"].strip()
        kind, quoted = _TELLING.search(matches[-1]["kind"]), _QUOTED.search(said)
        if kind and kind[0] == "AssertionError":
            kind = quoted = None  # every failed test has one, and it may quote anything
        forms = [kind[0]] if kind else []
        if quoted:
            forms.append(quoted[1])
        elif len(said) <= _MAX_SAID:
            forms.append(said)
        return list(dict.fromkeys(forms))


def about_commands(history: History) -> Iterator[Answer]:
    """Yield what commands tell, the most telling first."""
    commands: dict[str, list[Run]] = {}
    for run in _runs(history):
        commands.setdefault(run.command, []).append(run)
    for command, runs in commands.items():
        values, run = {"command": command}, runs[-1]
        failed = [one for one in runs if one.outcome.failed or one.error]
        if len(failed) == 1 and failed[0].only:
            row = "command_error" if len(failed[0].error) > 1 else "command_error_one"
            yield from (Answer(row, form, failed[0].places, values) for form in failed[0].error)
        for noun, number in run.counts.items() if run.latest else ():
            shown, *forms = _count_forms(noun, number)
            earlier = (one.counts.get(noun, number) for one in runs[:-1])
            old = [_count_forms(noun, other)[0] for other in earlier if other != number]
            yield Answer("summary_counts", shown, run.places, values, forms, superseded=old)
        code = run.outcome.exit_code
        if len(runs) == 1 and run.only and code not in (None, 0, 1) and not _LOOKS.match(command):
            words = ("exit code", "exit code:", "code", "status", "exited with")
            shown, *forms = [f"{word} {code}" for word in words]
            if history.stated_in([shown, *forms], run.places):
                yield Answer("exit_code", shown, run.places, values, forms)
    yield from _checks(history, commands)
    yield from _given(history)
    yield from _searches(history)


def _runs(history: History) -> Iterator[Run]:
    """Yield the single commands before the cut, in their order."""
    shells = [call for call in history.calls if deed_of(call.name) == "shell"]
    given = [(call, line, _quotable(line)) for call in shells for line in [command_line(call)]]
    for call, _, command in given:
        if command is None or call.result is None:
            continue
        within = [o.message for o, line, quoted in given if command in line and quoted != command]
        outcome = command_outcome(call.result, call.error)
        if len(outcome.text) > 2 * _MAX_READ:
            text = f"{outcome.text[:_MAX_READ]}\n{outcome.text[-_MAX_READ:]}"
            outcome = replace(outcome, text=text)
        latest = all(message < call.message for message in within)
        yield Run(command, outcome, history.with_results(call.message), not within, latest)


def _quotable(command: str) -> str | None:
    """Return a command as a question can quote it; None if it is long or several commands."""
    text = _ENTERS.sub("", command.strip())
    while (shorter := _TRIMS.sub("", text)) != text:
        text = shorter
    fits = text and len(text) <= _MAX_COMMAND and text.isprintable()
    return text if fits and not any(part in text for part in _SEVERAL) else None


def _count_forms(noun: str, number: str) -> list[str]:
    if noun == "tests":
        return [f"{number} tests", f"Ran {number} test", f"{number} test"]
    if noun in ("passed", "failed", "skipped"):
        return [f"{number} {noun}", f"{number} tests {noun}", f"{number} test {noun}"]
    stem = noun.rstrip("s")
    return [f"{number} {noun}", f"{number} {stem}", f"{number} {stem}s"]


def _checks(history: History, commands: dict[str, list[Run]]) -> Iterator[Answer]:
    """Yield what tests and linters found, and by which command the project runs them."""
    checks = {name: runs for name, runs in commands.items() if _CHECKS.search(name)}
    failing = [runs[-1] for runs in checks.values() if runs[-1].outcome.failed]
    if len(failing) == 1 and failing[0].latest:
        (run,) = failing
        said = [[form] for form in run.error] or [
            forms
            for noun, number in run.counts.items()
            if noun.startswith(("fail", "error", "issue", "problem"))
            and history.stated_in(forms := _count_forms(noun, number), run.places)
        ]
        row = "check_failing" if said else "check_failing_one"
        for shown, *forms in [[run.command], *said]:
            yield Answer(row, shown, run.places, forms=forms)
    for command, runs in checks.items():  # in the first run that has failed tests
        failed = [run for run in runs if run.failed_tests]
        if failed and failed[0].only:
            row = "tests_failed_one" if len(failed) == 1 else "tests_failed_first"
            for name in failed[0].failed_tests:
                also = [name.split("::")[-1]]
                yield Answer(row, name, failed[0].places, {"command": command}, also=also)
    for command, runs in commands.items():  # the first time that a linter found anything
        # What a test or a build prints of places is not what it is run for.
        linted = _KINDS["linter"].search(command)
        found = [run for run in runs if linted and _FINDING.search(run.outcome.text)]
        if found and not found[0].failed_tests:
            text, places, values = found[0].outcome.text, found[0].places, {"command": command}
            for path in _FINDING.findall(text):
                yield Answer("found_in", history.project_path(path), places, values)
            for groups in _RULE.findall(text):
                yield Answer("found_rules", "".join(groups), places, values)
    for kind, words in _KINDS.items():
        names = [name for name in checks if words.search(name)]
        if len(names) != 1 or _CONVENTION.match(names[0]):
            continue
        ran = [line for call in history.calls if words.search(line := command_line(call))]
        if not any(_CHECKS.search(line) and names[0] not in line for line in ran):
            places = [place for run in checks[names[0]] for place in run.places]
            yield Answer(f"command_{kind}", names[0], places)


def _given(history: History) -> Iterator[Answer]:
    """Yield installed packages, the branch that was made, the port, what was fetched."""
    for call in history.calls:
        line = command_line(call)
        if command_outcome(call.result or "", call.error).failed:
            continue
        for row, pattern in _GIVEN.items():
            for text in pattern.findall(line):
                packages = [name for name in text.split() if not _NO_PACKAGE.search(name)]
                for item in packages if row == "packages" else [text]:
                    yield Answer(row, item, [call.message])
        url = call.arguments.get("url")
        if isinstance(url, str) and len(url) <= _MAX_ADDRESS and url.startswith("http"):
            yield Answer("fetched", url, [call.message])


def _searches(history: History) -> Iterator[Answer]:
    """Yield the files in which a search for a name found it, where it was searched for once."""
    searches: list[tuple[str, Call]] = []
    texts: dict[int, str] = {}
    for call in history.calls:
        line = command_line(call)
        pattern = call.arguments.get("pattern") or call.arguments.get("query")
        within = call.arguments.get("path") or ""
        texts[id(call)] = f"{call.arguments.get('pattern')} {call.arguments.get('query')} {line}"
        if match := _SEARCH.match(_ENTERS.sub("", line)):
            pattern, within = match["pattern"], match["within"] or ""
        if isinstance(pattern, str) and isinstance(within, str):
            name = pattern.strip("\\b^$").removesuffix("\\(").removeprefix("func ")
            # One file that was searched is no find.
            if tells(name) and name.isidentifier() and not mentioned_files(within):
                searches.append((name, call))
    for name, call in searches:
        if any(name in text for other, text in texts.items() if other != id(call)):
            continue  # it was searched for again, among others, or in other ways
        places = history.with_results(call.message)
        for path in _HIT.findall((call.result or "")[:_MAX_READ]):
            if "." in path:
                yield Answer("searched", history.project_path(path), places, {"name": name})


def about_git(history: History) -> Iterator[Answer]:
    """Yield commits and pull requests, from what git and its hosts print."""
    opened: list[Answer] = []
    for call in history.calls:
        if deed_of(call.name) != "shell" or not call.result:
            continue
        places = history.with_results(call.message)
        text = call.result[:_MAX_READ]
        for commit, subject in _COMMITTED.findall(text):
            if subject.isprintable():
                yield Answer("commit_hash", commit, places, {"subject": subject.strip()})
        for match in _REQUEST.finditer(text) if _OPENS.search(command_line(call)) else ():
            forms = [f"#{match[1]}", f"pull/{match[1]}"]
            opened.append(Answer("pull_request", match[0], places, also=forms))
    yield from opened
