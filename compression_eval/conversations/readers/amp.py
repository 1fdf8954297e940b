"""Threads of Amp: one JSON document, as Amp keeps and exports it.

The messages are Anthropic's but for the results of tools, which hold how the tool ran. What the
user ran himself, notes to the model and summaries are messages of the role ``info``; with a
summary, Amp goes on with it as an assistant message and leaves out everything before.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.anthropic_blocks import AssistantTurn, user_drafts
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    SUMMARY_STANDS_IN,
    json_document,
    marked,
    origin,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError

_EXPECTED = "a thread of Amp: an object with an id that begins with T-, and messages"
_OUTCOMES = {
    "rejected-by-user": "[the user rejected this call]",
    "cancelled": "[the user cancelled this call]",
}
"""What stands for a call that did not run to its end; Amp says the like to the model."""


class _Thread:
    """A thread that is being read."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._models: Counter[str] = Counter()
        platform = mapping_of(mapping_of(mapping_of(document, "env"), "initial"), "platform")
        self.conversation = Conversation(
            "amp",
            origin("Amp thread", text_of(platform, "clientVersion")),
            text_of(document, "id").removeprefix("T-"),
            Ledger(),
            caveats=[NO_SYSTEM_PROMPT, NO_TOOLS],
        )
        related = {text_of(item, "type") for item in list_of(document, "relationships")}
        if related & {"handoff", "fork"}:
            self.conversation.caveats.append("the thread is linked to another by handoff or fork")

    def feed(self, number: int, message: Any) -> None:
        """Enter a message of the thread."""
        role, content = text_of(message, "role"), list_of(message, "content")
        line = self.conversation.ledger.enter(f"message {number}", label(role))
        if role not in ("user", "assistant", "info") or not isinstance(
            message.get("content"), list
        ):
            line.is_unknown("expected the role user, assistant or info, and content as a list")
            return
        try:
            if role == "assistant":
                self._models[origin(text_of(mapping_of(message, "usage"), "model"))] += 1
                blocks = [block for block in content if _was_sent(block, line)]
                self.conversation.drafts.extend(AssistantTurn().add(blocks, line))
            else:
                self._user(message, content, line)
        except RecursionError:
            line.is_unknown("nested too deeply")

    def _user(self, message: dict[str, Any], content: list[Any], line: Line) -> None:
        blocks: list[Any] = []
        for block in content:
            kind = text_of(block, "type")
            if kind == "summary":
                self._compact(mapping_of(block, "summary"), line)
            elif kind == "tool_result":
                blocks.extend(_result(block, line))
            elif kind == "manual_bash_invocation":
                blocks.extend(_command(block, line))
            else:
                blocks.append(_image(block) if kind == "image" else block)
        files = [
            {"type": "text", "text": f"[attached file: {text_of(file, 'uri')}]\n{text}"}
            for file in list_of(mapping_of(message, "fileMentions"), "files")
            if (text := text_of(file, "content"))
        ]
        if message.get("userState"):
            line.leave_out("userState", "the state of the user's editor")
        if blocks or files:
            drafts = user_drafts([*files, *blocks], line)
            self.conversation.drafts.extend(line.became(draft) for draft in drafts)
        elif line.reason is None and not line.drafts:
            line.skip("nothing that the model saw")

    def _compact(self, summary: dict[str, Any], line: Line) -> None:
        text, drafts = text_of(summary, "summary"), self.conversation.drafts
        made = Draft("assistant", [text])
        if text and not drafts:
            self.conversation.caveats.append(SUMMARY_STANDS_IN)
            drafts.append(line.became(made))
            return
        line.skip("a compaction, recorded beside the messages")
        self.conversation.compactions.append(
            Compaction(
                after=drafts[-1] if drafts else None,
                kind="summary" if text else "opaque",
                summary=text or None,
                state=[made] if text else None,
            )
        )

    def finish(self) -> Conversation:
        """Return the conversation."""
        del self._models[""]
        if self._models:
            self.conversation.model = self._models.most_common(1)[0][0]
        return self.conversation


def _was_sent(block: Any, line: Line) -> bool:
    """Whether a block of an answer stays in the context: torn calls do not."""
    kind = text_of(block, "type")
    if kind == "tool_use" and block.get("complete") is False:
        line.leave_out("tool call", "it was cut off and not carried out")
        return False
    if kind.startswith("server_tool_use") or kind.endswith("_tool_result"):
        line.leave_out(label(kind), "of a tool that the provider ran; Amp does not send it again")
        return False
    return True


def _result(block: dict[str, Any], line: Line) -> list[Any]:
    """Return the result of a call in Anthropic's form; none if the call had not ended."""
    run = mapping_of(block, "run") or block
    status = text_of(run, "status")
    content: list[Any] = []
    if status in _OUTCOMES:
        content = [{"type": "text", "text": _OUTCOMES[status]}]
    elif status == "error":
        error = run.get("error")
        content = [{"type": "text", "text": text_of(error, "message") or as_text(error)}]
    elif "result" in run or "output" in run:
        content = _content(run["result"] if "result" in run else run["output"])
    else:
        line.leave_out("result", "the call had not ended")
        return []
    return [{"type": "tool_result", "tool_use_id": text_of(block, "toolUseID"), "content": content}]


def _content(result: Any) -> list[Any]:
    """Return what a tool gave as blocks: texts, what MCP returns, or an object as JSON."""
    if isinstance(result, list) and result:
        if all(isinstance(item, str) for item in result):
            return [{"type": "text", "text": "\n".join(result)}]
        if all(text_of(item, "type") in ("text", "image") for item in result):
            return [_image(item) if text_of(item, "type") == "image" else item for item in result]
    if isinstance(result, dict):
        result = {key: part for key, part in result.items() if key != "discoveredGuidanceFiles"}
    return [{"type": "text", "text": as_text(result)}]


def _command(block: dict[str, Any], line: Line) -> list[Any]:
    if block.get("hidden") is True:
        line.leave_out("command", "the user ran it without showing it to the model")
        return []
    run = mapping_of(block, "toolRun")
    if text_of(run, "status") != "done":
        line.leave_out("command", "it did not run to its end; the model was not told of it")
        return []
    result = run.get("result")
    output = text_of(result, "output") or as_text(result)
    text = marked("user_command", command=text_of(mapping_of(block, "args"), "cmd"), text=output)
    return [{"type": "text", "text": text}]


def _image(block: Any) -> dict[str, Any]:
    """Return an image in Anthropic's form; Amp and MCP write its fields otherwise."""
    source = mapping_of(block, "source") or mapping_of({"source": block}, "source")
    media_type = text_of(source, "mediaType") or text_of(source, "mimeType")
    return {
        "type": "image",
        "source": {
            "media_type": media_type,
            "data": text_of(source, "data"),
            "url": text_of(source, "url"),
        },
    }


def _is_thread(document: Any) -> bool:
    return text_of(document, "id").startswith("T-") and any(
        text_of(message, "role") and "messageId" in message and "content" in message
        for message in list_of(document, "messages")
    )


def _recognise(source: SourceFile) -> str | None:
    if _is_thread(source.document):
        return "a JSON object with an id such as T-… and messages that have a messageId"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = json_document(source, _EXPECTED)
    if not _is_thread(document):
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    thread = _Thread(document)
    for number, message in enumerate(document["messages"]):
        thread.feed(number, message)
    if source.document_replaced:
        thread.conversation.caveats.append(REPLACED_BYTES)
    yield thread.finish()


FORMAT = Format(name="amp", title="Amp threads (JSON)", recognise=_recognise, read=_read)
