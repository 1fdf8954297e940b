"""Decoys to plant: what looks like a secret or a person and must not be touched.

Most stand next to the signs that teach a name, since a name that spreads is what does the harm.
"""

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.planted_drawing import HEX, Draw

_WORDS = [
    "entire",
    "checkpoint",
    "session",
    "human",
    "grammar",
    "commit",
    "agent",
    "expression",
    "summary",
    "cursor",
]
_PAIRS = [
    "git-sync",
    "entire-graph",
    "code-review",
    "session-store",
    "log-rotate",
    "task-runner",
]
_BOTS = [
    "dependabot[bot]",
    "renovate[bot]",
    "github-actions[bot]",
    "cursor[bot]",
    "snyk-bot",
]
_LOCALS = [
    "test",
    "user",
    "you",
    "foo",
    "your-email",
    "test-user",
    "tester1",
    "username",
]


@dataclass(frozen=True)
class Decoy:
    """One value that must stay, and the text that it is in."""

    kind: str
    stays: str
    """What must be found afterwards, to the character."""
    text: str


def decoys(draws: int, seed: int) -> Iterator[Decoy]:
    """Draw decoys of every kind; the same seed gives the same ones."""
    for number, (kind, draw) in enumerate(_KINDS.items()):
        source = Draw(seed + 100 * number)
        for _ in range(draws):
            stays, text = draw(source)
            yield Decoy(kind, stays, text)


def _taught(name: str) -> str:
    """Return lines that show an account by three signs."""
    return (
        f"$ ls -l /home/{name}/work\n-rw-r--r--  1 {name}  staff  120 Mar  3 10:12 notes.md\n"
        f"Author: {name} <{name}@vendor-{len(name)}.com>\n"
    )


def _beside(stays: Callable[[str, Draw], str]) -> Callable[[Draw], tuple[str, str]]:
    def draw(source: Draw) -> tuple[str, str]:
        name = source.people.user_name()
        kept = stays(name, source)
        return kept, f"{_taught(name)}\n{kept}\n"

    return draw


def _word(source: Draw) -> tuple[str, str]:
    word = source.random.choice(_WORDS)
    kept = f"The {word} change is in {word}/main.go, and {word} stays."
    return kept, f"{_taught(word)}\n{kept}"


def _pair(source: Draw) -> tuple[str, str]:
    pair = source.random.choice(_PAIRS)
    kept = f"Build {pair} and run {pair} --help"
    return kept, f"{_taught(pair)}\n{kept}"


def _literal(source: Draw) -> tuple[str, str]:
    name = source.people.domain_word().replace("-", "") + "ctl"
    kept = f"The {name} command prints its plan; {name} apply runs it."
    return kept, f"#!/bin/sh\nHOME=/home/{name}/data sh run.sh\n\n{kept}"


def _bot(source: Draw) -> tuple[str, str]:
    bot = source.random.choice(_BOTS)
    kept = f"Co-authored-by: {bot} <{source.of(string.digits, 8)}+{bot}@users.noreply.github.com>"
    return kept if "[" in bot else bot, f"Merge pull request\n\n{kept}\n"


def _test_address(source: Draw) -> tuple[str, str]:
    kept = f"{source.random.choice(_LOCALS)}@{source.people.domain_word()}.com"
    return kept, f'login("{kept}")'


def _speaker(source: Draw) -> tuple[str, str]:
    speaker = source.random.choice(["Human", "Assistant", "User", "System"])
    kept = f"{speaker}: please go on. {speaker} turns are kept."
    return kept, f"Author: {speaker} <x{source.random.randint(10, 99)}@vendor.com>\n\n{kept}"


def _hash(source: Draw) -> tuple[str, str]:
    kept = source.of(HEX, source.random.choice([7, 12, 40]))
    return kept, f"commit {kept} (HEAD -> main)\nAuthor: Jo Quist <jo@vendor.com>\n"


def _uuid(name: str, source: Draw) -> str:
    parts = [source.of(HEX, size) for size in (8, 4, 4, 4, 12)]
    return f"session {'-'.join(parts)} call toolu_{source.of(HEX, 24)} for v{len(name)}.2.3"


_KINDS: dict[str, Callable[[Draw], tuple[str, str]]] = {
    "module path with a learnt name": _beside(
        lambda name, d: f'import {name}.client, "vendor.io/{d.people.domain_word()}/{name}/util"'
    ),
    "identifier with a learnt name": _beside(
        lambda name, _: f"test_{name} {name}_id config.{name} {name}.run() {name}()"
    ),
    "page address with a learnt name": _beside(
        lambda name, _: f"https://docs.vendor.io/{name}/start and github.com/other/{name}"
    ),
    "format string with a learnt name": _beside(
        lambda name, _: f"{{{name}}} ${name} %{name} %s <%s@vendor.com>"
    ),
    "english word as an account": _word,
    "words joined, as an account": _pair,
    "word of one test literal": _literal,
    "bot": _bot,
    "test address": _test_address,
    "speaker of a transcript": _speaker,
    "commit hash": _hash,
    "uuid, call id, version": _beside(_uuid),
}
