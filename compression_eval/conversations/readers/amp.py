"""Threads of Amp: one JSON document, as Amp keeps and exports it.

The messages are Anthropic's but for the results of tools, which hold how the tool ran. What the
user ran himself, notes to the model and summaries are messages of the role ``info``; with a
summary, Amp goes on with it as an assistant message and leaves out everything before.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import RECORDED, Conversation, Draft
from compression_eval.conversations.fields import (
    as_text,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.anthropic import AssistantTurn, user_drafts
from compression_eval.conversations.readers.base import (
    SUMMARY_STANDS_IN,
    Entry,
    Reader,
    Table,
    command_text,
    document_of,
    with_replaced,
)
from compression_eval.conversations.sources import SourceFile, Value

_OUTCOMES = {
    "rejected-by-user": "[the user rejected this call]",
    "cancelled": "[the user cancelled this call]",
}
"""What stands for a call that did not run to its end; Amp says the like to the model."""


class _Thread(Reader):
    """A thread that is being read."""

    format = "amp"
    key = "role"
    unknown = "expected the role user, assistant or info, and content as a list"

    def take(self, line: Line, entry: Any) -> None:
        if isinstance(mapping_of(entry).get("content"), list):
            super().take(line, entry)
        else:
            line.is_unknown(self.unknown)

    def assistant(self, line: Line, message: Entry) -> None:
        self.models[origin(text_of(message, "usage", "model"))] += 1
        blocks = [block for block in message["content"] if _was_sent(block, line)]
        self.conversation.drafts.extend(AssistantTurn().add(blocks, line))

    def user(self, line: Line, message: Entry) -> None:
        """Take what the user said or ran, results, and summaries."""
        blocks: list[Any] = []
        for block in message["content"]:
            match text_of(block, "type"):
                case "summary":
                    self._compact(text_of(block, "summary", "summary"), line)
                case "tool_result":
                    blocks.extend(_result(block, line))
                case "manual_bash_invocation":
                    blocks.extend(_command(block, line))
                case kind:
                    blocks.append(_image(block) if kind == "image" else block)
        files = [
            _text(f"[attached file: {text_of(file, 'uri')}]\n{text}")
            for file in list_of(message, "fileMentions", "files")
            if (text := text_of(file, "content"))
        ]
        if message.get("userState"):
            line.leave_out("userState", "the state of the user's editor")
        if blocks or files:
            self.conversation.say(line, *user_drafts([*files, *blocks], line))
        elif line.reason is None and not line.drafts:
            line.skip("nothing that the model saw")

    def _compact(self, summary: str, line: Line) -> None:
        made = Draft("assistant", [summary])
        if summary and not self.conversation.drafts:
            self.conversation.caveats.append(SUMMARY_STANDS_IN)
            self.conversation.say(line, made)
        else:
            line.skip(RECORDED)
            self.conversation.compact(summary, [made])

    kinds: ClassVar[Table] = {"assistant": assistant, "user": user, "info": user}


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


def _result(block: Entry, line: Line) -> list[Any]:
    """Return the result of a call in Anthropic's form; none if the call had not ended."""
    run = mapping_of(block, "run") or block
    status = text_of(run, "status")
    if status in _OUTCOMES:
        content = [_text(_OUTCOMES[status])]
    elif status == "error":
        content = [_text(text_of(run, "error", "message") or as_text(run.get("error")))]
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
            return [_text("\n".join(result))]
        if all(text_of(item, "type") in ("text", "image") for item in result):
            return [_image(item) if text_of(item, "type") == "image" else item for item in result]
    if isinstance(result, dict):
        result = {key: part for key, part in result.items() if key != "discoveredGuidanceFiles"}
    return [_text(as_text(result))]


def _command(block: Entry, line: Line) -> list[Any]:
    result = mapping_of(block, "toolRun").get("result")
    if block.get("hidden") is True:
        line.leave_out("command", "the user ran it without showing it to the model")
    elif text_of(block, "toolRun", "status") != "done":
        line.leave_out("command", "it did not run to its end; the model was not told of it")
    else:
        output = text_of(result, "output") or as_text(result)
        return [_text(command_text(text_of(block, "args", "cmd"), output))]
    return []


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(block: Any) -> dict[str, Any]:
    """Return an image in Anthropic's form; Amp and MCP write its fields otherwise."""
    source = mapping_of(block, "source") or mapping_of(block)
    fields = {key: text_of(source, key) for key in ("data", "url")}
    fields["media_type"] = text_of(source, "mediaType") or text_of(source, "mimeType")
    return {"type": "image", "source": fields}


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
    expected = "a thread of Amp: an object with an id that begins with T-, and messages"
    document = document_of(source, expected, _is_thread)
    version = text_of(document, "env", "initial", "platform", "clientVersion")
    session = text_of(document, "id").removeprefix("T-")
    thread = _Thread(origin("Amp thread", version), session)
    related = {text_of(item, "type") for item in list_of(document, "relationships")}
    if related & {"handoff", "fork"}:
        thread.conversation.caveats.append("the thread is linked to another by handoff or fork")
    for number, message in enumerate(document["messages"]):
        thread.feed(Value(f"message {number}", message))
    yield with_replaced(thread.finish(), source)


FORMAT = Format(name="amp", title="Amp threads (JSON)", recognise=_recognise, read=_read)
