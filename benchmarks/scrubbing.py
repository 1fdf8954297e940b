"""How many planted values the scrubber catches, and what it takes for one by mistake.

    python -m benchmarks.scrubbing                # planted values, decoys and speed
    python -m benchmarks.scrubbing --real         # what is replaced in real sessions, by rule
    python -m benchmarks.scrubbing --real --show  # and the values themselves, to judge them by eye

Real sessions are read from the folder that the environment variable COMPRESSION_EVAL_SAMPLES
names. Other scrubbers (`detect-secrets`, `scrubadub`) are measured next to it if they are
installed.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.planted_decoys import decoys
from benchmarks.planted_values import Kind, Plant, kinds, plants
from compression_eval.conversations.scrubbing import Pseudonyms, ScrubSettings, audit, scrub
from compression_eval.fixtures.models import Fixture, leaves

CARRIERS = ("output", "arguments", "code", "url", "zh/ja")
DRAWS = 10
_UNSPACED = (
    "日志里写着：{}。请先看一下再继续。",
    "ログにこう出ています：{}。確認してください。",
    "日志里写着{}请先看一下再继续。",
    "ログには{}と出ています。",
)
_LOG = "2031-04-02 10:11:12 INFO worker started\n{}\n2031-04-02 10:11:13 INFO done in 35 ms"
_SPEED_CHARACTERS = 1_000_000

Clean = Callable[[str], str]


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--real", action="store_true", help="what is replaced in real sessions")
    parser.add_argument("--show", action="store_true", help="with --real: print the values")
    parser.add_argument("--seed", type=int, default=7, help="of the planted values")
    options = parser.parse_args()
    if options.real:
        _real(show=options.show)
    else:
        _planted(options.seed)
        _decoys(options.seed)
        _speed()


def carried(plant: Plant, carrier: str, number: int) -> str | None:
    """Return the text of a message that contains a planted value; None if the kind does not go."""
    if carrier == "output":
        return _LOG.format(plant.text)
    if carrier == "arguments":
        inner = json.dumps({"note": plant.text, "retries": 3})
        return json.dumps({"payload": inner, "timeout": 20})
    if carrier == "code":
        return f"I would write:\n\n```python\nimport os\n{plant.code}\n```"
    if carrier == "url":
        return None if plant.url is None else f"See {plant.url} for the rest."
    return _UNSPACED[number % 4].format(plant.text)


def fixture_with(text: str, carrier: str) -> Fixture:
    """Return a short conversation that contains a text in the place that a carrier stands for."""
    arguments = text if carrier == "arguments" else '{"path": "src/app.py"}'
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": arguments}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": text if carrier in ("url", "zh/ja") else "Please look."},
        {
            "role": "assistant",
            "content": text if carrier == "code" else "I look.",
            "tool_calls": [call],
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": text if carrier == "output" else "ok",
        },
    ]
    return Fixture.model_validate({"name": "planted", "messages": messages})


def texts_of(value: object) -> Iterator[str]:
    """Yield every string in nested JSON, JSON in strings decoded."""
    for leaf in leaves(value):
        yield leaf
        if leaf[:1] in ("{", "["):
            try:
                inner = json.loads(leaf)
            except ValueError:
                continue
            yield from texts_of(inner)


def is_caught(plant: Plant, carrier: str, number: int) -> bool | None:
    """Return whether a planted value is gone; None if the kind does not go into the carrier.

    Raises:
        AssertionError: The value was not there before, or a second look finds anything.
    """
    text = carried(plant, carrier, number)
    if text is None:
        return None
    fixture = fixture_with(text, carrier)
    if not any(plant.hidden in there for there in texts_of(fixture.model_dump())):
        raise AssertionError(f"{plant.kind}, {carrier}: the value was not planted")
    scrubbed = scrub(fixture, ScrubSettings.of(), Pseudonyms())
    findings = audit(scrubbed.fixture, ScrubSettings.of(), scrubbed)
    if findings:
        raise AssertionError(f"{plant.kind}, {carrier}: {findings}")
    return all(plant.hidden not in left for left in texts_of(scrubbed.fixture.model_dump()))


def _planted(seed: int) -> None:
    others = _others()
    print("| kind | " + " | ".join((*CARRIERS, "caught", *others)) + " |")
    print("|---|" + "---:|" * (len(CARRIERS) + 1 + len(others)))
    total: Counter[str] = Counter()
    for kind in kinds():
        cells, caught, tried, theirs = _measured(kind, seed, others)
        total.update({"caught": caught, "tried": tried, f"{kind.group} caught": caught})
        total.update({f"{kind.group} tried": tried, **theirs})
        total.update({f"{kind.group} {name}": count for name, count in theirs.items()})
        shown = [*cells, f"{caught}/{tried}", *(f"{theirs[name]}/{tried}" for name in others)]
        print(f"| {kind.name} | " + " | ".join(shown) + " |")
    for group in ("secret", "personal"):
        line = [f"{group}: {total[f'{group} caught']} of {total[f'{group} tried']}"]
        line.extend(f"{name} {total[f'{group} {name}']}" for name in others)
        print(", ".join(line))
    print(f"audits of the {total['tried']} outputs: 0 findings")


def _decoys(seed: int) -> None:
    """Print how many decoys were touched, in outputs and in arguments (JSON in JSON)."""
    touched: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for decoy in decoys(DRAWS, seed):
        plant = Plant(decoy.kind, decoy.stays, decoy.text, decoy.text, None)
        for carrier in ("output", "arguments"):
            text = carried(plant, carrier, 0)
            fixture = fixture_with(str(text), carrier)
            scrubbed = scrub(fixture, ScrubSettings.of(), Pseudonyms())
            stays = any(decoy.stays in left for left in texts_of(scrubbed.fixture.model_dump()))
            touched[decoy.kind] += not stays
            tried[decoy.kind] += 1
    print("\n| decoy | touched |\n|---|---:|")
    for kind, count in tried.items():
        print(f"| {kind} | {touched[kind]}/{count} |")
    print(f"decoys: {touched.total()} of {tried.total()} touched\n")


def _measured(
    kind: Kind, seed: int, others: dict[str, Clean]
) -> tuple[list[str], int, int, Counter[str]]:
    cells: list[str] = []
    caught = tried = 0
    theirs: Counter[str] = Counter()
    for place, carrier in enumerate(CARRIERS):
        results = []
        for number, plant in enumerate(plants(kind, DRAWS, seed + 1000 * place)):
            results.append(is_caught(plant, carrier, number))
            text = carried(plant, carrier, number)
            for name, clean in others.items():
                theirs[name] += text is not None and plant.hidden not in _cleaned(clean, text)
        counted = [result for result in results if result is not None]
        cells.append(str(sum(counted)) if counted else "-")
        caught += sum(counted)
        tried += len(counted)
    return cells, caught, tried, theirs


def _cleaned(clean: Clean, text: str) -> str:
    """Run another scrubber on the decoded strings of a text, as ours does."""
    return "\n".join(clean(part) for part in texts_of([text]))


def _others() -> dict[str, Clean]:
    found: dict[str, Clean] = {}
    for name, make in {"detect-secrets": _detect_secrets, "scrubadub": _scrubadub}.items():
        try:
            found[name] = make()
        except ImportError:
            print(f"{name} is not installed and is left out", file=sys.stderr)
    return found


def _detect_secrets() -> Clean:
    """Run it on a file, as its command does, and take out what it finds."""
    import tempfile

    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    def clean(text: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "text.txt"
            path.write_text(text, encoding="utf-8")
            found = SecretsCollection()
            with default_settings():
                found.scan_file(str(path))
        for _, secret in found:
            if secret.secret_value:
                text = text.replace(secret.secret_value, "*")
        return text

    return clean


def _scrubadub() -> Clean:
    import scrubadub

    scrubber = scrubadub.Scrubber()

    def clean(text: str) -> str:
        return str(scrubber.clean(text))

    return clean


def _speed() -> None:
    """Print seconds of CPU time for a million characters, and for single strings of ten million."""
    line = "2031-04-02 10:11:12 GET /api/items/42 200 13 ms src/app/views.py:118 token=none\n"
    block = line * (_SPEED_CHARACTERS // len(line))
    hard = {
        "log lines, 1 million characters": block,
        "log lines, one string of 10 million": block * 10,
        "one letter, 10 million": "a" * 10_000_000,
        "at signs, 10 million": "a@" * 5_000_000,
        "colons, 10 million": "a:" * 5_000_000,
        "dots and digits, 10 million": "1." * 5_000_000,
        "digits and blanks, 10 million": "12 " * 3_333_333,
        "slashes, 10 million": "/home" * 2_000_000,
        "dashes and dots, 10 million": "a-b." * 2_500_000,
        "key words, 10 million": "password" * 1_250_000,
        "backslashes, 10 million": "\\" * 10_000_000,
        "open brackets, 10 million": "[" * 10_000_000,
        "JSON, 10 million": json.dumps([{"path": "src/app.py", "n": 1}] * 300_000),
    }
    for name, text in hard.items():
        started = time.process_time()
        scrub(fixture_with(text, "output"), ScrubSettings.of(), Pseudonyms())
        print(f"{name}: {time.process_time() - started:.1f} s")


def _real(*, show: bool) -> None:
    folder = os.environ.get("COMPRESSION_EVAL_SAMPLES")
    if not folder:
        sys.exit("COMPRESSION_EVAL_SAMPLES names no folder with sample sessions")
    rows: Counter[tuple[str, str]] = Counter()
    values: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    characters = 0
    seconds = 0.0
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix not in (".json", ".jsonl", ".traj", ".md") or path.name == "README.md":
            continue
        fixture = _as_fixture(path)
        characters += sum(len(message.text) for message in fixture.messages)
        if show:
            _collect(fixture, rows, values)
            continue
        started = time.process_time()
        scrubbed = scrub(fixture, ScrubSettings.of(), Pseudonyms())
        seconds += time.process_time() - started
        left = audit(scrubbed.fixture, ScrubSettings.of(), scrubbed)
        print(f"{path.name}: {len(fixture.messages)} texts, {len(left)} findings afterwards")
        for (_, rule, kind), entry in scrubbed.report.entries.items():
            rows[rule, kind] += entry.replacements
    for key, count in rows.most_common():
        print(f"| `{key[0]}` | {key[1]} | {count} |")
        for value, times in values[key].most_common(40):
            print(f"      {times:5} {value[:100]!r}")
    print(f"{characters / 1e6:.1f} million characters, {seconds:.1f} s of CPU time")


def _collect(
    fixture: Fixture, rows: Counter[tuple[str, str]], values: dict[tuple[str, str], Counter[str]]
) -> None:
    """Note every value with its surroundings, which a report never shows."""
    from compression_eval.conversations.scrubbing import TextPasses

    class Noting(TextPasses):
        def note(
            self,
            where: str,
            passage: str,
            rule: str,
            kind: str,
            value: str = "",
            digest: bytes = b"",
        ) -> None:
            rows[rule, kind] += 1
            values[rule, kind][value] += 1
            super().note(where, passage, rule, kind, value, digest)

    texts = Noting(ScrubSettings.of(), Pseudonyms())
    for message in fixture.messages:
        texts.learn(message.text)
    for message in fixture.messages:
        texts.scrub(message.text)


def _as_fixture(path: Path) -> Fixture:
    """Return every decoded string of a session as a message; the format does not matter here."""
    text = path.read_text(encoding="utf-8")
    strings: list[str] = []
    if path.suffix == ".md":
        strings = [text]
    else:
        for line in text.split("\n") if path.suffix == ".jsonl" else [text]:
            if line.strip():
                strings.extend(leaf for leaf in leaves(json.loads(line)) if leaf.strip())
    messages = [{"role": "user", "content": string} for string in strings]
    return Fixture.model_validate({"name": path.stem[:100], "messages": messages})


if __name__ == "__main__":
    main()
