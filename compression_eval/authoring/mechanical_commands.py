"""Questions about commands: what they reported, how they ended, what is failing still."""

import re
from collections.abc import Iterator, Sequence

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.history import History
from compression_eval.authoring.making import evidence, made
from compression_eval.authoring.runs import Run, runs_of
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
