"""Runs in Hermes' interpreter: one compression, JSON in on standard input, JSON out.

It is started as a file, never imported by our side, and uses only the standard library and Hermes,
because that interpreter has none of our packages. Names of Hermes are looked up at run time, and
what a version lacks is left out and reported, since its signatures change.

Hermes asks its model over HTTP. Here that is a server on the loopback which passes each request on
as a line ``{"ask": …}`` and reads the reply, a status and a body, from the next line of input.
"""

import datetime
import hmac
import http.server
import importlib
import importlib.metadata
import inspect
import json
import os
import secrets
import sys
import threading
from typing import Any


class Parent:
    """The parent process: lines of JSON from it and to it."""

    def __init__(self) -> None:
        self._in = os.fdopen(os.dup(0), encoding="utf-8")
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._lock = threading.Lock()
        # Hermes gets no input, and whatever it prints goes to standard error.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)

    def read(self) -> Any:
        """Return the next line."""
        return json.loads(self._in.readline())

    def write(self, data: Any) -> None:
        """Write a line."""
        self._out.write(json.dumps(data) + "\n")
        self._out.flush()

    def ask(self, body: Any) -> Any:
        """Return status and body of the reply to a request, one request after the other."""
        with self._lock:
            self.write({"ask": body})
            return self.read()


def main() -> int:
    """Answer one request; exit with 0 if that succeeds."""
    parent = Parent()
    request = parent.read()
    parent.write(describe() if request["action"] == "describe" else compress(request, parent))
    return 0


def describe() -> dict[str, Any]:
    """Return which version this is and which parameters its constructor takes."""
    compressor = _compressor_class()
    return {
        "version": _version(),
        "constructor": list(inspect.signature(compressor).parameters),
    }


def compress(request: dict[str, Any], parent: Parent) -> dict[str, Any]:
    """Compress messages once with a new ``ContextCompressor``.

    Args:
        request: ``messages`` (OpenAI chat form), ``constructor`` and ``compress`` (keyword
            arguments), ``earlier`` (how many compressions these messages have been through) and
            ``today`` (ISO date for the prompt).
        parent: Answers what Hermes asks its model.
    """
    clock_frozen = _freeze_clock(datetime.date.fromisoformat(request["today"]))
    compressor_class = _compressor_class()
    constructor, dropped = _accepted(
        compressor_class, {**request["constructor"], **_chat_server(parent)}
    )
    compressor = compressor_class(**constructor)
    # A live agent keeps its compressor, which protects the first turns only once; the new one of
    # each process must know how often this conversation was compressed.
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


def _chat_server(parent: Parent) -> dict[str, str]:
    """Start the server; return its address and key."""
    # The key keeps other programs on this machine from spending the user's money.
    key = secrets.token_urlsafe(32)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            # Read the whole request first: a client still sending would see a broken connection
            # instead of a refusal.
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            authorization = self.headers.get("Authorization") or ""
            if hmac.compare_digest(authorization.encode(), f"Bearer {key}".encode()):
                self._reply(*parent.ask(json.loads(content)))
            else:
                self._reply(401, {"error": {"message": "wrong key"}})

        def _reply(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            # OpenAI's client would send a failed request again; Inspect has done its retries.
            self.send_header("x-should-retry", "false")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "api_key": key}


def _compressor_class() -> Any:
    return importlib.import_module("agent.context_compressor").ContextCompressor


def _version() -> str:
    try:
        return importlib.metadata.version("hermes-agent")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


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
    """Freeze Hermes' own clock, which dates its prompt, at noon UTC.

    Only that function is replaced: timeouts and TLS keep the real time.
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
