"""A fake vendor on the loopback interface, in a thread."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

from tests.e2e.vendors.wire import Asked, Broken, Failed, RefusedError, Said, Vendor

_MOST_BYTES = 5_000_000


@contextmanager
def serving(vendor: Vendor, wire: ModuleType) -> Iterator[str]:
    """Serve a vendor while the block runs; yields the address.

    Args:
        vendor: What its models say; it also collects what they are asked.
        wire: The module that knows the vendor's form.
    """
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            if size > _MOST_BYTES:
                self._send(413, "{}")
                return
            body = json.loads(self.rfile.read(size))
            with lock:
                status, answer = _answer(vendor, wire, self.path, body, dict(self.headers))
            if isinstance(answer, Broken):
                self._send_broken(answer)
                return
            if not status:
                self.close_connection = True
                return
            if status == 200 and body.get("stream"):
                events = [
                    f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"
                    for name, data in wire.stream(answer)
                ]
                self._send(200, "".join(events), "text/event-stream")
            else:
                self._send(status, json.dumps(answer))

        def _send(self, status: int, text: str, kind: str = "application/json") -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            # The clients' own waiting between attempts is not what is tested here.
            self.send_header("retry-after-ms", "20")
            self.end_headers()
            self.wfile.write(content)

        def _send_broken(self, broken: Broken) -> None:
            content = broken.content.encode()
            half = len(content) // 2
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Type", broken.kind)
            self.send_header("Content-Length", str(len(content) + broken.missing))
            self.end_headers()
            self.wfile.write(content[:half])
            self.wfile.flush()
            time.sleep(broken.seconds)
            with contextlib.suppress(OSError):  # the client may have given up
                self.wfile.write(content[half:])
            if broken.missing:
                at_once = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing on the console."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def _answer(
    vendor: Vendor, wire: ModuleType, path: str, body: dict[str, Any], headers: dict[str, str]
) -> tuple[int, dict[str, Any] | Broken]:
    try:
        parts = wire.parts(path, body)
    except RefusedError as problem:
        vendor.refused.append(str(problem))
        return 400, wire.error(Failed(400, "invalid_request_error", str(problem)))
    model = str(body["model"])
    asked = Asked(path, body, headers, parts, len(vendor.of(model)))
    vendor.asked.append(asked)
    speech = vendor.speeches.get(model)
    if speech is None:
        return 404, wire.error(Failed(404, "not_found_error", f"no model {model}"))
    said = speech(asked)
    if isinstance(said, Broken):
        return 200, said
    if isinstance(said, Failed):
        return said.status, wire.error(said)
    return 200, wire.reply(asked, Said(said) if isinstance(said, str) else said)
