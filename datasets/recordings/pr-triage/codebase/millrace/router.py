"""Takes envelopes in, asks the bot, sends the answer out."""

from collections import OrderedDict

from millrace.sessions import SessionIndex
from millrace.tarn.events import parse_event

SEEN_LIMIT = 2048


class Router:
    def __init__(self, client, bot, sessions=None):
        self._client = client
        self._bot = bot
        self.sessions = sessions or SessionIndex()
        self._seen = OrderedDict()

    def handle(self, envelope):
        """Answer one delivery; None if there is nothing to answer."""
        event = parse_event(envelope)
        if event.kind != "message.posted":
            return None
        key = f"{event.room}/{event.message_id}"
        if self._already_seen(key):
            return None
        history = self.sessions.history(event.room)
        answer = self._bot(history, event.text)
        self.sessions.add(event.room, event.author, event.text)
        posted = self._client.post(event.room, answer, nonce=key)
        self.sessions.add(event.room, "bot", answer)
        return posted["message"]

    def _already_seen(self, key):
        if key in self._seen:
            return True
        self._seen[key] = True
        while len(self._seen) > SEEN_LIMIT:
            self._seen.popitem(last=False)
        return False
