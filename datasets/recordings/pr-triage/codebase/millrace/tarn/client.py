"""Outbound calls to the Tarn API."""

import json


class TarnApiError(Exception):
    """The platform answered with an error body."""

    def __init__(self, method, status, body):
        error = body.get("error", {})
        self.method = method
        self.status = status
        self.code = error.get("code", "TRN-0000")
        self.field = error.get("field")
        self.retryable = bool(error.get("retryable", False))
        super().__init__(f"{method} -> {status} {self.code}: {error.get('message', '')}")


class TarnClient:
    """Thin wrapper; `transport(method, raw_body, headers)` returns `(status, raw_body)`."""

    def __init__(self, transport, token):
        self._transport = transport
        self._headers = {"Authorization": f"Bearer {token}", "Tarn-Api": "v3"}

    def post(self, room, text, nonce):
        return self._call("room.post", {"room": room, "text": text, "nonce": nonce})

    def pin(self, room, message_id):
        return self._call("room.pin", {"room": room, "message": message_id})

    def typing(self, room):
        return self._call("room.typing", {"room": room})

    def _call(self, method, body):
        raw = json.dumps(body, sort_keys=True, ensure_ascii=False).encode()
        status, answer = self._transport(method, raw, dict(self._headers))
        decoded = json.loads(answer)
        if status >= 400:
            raise TarnApiError(method, status, decoded)
        return decoded
