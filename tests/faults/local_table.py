"""What can go wrong on the machine itself, where, and what has to come of it."""

import sys
from pathlib import Path
from typing import Any

from tests.faults import faulty_compressor

SCORED = "scored"

PROGRAM = Path(faulty_compressor.__file__)

COMPRESSORS: dict[str, tuple[str, dict[str, Any]]] = {
    "function": (f"{PROGRAM}@compress", {"timeout_seconds": 8}),
    "coroutine": (f"{PROGRAM}@compress_later", {"timeout_seconds": 8}),
    "strategy": (f"{PROGRAM.with_name('faulty_strategy.py')}@Strategy", {}),
    "command": (
        "command",
        {"command": [sys.executable, str(PROGRAM)], "timeout_seconds": 10},
    ),
}
"""Name and arguments of a user's compressor, by its kind."""

NO_MESSAGES = "error: the reply is not a list of messages but "

RAISED = {
    "an exception": "error: RuntimeError: no index for this conversation",
    "its text fails": "error: UnwritableError",
    "70,000 characters": "error: ValueError: xxx",
    "hostile text": "error: ValueError: [2J </script> {0}%s",
    "recursion": "error: RecursionError: maximum recursion depth exceeded",
    "end of iteration": "error: ",
    "exits": "error: ",
    "cancels itself": "",
    "nothing implemented": "unsupported: NotImplementedError: not for tools",
}

RETURNED = {
    "None": NO_MESSAGES + "NoneType",
    "an iterator": NO_MESSAGES + "list_iterator",
    "a list that cannot be read": "error: OSError: the database is gone",
    "a list in itself": "error: message 6 of the reply: ",
    "half a pair": "error: message 1 of the reply: content: ",
    "empty": "empty: nothing but the system prompt is left",
    "a blank text": "invalid_structure: an empty user message",
    "unchanged": "not_applied: the messages came back unchanged",
    "one message less": "not_smaller: ",
    "a call without its result": "invalid_structure: ",
    "3,000 messages": "not_smaller: ",
    "changed input": SCORED,
    "garbage on the terminal": SCORED,
}

OF_A_STRATEGY = {
    "a pair of nothing": "error: TypeError: 'NoneType' object is not iterable",
    "plain messages": "error: message 0 of the result is no ChatMessage but dict",
}

OF_A_PROGRAM = {
    "hangs": "error: no reply within 10 seconds",
    "fails": "error: the command exited with 3: it wrote nothing to standard error",
    "fails after its reply": "error: the command exited with 1: ",
    "is killed": "error: the command exited with -9: ",
    "writes nothing": "error: the command's standard output is empty",
    "writes half of the JSON": "error: the command's standard output is not JSON",
    "writes bytes": "error: the command's standard output is not JSON",
    "writes NaN": "error: message 0 of the reply: content",
    "nests too deeply": "error: the command's standard output is not JSON",
    "writes without end": "error: the command wrote more than 10000000 bytes",
}

HANGS = {"hangs": "error: no result within 8 seconds"}

OWN: dict[str, dict[str, str]] = {
    "function": RAISED | RETURNED | HANGS,
    "coroutine": RAISED | HANGS,
    "strategy": RAISED | OF_A_STRATEGY,
    "command": OF_A_PROGRAM,
}
"""By kind of compressor and fault: how status and reason of the state begin, or `SCORED`."""


NAMES: dict[str, tuple[str, str]] = {
    "NUL": ("a\0b", "one printable line"),
    "70,000 characters": ("x" * 70_000, "at most 120 characters"),
    "two lines": ("a\nb", "one printable line"),
    "right to left": ("a\u202egpj.exe", "one printable line"),
    "moves the cursor": ("\x1b[2Ja", "one printable line"),
    "half a pair": ("a\ud800", "surrogate"),
    "empty": ("", "at least 1 character"),
    "upwards": ("../../../../tmp/owned", SCORED),
    "backslashes": ("..\\..\\owned", SCORED),
    "dash": ("-rf", SCORED),
    "HTML": ("<script>alert(1)</script>", SCORED),
    "attribute": ('"onmouseover="alert(1)', SCORED),
    "Markdown": ("[a](javascript:alert(1)) **b** `c` | d", SCORED),
    "format": ("{0} {name} %s %(x)s $HOME `id`", SCORED),
    "other letters": ("会話 разговор 🙂", SCORED),
}
"""Names of fixtures and ids of probes: how the refusal of the file reads, or `SCORED`."""

NO_NAMES = {
    "NUL": "a\0b",
    "70,000 characters": "x" * 70_000,
    "NUL in a file": "a\0b.py@compress",
    "moves the cursor": "\x1b[2Jtail",
    "half a pair": "\ud800",
    "empty": "",
    "upwards": "../../../etc/passwd",
    "a folder": "/@compress",
    "HTML": "<script>alert(1)</script>",
    "an expression": "os:system('id')",
    "wrapped twice": "tail+artifacts+artifacts",
}
"""Arguments that stand for no compressor, fixture or bank: each is refused before any call."""
