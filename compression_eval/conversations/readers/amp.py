"""Threads of Amp: one JSON document, as Amp keeps and exports it.

The messages are Anthropic's but for the results of tools, which say how the tool ran. Commands
that the user ran, notes to the model and summaries are messages of the role ``info``. Amp goes on
from a summary as an assistant message and leaves out everything before.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from compression_eval.conversations.drafts import Conversation, Draft, Line
from compression_eval.conversations.fields import Json, as_text, entries, label, origin
from compression_eval.conversations.readers.anthropic import AssistantTurn, text_block, user_drafts
from compression_eval.conversations.readers.base import Format, Reader, Table, command_text, sign
from compression_eval.conversations.sources import SourceFile

_OUTCOMES = {
    "rejected-by-user": "[the user rejected this call]",
    "cancelled": "[the user cancelled this call]",
}
"""What stands for a call that did not run to its end; Amp says the like to the model."""


class _Thread(Reader):
    format = "amp"
    key = "role"

    def take(self, line: Line, entry: Json) -> None:
        if isinstance(entry.at("content"), list):
            super().take(line, entry)
        else:
            line.is_unknown("expected content as a list")

    def assistant(self, line: Line, message: Json) -> None:
        """Take an answer; calls that were torn, and what the provider ran, are not sent again."""
        self.models[origin(message.text("usage", "model"))] += 1
        blocks: list[Any] = []
        for block in message.entries("content"):
            kind = block.text("type")
            if kind == "tool_use" and block.at("complete") is False:
                line.leave_out("tool call", "it was cut off and not carried out")
            elif kind.startswith("server_tool_use") or kind.endswith("_tool_result"):
                why = "of a tool that the provider ran; Amp does not send it again"
                line.leave_out(label(kind), why)
            else:
                blocks.append(block)
        self.drafts.extend(AssistantTurn().add(blocks, line))

    def user(self, line: Line, message: Json) -> None:
        """Take what the user said or ran, results, and summaries."""
        blocks: list[Any] = [
            text_block(f"[attached file: {file.text('uri')}]\n{text}")
            for file in message.entries("fileMentions", "files")
            if (text := file.text("content"))
        ]
        for block in message.entries("content"):
            match block.text("type"):
                case "summary":
                    summary = block.text("summary", "summary")
                    made = Draft("assistant", [summary])
                    self.open_or_compact(line, made, summary, [made])
                case "tool_result":
                    blocks.extend(_result(block, line))
                case "manual_bash_invocation":
                    run = block.entry("toolRun")
                    if block.at("hidden") is True or run.text("status") != "done":
                        line.leave_out("command", "the model was not told of it")
                    else:
                        output = run.text("result", "output") or run.json("result")
                        blocks.append(text_block(command_text(block.text("args", "cmd"), output)))
                case _:
                    blocks.append(block)
        if message.at("userState"):
            line.leave_out("userState", "the state of the user's editor")
        if blocks:
            self.say(line, *user_drafts(blocks, line))

    kinds: ClassVar[Table] = {"assistant": assistant, "user": user, "info": user}


def _result(block: Json, line: Line) -> Iterator[dict[str, Any]]:
    """Yield the result of a call in Anthropic's form; none if the call had not ended."""
    run = block.entry("run") or block
    status = run.text("status")
    if status in _OUTCOMES:
        content = [text_block(_OUTCOMES[status])]
    elif status == "error":
        content = [text_block(run.text("error", "message") or run.json("error"))]
    elif "result" in run or "output" in run:
        content = _content(run["result"] if "result" in run else run["output"])
    else:
        line.leave_out("result", "the call had not ended")
        return
    yield {"type": "tool_result", "tool_use_id": block.text("toolUseID"), "content": content}


def _content(result: Any) -> list[Any]:
    """Return what a tool gave as blocks: texts, what MCP returns, or an object as JSON."""
    if isinstance(result, list) and result:
        if all(isinstance(item, str) for item in result):
            return [text_block("\n".join(result))]
        blocks = entries(result)
        if all(block.text("type") in ("text", "image") for block in blocks):
            return list(blocks)
    if isinstance(result, dict):
        result = {key: part for key, part in result.items() if key != "discoveredGuidanceFiles"}
    return [text_block(as_text(result))]


def _is_thread(thread: Json) -> bool:
    return thread.text("id").startswith("T-") and any(
        message.text("role") and "messageId" in message and "content" in message
        for message in thread.entries("messages")
    )


def _recognise(source: SourceFile) -> str | None:
    seen = "a JSON object with an id such as T-… and messages that have a messageId"
    return sign([source.document], _is_thread, seen)


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = Json.of(source.document)
    if not _is_thread(document):
        return
    version = document.text("env", "initial", "platform", "clientVersion")
    thread = _Thread(origin("Amp thread", version), document.text("id").removeprefix("T-"))
    related = {item.text("type") for item in document.entries("relationships")}
    if related & {"handoff", "fork"}:
        thread.caveat("the thread is linked to another by handoff or fork")
    thread.feed_all("message", document["messages"])
    yield thread.finish()


FORMAT = Format("amp", _recognise, _read, "a thread of Amp: an id that begins with T-, messages")
