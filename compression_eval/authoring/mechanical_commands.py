"""Questions about commands: what they reported, how they ended, what is failing still."""

import re
from collections.abc import Iterator, Sequence

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.history import History
from compression_eval.authoring.identifiers import tells
from compression_eval.authoring.making import evidence, made, path_fact
from compression_eval.authoring.runs import Run, runs_of, shell_of
from compression_eval.fixtures.artifacts.events import Call
from compression_eval.fixtures.artifacts.naming import mentioned_files
from compression_eval.fixtures.artifacts.outcomes import command_outcome
from compression_eval.fixtures.banks import ExpectedFact, Probe

_ORIGIN = "commands"
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
_LONGEST_SAID = 60
_COUNT = re.compile(
    r"(?<![\w.])(\d+) "
    r"(passed|failed|skipped|xfailed|failures?|errors?|issues?|problems?|warnings?)\b"
)
_RAN = re.compile(r"^Ran (\d+) tests?\b", re.MULTILINE)
_LAST_LINES = 12
_CHECKS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|ctest|jest|vitest|mocha|rspec|phpunit|mypy|pyright|ruff|eslint|tsc"
    r"|flake8|pylint|golangci-lint|clippy)\b|\b(?:go|cargo|npm|pnpm|yarn|make|mise|gradlew?|mvn|dotnet)"
    r"(?: run| -\S+)* (?:test|check|lint|build|vet|typecheck|verify)\b|-m tests\b"
)
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
_MAX_ASKED = 6
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
_WHOLE = {
    "packages": re.compile(
        r"\b(?:(?:pip3?|uv pip|npm|pnpm|apt(?:-get)?|brew|cargo|gem) install"
        r"|(?:uv|poetry|pnpm|yarn|cargo) add"
        r"|go get|npm i)((?: +-{1,2}[\w-]+| +[\w@./:=~^<>\[\]-]+)+)"
    ),
    "branch": re.compile(r"\bgit (?:checkout -b|switch -c|switch --create) +([\w./-]{3,80})"),
    "port": re.compile(r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{4,5})\b"),
}
_NO_PACKAGE = re.compile(r"^(?:-|\.|/|e$)|^(?:requirements|package)|\.txt$")
_SEARCH = re.compile(
    r"(?:rg|grep|git grep)(?: +-[\w-]+)* +(?P<quote>[\"']?)(?P<pattern>[\w\\.()]+)(?P=quote)"
    r"(?: +-[\w-]+)*(?: +(?P<within>[^|;&<>]+?))?\s*$"
)
_ENTERS = re.compile(r"^cd \S+ ?&& ?")
_HIT = re.compile(r"^(?:\./)?((?:[\w@.-]+/|/)*[\w@.-]+?)(?::\d+:.*|:.*)?$", re.MULTILINE)
_MAX_HITS = 20_000
_LOOKS = re.compile(r"(?:grep|rg|ls|cat|find|diff|test|which|head|tail|sed|awk|stat|wc)\b")
"""Programs whose exit code says no more than that nothing was there."""
_NO_NUMBER = (0, 1)
"""Exit codes that tell nothing."""


def command_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about commands, each with the name of its template."""
    by_command: dict[str, list[Run]] = {}
    for run in runs_of(history):
        by_command.setdefault(run.command, []).append(run)
    for command, runs in by_command.items():
        values = {"command": command}
        failed = [run for run in runs if run.outcome.failed or _error_facts(history, run)]
        alone = len(failed) == 1 and failed[0].only
        if alone and (facts := _error_facts(history, failed[0])):
            name = "command_error" if len(facts) > 1 else "command_error_one"
            yield "command_error", made(history, "recall", name, facts, _ORIGIN, values)
        if runs[-1].latest and (facts := _counts(history, runs)):
            yield (
                "summary_counts",
                made(history, "recall", "summary_counts", facts, _ORIGIN, values),
            )
        if len(runs) == 1 and runs[0].only and (item := _exit_code(history, runs[0])):
            yield "exit_code", made(history, "recall", "exit_code", [item], _ORIGIN, values)
    yield from _failing(history, by_command)
    yield from _failed_tests(history, by_command)
    yield from _found(history, by_command)
    yield from _check_commands(history, by_command)
    yield from _over_all(history)
    yield from _searches(history)


def _error_facts(history: History, run: Run) -> list[ExpectedFact]:
    """Return what tells a run's error: its kind and what it names; empty if not just one is."""
    matches = list(_ERROR.finditer(run.outcome.text))
    if not matches:
        return []
    # Tracebacks that follow from one another end with the error that came out.
    chained = len(_CHAINED.findall(run.outcome.text)) + 1
    traced = run.outcome.text.count("Traceback (most recent")
    if traced > chained or (not traced and len({match[0] for match in matches}) > 1):
        return []  # it reported several errors: no answer is the only right one
    match = matches[-1]
    said = match["said"].strip()
    kind = _TELLING.search(match["kind"])
    quoted = _QUOTED.search(said)
    if kind and kind[0] == "AssertionError":
        kind = quoted = None  # every failed test has one, and it may quote anything
    forms = [kind[0]] if kind else []
    if quoted:
        forms.append(quoted[1])
    elif len(said) <= _LONGEST_SAID:
        forms.append(said)
    found = list(dict.fromkeys(forms))
    return [fact(form, evidence(history, [form], run.places)) for form in found]


def _summary(run: Run) -> dict[str, str]:
    """Return the counts in the last lines of an output: noun to number."""
    lines = run.outcome.text.rstrip().splitlines()[-_LAST_LINES:]
    end = "\n".join(lines)
    found = {noun: number for number, noun in _COUNT.findall(end)}
    if ran := _RAN.search(end):
        found["tests"] = ran[1]
    return found


def _counts(history: History, runs: Sequence[Run]) -> list[ExpectedFact]:
    """Return the counts of the last run of a command, with those of earlier runs as superseded."""
    last = _summary(runs[-1])
    earlier = [_summary(run) for run in runs[:-1]]
    found: list[ExpectedFact] = []
    for noun, number in last.items():
        shown, *forms = _count_forms(noun, number)
        old = [
            _count_forms(noun, summary[noun])[0]
            for summary in earlier
            if summary.get(noun, number) != number
        ]
        stated = evidence(history, [shown, *forms], runs[-1].places)
        found.append(fact(shown, stated, forms, old))
    return found


def _count_forms(noun: str, number: str) -> list[str]:
    if noun == "tests":
        return [f"{number} tests", f"Ran {number} test", f"{number} test"]
    stem = noun.rstrip("s") if noun != "passed" else noun
    if noun in ("passed", "failed", "skipped"):
        return [f"{number} {noun}", f"{number} tests {noun}", f"{number} test {noun}"]
    return [f"{number} {noun}", f"{number} {stem}", f"{number} {stem}s"]


def _exit_code(history: History, run: Run) -> ExpectedFact | None:
    code = run.outcome.exit_code
    if code is None or code in _NO_NUMBER or _LOOKS.match(run.command):
        return None
    forms = [f"exit code {code}", f"exit code: {code}", f"code {code}", f"status {code}"]
    forms.append(f"exited with {code}")
    stated = evidence(history, forms, run.places)
    return fact(forms[0], stated, forms[1:]) if stated else None


def _failed_tests(
    history: History, by_command: dict[str, list[Run]]
) -> Iterator[tuple[str, Probe]]:
    """Ask which tests failed: in the first run of each command that has failed tests."""
    for command, runs in by_command.items():
        if not _CHECKS.search(command):
            continue
        names = [_failed_in(run) for run in runs]
        first = next((number for number, found in enumerate(names) if found), None)
        if first is None or not runs[first].only or not 0 < len(names[first]) <= _MAX_ASKED:
            continue
        facts = [
            fact(name, evidence(history, [name], runs[first].places), [re.split("::", name)[-1]])
            for name in names[first]
        ]
        template = "tests_failed_one" if len(runs) == 1 else "tests_failed_first"
        if sum(bool(found) for found in names) == 1:
            template = "tests_failed_one"
        yield template, made(history, "recall", template, facts, _ORIGIN, {"command": command})


def _failed_in(run: Run) -> list[str]:
    names = ["".join(groups).strip() for groups in _FAILED_TEST.findall(run.outcome.text)]
    # A suite fails with each of its tests; the tests are what is asked for.
    return [
        name
        for name in dict.fromkeys(names)
        if not any(other.startswith(f"{name}/") for other in names)
    ]


def _found(history: History, by_command: dict[str, list[Run]]) -> Iterator[tuple[str, Probe]]:
    """Ask in which files a linter or compiler found something, the first time it did."""
    for command, runs in by_command.items():
        # What a test or a build prints of places is not what it is run for.
        if not _KINDS["linter"].search(command):
            continue
        run = next((run for run in runs if _FINDING.search(run.outcome.text)), None)
        if run is None or _failed_in(run):
            continue
        paths = list(dict.fromkeys(_FINDING.findall(run.outcome.text)))
        if 0 < len(paths) <= _MAX_ASKED:
            facts = [path_fact(history, history.reading_path(path), run.places) for path in paths]
            values = {"command": command}
            yield "found_in", made(history, "recall", "found_in", facts, _ORIGIN, values)
        rules = dict.fromkeys("".join(groups) for groups in _RULE.findall(run.outcome.text))
        if 0 < len(rules) <= _MAX_ASKED:
            facts = [fact(rule, evidence(history, [rule], run.places)) for rule in rules]
            values = {"command": command}
            yield "found_rules", made(history, "recall", "found_rules", facts, _ORIGIN, values)


def _check_commands(
    history: History, by_command: dict[str, list[Run]]
) -> Iterator[tuple[str, Probe]]:
    """Ask for the command of the project's tests and linter, where there is one and no other."""
    for kind, words in _KINDS.items():
        commands = [name for name in by_command if _CHECKS.search(name) and words.search(name)]
        if len(commands) != 1 or _CONVENTION.match(commands[0]):
            continue
        ran = [text for call in history.calls if words.search(text := shell_of(call))]
        if any(_CHECKS.search(text) and commands[0] not in text for text in ran):
            continue
        places = [place for run in by_command[commands[0]] for place in run.places]
        facts = [fact(commands[0], evidence(history, commands, places))]
        yield f"command_{kind}", made(history, "recall", f"command_{kind}", facts, _ORIGIN)


def _over_all(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask for installed packages, the branch that was made, the port, what was fetched."""
    found: dict[str, dict[str, list[int]]] = {}
    for call in history.calls:
        command = shell_of(call)
        if command_outcome(call.result or "", call.error).failed:
            continue
        for kind, pattern in _WHOLE.items():
            for text in pattern.findall(command):
                for item in text.split() if kind == "packages" else [text]:
                    if kind != "packages" or not _NO_PACKAGE.search(item):
                        found.setdefault(kind, {}).setdefault(item, []).append(call.message)
        url = call.arguments.get("url")
        if isinstance(url, str) and len(url) <= 120 and url.startswith("http"):
            found.setdefault("fetched", {}).setdefault(url, []).append(call.message)
    for kind, items in found.items():
        if len(items) <= (_MAX_ASKED if kind in ("packages", "fetched") else 1):
            facts = [fact(name, evidence(history, [name], at)) for name, at in items.items()]
            yield kind, made(history, "recall", kind, facts, _ORIGIN)


def _searches(history: History) -> Iterator[tuple[str, Probe]]:
    """Ask in which files a search for a name found it, where it was searched for once."""
    found: dict[str, list[tuple[Call, list[str]]]] = {}
    for call in history.calls:
        pattern = call.arguments.get("pattern") or call.arguments.get("query")
        within = call.arguments.get("path") or ""
        if match := _SEARCH.match(_ENTERS.sub("", shell_of(call))):
            pattern, within = match["pattern"], match["within"] or ""
        if not isinstance(pattern, str) or not isinstance(within, str):
            continue
        name = pattern.strip("\\b^$").removesuffix("\\(").removeprefix("func ")
        files = [path for path in _HIT.findall((call.result or "")[:_MAX_HITS]) if "." in path]
        # One file that was searched is no find.
        if tells(name) and name.isidentifier() and not mentioned_files(within):
            found.setdefault(name, []).append((call, list(dict.fromkeys(files))))
    for name, searches in found.items():
        call, files = searches[0]
        if len(searches) != 1 or not 0 < len(files) <= _MAX_ASKED:
            continue
        others = (
            f"{other.arguments.get('pattern')} {other.arguments.get('query')} {shell_of(other)}"
            for other in history.calls
            if other is not call
        )
        if any(name in text for text in others):
            continue  # it was searched for among others, or in other ways
        places = [call.message, *history.results_of(call)]
        facts = [path_fact(history, history.reading_path(path), places) for path in files]
        values = {"name": name}
        yield "searched", made(history, "recall", "searched", facts, _ORIGIN, values)


def _failing(history: History, by_command: dict[str, list[Run]]) -> Iterator[tuple[str, Probe]]:
    """Ask for the one check whose latest run failed."""
    checks = {name: runs[-1] for name, runs in by_command.items() if _CHECKS.search(name)}
    failing = [run for run in checks.values() if run.outcome.failed]
    if len(failing) != 1 or not failing[0].latest:
        return
    run = failing[0]
    said = _error_facts(history, run) or [
        fact(shown, stated, forms)
        for noun, number in _summary(run).items()
        if noun.startswith(("fail", "error", "issue", "problem"))
        for shown, *forms in [_count_forms(noun, number)]
        if (stated := evidence(history, [shown, *forms], run.places))
    ]
    facts = [fact(run.command, evidence(history, [run.command], run.places)), *said]
    name = "check_failing" if said else "check_failing_one"
    yield "check_failing", made(history, "continuation", name, facts, _ORIGIN)
