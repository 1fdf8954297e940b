"""Runs in Hermes' interpreter: one compression, JSON in on standard input, JSON out.

It is started as a file, never imported by our side, and uses the standard library and Hermes only:
nothing else of ours can be had in that interpreter. Names of Hermes are looked up at run time, and
what a version does not have is left out and reported, since its signatures change.
"""

import datetime
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
from typing import Any, TextIO


def main() -> int:
    """Answer one request; the exit code is 0 if there is an answer."""
    result = _claim_output()
    request = json.load(sys.stdin)
    answer = describe() if request["action"] == "describe" else compress(request)
    json.dump(answer, result)
    result.flush()
    return 0


def describe() -> dict[str, Any]:
    """Return which version this is and which parameters it takes."""
    compressor = _compressor_class()
    return {
        "version": _version(),
        "constructor": _parameters(compressor),
        "compress": _parameters(compressor.compress),
    }


def compress(request: dict[str, Any]) -> dict[str, Any]:
    """Compress messages once with a new ``ContextCompressor``.

    Args:
        request: ``messages`` (OpenAI chat form), ``constructor`` and ``compress`` (keyword
            arguments), ``earlier`` (how many compressions these messages have been through) and
            ``today`` (ISO date for the prompt).
    """
    clock_frozen = _freeze_clock(datetime.date.fromisoformat(request["today"]))
    compressor_class = _compressor_class()
    constructor, dropped = _accepted(compressor_class, request["constructor"])
    compressor = compressor_class(**constructor)
    # A live agent keeps its compressor, which protects the first turns only once; a new one for
    # each process has to be told how often this conversation was compressed.
    compressor.compression_count = request["earlier"]
    keywords, also_dropped = _accepted(compressor.compress, request["compress"])
    messages = compressor.compress(request["messages"], **keywords)
    state = vars(compressor)
    return {
        "version": _version(),
        "messages": messages,
        "flags": {name: value for name, value in state.items() if _is_flag(name, value)},
        "compressions": compressor.compression_count - request["earlier"],
        "effective": {name: value for name, value in constructor.items() if name != "api_key"},
        "budgets": {
            name: state.get(name)
            for name in ("context_length", "threshold_tokens", "tail_token_budget")
        },
        "dropped": dropped + also_dropped,
        "clock_frozen": clock_frozen,
    }


def _claim_output() -> TextIO:
    """Keep standard output for the answer; whatever Hermes prints goes to standard error."""
    result = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return result


def _compressor_class() -> Any:
    return importlib.import_module("agent.context_compressor").ContextCompressor


def _version() -> str:
    try:
        return importlib.metadata.version("hermes-agent")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def _accepted(function: Any, keywords: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Split keyword arguments into those that a function takes and the names of the others."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return keywords, []
    accepted = {name: value for name, value in keywords.items() if name in parameters}
    return accepted, [name for name in keywords if name not in parameters]


def _is_flag(name: str, value: Any) -> bool:
    plain = value is None or isinstance(value, bool | int | float | str)
    return name.startswith("_last_") and plain


def _freeze_clock(today: datetime.date) -> bool:
    """Make Hermes' own clock, which its prompt takes the date from, stand still at noon UTC.

    Only that function is replaced: time outs and TLS go on with the real time.
    """
    try:
        clock: Any = importlib.import_module("hermes_time")
    except ImportError:
        return False
    noon = datetime.datetime.combine(today, datetime.time(12), tzinfo=datetime.timezone.utc)  # noqa: UP017
    clock.now = lambda: noon
    return True


if __name__ == "__main__":
    sys.exit(main())
