"""Pass ``mentions``: how chat platforms write that a person, a group or a channel is meant."""

import re
from collections.abc import Iterator
from functools import partial

from compression_eval.conversations.scrubbing.hits import Hit, Remembered
from compression_eval.conversations.scrubbing.vocabulary import Learnt, Vocabulary

_ascii = partial(re.compile, flags=re.ASCII)
NAME = "mentions"

_FORMS = {
    "slack": _ascii(r"<[@#](?P<id>[UWCDGB][A-Z0-9]{7,14})(?:\|(?P<label>[^<>|\n]{1,80}))?>"),
    "slack-group": _ascii(r"<!subteam\^(?P<id>S[A-Z0-9]{7,14})(?:\|@?(?P<label>[^<>|\n]{1,80}))?>"),
    "discord": _ascii(r"<(?:@[!&]?|#)(?P<id>\d{15,21})>"),
    "telegram": _ascii(r"tg://user\?id=(?P<id>\d{5,14})"),
    "feishu": _ascii(r"<at (?:user_)?id=[\"'\\]{0,2}(?P<id>(?:ou|on|oc)_[\w-]{8,64}|\d{5,20})"),
    "feishu-label": _ascii(r"<at [^<>\n]{1,120}>(?P<label>[^<>\n]{1,60})</at>"),
    "teams": _ascii(r"<at(?: id=\"\d+\")?>(?P<label>[^<>\n]{1,60})</at>"),
    "matrix": _ascii(
        r"(?<![\w.@/-])@(?P<id>[a-z0-9._=+-]{1,60}):[a-z0-9.-]{3,80}\.[a-z]{2,12}(?![\w-])"
    ),
    "wechat": _ascii(r"(?<![A-Za-z0-9_])(?P<id>wxid_[a-z0-9]{10,24})(?![A-Za-z0-9_])"),
}
_HINTS = {
    "slack": "<",
    "slack-group": "<!subteam",
    "discord": "<",
    "telegram": "tg://",
    "feishu": "<at ",
    "feishu-label": "</at>",
    "teams": "</at>",
    "matrix": "@",
    "wechat": "wxid_",
}


class Mentions:
    """Finds mentions; the id that one holds is replaced wherever it stands."""

    name = NAME

    def __init__(self) -> None:
        self._found = Remembered(_found)

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note the ids."""
        for hit in self._found(text):
            value = text[hit.start : hit.end]
            if hit.kind == "mention" and len(value) >= 8:
                vocabulary.learn(NAME, Learnt(value, "mention", hit.rule))

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield ids and names of the mentions in one text."""
        yield from self._found(text)


def _found(text: str) -> Iterator[Hit]:
    for rule, form in _FORMS.items():
        if _HINTS[rule] not in text:
            continue
        for found in form.finditer(text):
            if "id" in form.groupindex:
                yield Hit(*found.span("id"), rule, "mention")
            if "label" in form.groupindex and found["label"]:
                yield Hit(*found.span("label"), rule, "person")
