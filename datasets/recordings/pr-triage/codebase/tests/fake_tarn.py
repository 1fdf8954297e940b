"""In-process stand-in for the Tarn API, after upstream_docs/api-room.md."""

import json
import re

KEY = re.compile(r"r[0-9]{7}")
REF = re.compile(r"rm:([a-z]{2}-[0-9]):(r[0-9]{7})")


class FakeTarn:
    def __init__(self, home="eu-1"):
        self.home = home
        self.rooms = {}
        self.journal = []
        self._nonces = set()

    def add_room(self, region, key, title):
        self.rooms[region, key] = {"title": title, "messages": []}

    def said(self, region, key):
        return list(self.rooms[region, key]["messages"])

    def __call__(self, method, raw, headers):
        status, answer = self._answer(method, json.loads(raw))
        answer["request"] = f"q-{len(self.journal) + 1:04d}"
        self.journal.append((method, raw.decode(), status, json.dumps(answer)))
        return status, json.dumps(answer).encode()

    def _answer(self, method, body):
        if method not in ("room.post", "room.pin", "room.typing"):
            return _error(404, "TRN-4040", f"no such method: {method}")
        if ("room" in body) == ("room_ref" in body):
            return _error(400, "TRN-4008", "exactly one of room, room_ref is required", "room")
        nonce = body.get("nonce")
        if nonce is not None:
            if nonce in self._nonces:
                return _error(409, "TRN-4090", f"nonce already used: {nonce}", "nonce")
            self._nonces.add(nonce)
        if "room_ref" in body:
            match = REF.fullmatch(body["room_ref"])
            if not match:
                return _error(422, "TRN-4228", "not a room ref", "room_ref")
            region, key = match.groups()
        else:
            region, key = self.home, body["room"]
            if not KEY.fullmatch(key):
                offset = next((i for i, c in enumerate(key[1:], 1) if not c.isdigit()), 0)
                message = f"room key malformed at offset {offset}: {key}"
                return _error(422, "TRN-4227", message, "room")
        room = self.rooms.get((region, key))
        if room is None:
            return _error(404, "TRN-4041", f"no such room in region {region}: {key}", "room")
        if method == "room.post":
            room["messages"].append(body["text"])
        return 200, {"ok": True, "message": f"m{len(self.journal) + 9001}"}


def _error(status, code, message, field=None):
    return status, {"error": {"code": code, "message": message, "field": field, "retryable": False}}
