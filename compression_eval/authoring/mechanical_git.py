"""Questions about commits and pull requests, from what git and its hosts print."""

import re
from collections.abc import Iterator

from compression_eval.authoring.candidates import fact
from compression_eval.authoring.history import History
from compression_eval.authoring.making import evidence, made
from compression_eval.authoring.runs import shell_of
from compression_eval.fixtures.artifacts.tools import deed_of
from compression_eval.fixtures.banks import Probe

_COMMITTED = re.compile(
    r"^\[[\w./#-]+(?: \(root-commit\))? ([0-9a-f]{7,40})\] (\S.{0,150})$", re.MULTILINE
)
_OPENS = re.compile(
    r"\b(?:gh pr|glab mr|hub pull-request|tea pr)\b.{0,40}\bcreate\b|hub pull-request"
)
_ADDRESS = re.compile(r"https?://\S+/(?:pull|pulls|merge_requests)/(\d{1,7})\b")
_SCANNED = 20_000


def git_probes(history: History) -> Iterator[tuple[str, Probe]]:
    """Yield probes about commits and pull requests, each with the name of its template."""
    hashes: dict[str, dict[str, list[int]]] = {}
    opened: dict[str, tuple[str, list[int]]] = {}
    for call in history.calls:
        if deed_of(call.name) != "shell" or not call.result:
            continue
        places = [call.message, *history.results_of(call)]
        text = call.result[:_SCANNED]
        for commit, subject in _COMMITTED.findall(text):
            hashes.setdefault(subject.strip(), {}).setdefault(commit, []).extend(places)
        if _OPENS.search(shell_of(call)):
            for match in _ADDRESS.finditer(text):
                opened[match[0]] = (match[1], places)
    for subject, commits in hashes.items():
        ((commit, places), *more) = commits.items()
        if not more and subject.isprintable():
            item = fact(commit, evidence(history, [commit], places))
            yield (
                "commit_hash",
                made(history, "recall", "commit_hash", [item], "git", {"subject": subject}),
            )
    if len(opened) == 1:
        ((address, (number, places)),) = opened.items()
        forms = [f"#{number}", f"pull/{number}"]
        item = fact(address, evidence(history, [address], places), forms)
        yield "pull_request", made(history, "recall", "pull_request", [item], "git")
