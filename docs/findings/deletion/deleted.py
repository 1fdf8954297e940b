"""The states of the deletion study: a good summary without what it said of one or two facts.

    inspect eval tasks/resumption.py -T compressor=docs/findings/deletion/deleted.py@facts_deleted \
      -T 'compressor_args={"kept": "first"}' -T min_removed=0 --model MODEL --sample-id ...

`deleted.json` beside this file holds a state for each of nine conversations, and which texts of it
go with each fact.
"""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any, Literal

_HELD = json.loads((Path(__file__).parent / "deleted.json").read_text(encoding="utf-8"))


def facts_deleted(
    messages: list[dict[str, Any]], kept: Literal["both", "first", "second", "neither"] = "both"
) -> list[dict[str, Any]]:
    """Return the state of a conversation in which these facts are left."""
    first = next(message["content"] for message in messages if message["role"] == "user")
    begins = hashlib.sha256(first.encode()).hexdigest()
    held = next(each for each in _HELD.values() if each["begins"] == begins)
    state = copy.deepcopy(held["messages"])
    for fact, texts in held["deletions"].items():
        if kept not in (fact, "both"):
            for at, old, new in texts:
                state[at]["content"] = state[at]["content"].replace(old, new)
    return state
