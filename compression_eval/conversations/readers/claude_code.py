"""Sessions of Claude Code: lines in ``projects/…/<session>.jsonl``, and those of its subagents."""

from collections.abc import Iterator

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.claude_code_lines import LINKED, record
from compression_eval.conversations.readers.claude_code_thread import ThreadReader
from compression_eval.conversations.readers.claude_code_tree import split_threads
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError

_SEEN = "lines with sessionId, uuid, parentUuid and a type such as user or assistant"


def _recognise(source: SourceFile) -> str | None:
    """Claim a file by a line of the tree, unless a message is not in Anthropic's form.

    Other agents took over the names of the links, with messages of their own form.
    """
    claimed = False
    for value in source.head:
        kind = text_of(value, "type")
        if not (
            text_of(value, "uuid")
            and text_of(value, "sessionId")
            and kind in LINKED
            and "parentUuid" in value
        ):
            continue
        if kind in ("user", "assistant"):
            message = mapping_of(value, "message")
            if text_of(message, "role") != kind or "content" not in message:
                return None
            claimed = True
        claimed = claimed or "isSidechain" in value
    return _SEEN if claimed else None


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the threads of a file: the session, and the subagents and side chains within it."""
    records = [record(item) for item in source.values()]
    threads = split_threads(records)
    if not any(item.linked and item.speaks for item in records):
        raise DataError(f"{source.path}: expected Claude Code {_SEEN}; found no message")
    del records
    while threads:
        yield ThreadReader(threads.pop(0)).read()


FORMAT = Format(name="claude-code", title="Claude Code", recognise=_recognise, read=_read)
