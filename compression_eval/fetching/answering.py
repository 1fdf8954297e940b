"""Put a probe to a model that may fetch again: the tools, their limits, and the loop around them.

What tools return comes from a conversation, which is untrusted: it is JSON on one line, so that no
text in it can end its line. Whatever is wrong with a call goes to the model as a tool error.
"""

import hashlib
import posixpath
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import anyio
import yaml
from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ChatMessageUser,
    ContentText,
    Model,
    ModelUsage,
    execute_tools,
)
from inspect_ai.tool import Tool, ToolDef, ToolError, tool
from inspect_ai.util import LimitExceededError, span
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.compressors.tokens import token_counter
from compression_eval.fetching.sources import Sources
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.conversation import message_index, message_text
from compression_eval.inspect_models import input_tokens
from compression_eval.record import AnswerRecord, FetchedRecord, RefetchRecord
from compression_eval.sharing import prefix_first
from compression_eval.text.printable import one_line_json

PART = 4_000
"""Characters of a message or file that one call returns."""

MAX_HITS = 8
"""Passages that one search returns."""

MAX_QUERY = 1_000
"""Characters of a query that are searched for."""

MAX_LISTED = 200
"""Files that one call lists."""


class FetchLimits(BaseModel):
    """How much may be fetched for one answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    calls: int = Field(default=8, ge=1)
    """Tool calls, failed ones too."""
    tokens: int = Field(default=20_000, ge=1)
    """Tokens of what the calls return, by the counter that states are counted with."""


@dataclass
class Fetching:
    """What one answer may fetch, and what it has fetched so far."""

    sources: Sources
    limits: FetchLimits
    in_state: frozenset[int] = frozenset()
    """Numbers of the messages that the state contains as they were."""
    calls: Counter[str] = field(default_factory=Counter)
    failed_calls: int = 0
    tokens: int = 0
    limit_reached: str = ""
    messages: dict[int, None] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)

    @property
    def used_up(self) -> bool:
        """Whether no further call is carried out."""
        return bool(self.limit_reached) or self.calls.total() >= self.limits.calls

    def begin(self, name: str) -> None:
        """Count a call.

        Raises:
            ToolError: It is one too many.
        """
        if self.used_up:
            self.limit_reached = self.limit_reached or "calls"
            raise ToolError(f"the limit of {self.limit_reached} is used up; answer now")
        self.calls[name] += 1

    def given(self, *data: Mapping[str, Any]) -> str:
        """Return what a call gives out, a line of JSON for each.

        Raises:
            ToolError: It is more than the rest of the tokens.
        """
        text = "\n".join(one_line_json(each) for each in data)
        tokens = token_counter().count(text)
        if self.tokens + tokens > self.limits.tokens:
            self.limit_reached = "tokens"
            raise ToolError(
                f"{tokens} tokens are more than the {self.limits.tokens - self.tokens} left; "
                "answer now"
            )
        self.tokens += tokens
        return text

    def fetched(self) -> list[FetchedRecord]:
        """Return every message and file that was given out, in the order of the first time."""
        touched = self.sources.touched
        return [
            *(
                FetchedRecord(message=n, known=True, in_state=n in self.in_state)
                for n in self.messages
            ),
            *(FetchedRecord(path=path, known=path in touched) for path in self.paths),
        ]


@tool
def search_history(fetching: Fetching) -> Tool:
    """Return the tool that searches the messages before the cut."""

    async def execute(query: str) -> str:
        fetching.begin("search_history")
        hits = await anyio.to_thread.run_sync(fetching.sources.search, query[:MAX_QUERY], MAX_HITS)
        if not hits:
            raise ToolError("query: no message contains any of these words")
        roles = fetching.sources.messages
        text = fetching.given(
            *(
                {"number": hit.number, "role": roles[hit.number][0], "offset": hit.offset}
                | {"text": hit.text}
                for hit in hits
            )
        )
        fetching.messages |= dict.fromkeys(hit.number for hit in hits)
        return text

    return _described(execute, "search_history")


@tool
def read_message(fetching: Fetching) -> Tool:
    """Return the tool that shows one message before the cut."""

    async def execute(number: int, offset: int = 0) -> str:
        fetching.begin("read_message")
        messages = fetching.sources.messages
        if not 0 <= number < len(messages):
            raise ToolError(f"number: there are the messages 0 to {len(messages) - 1}")
        role, whole = messages[number]
        text = fetching.given({"number": number, "role": role} | _part(whole, offset))
        fetching.messages[number] = None
        return text

    return _described(execute, "read_message")


@tool
def read_file(fetching: Fetching) -> Tool:
    """Return the tool that shows a file as it was at the cut."""

    async def execute(path: str, offset: int = 0) -> str:
        fetching.begin("read_file")
        code_base = await fetching.sources.code_base()
        name = _within(path, code_base.root)
        if name in code_base.unseen:
            raise ToolError("path: the conversation does not show the text of this file")
        if name not in code_base.texts:
            raise ToolError("path: there is no such file; list_files names those that there are")
        note = {"uncertain": True} if name in code_base.uncertain else {}
        text = fetching.given({"path": name} | note | _part(code_base.texts[name], offset))
        fetching.paths[name] = None
        return text

    return _described(execute, "read_file")


@tool
def list_files(fetching: Fetching) -> Tool:
    """Return the tool that lists the files as they was at the cut."""

    async def execute(folder: str = "") -> str:
        fetching.begin("list_files")
        code_base = await fetching.sources.code_base()
        name = _within(folder, code_base.root)
        below = "" if name == "." else f"{name}/"
        found = sorted(path for path in code_base.texts if path.startswith(below))
        unseen = [path for path in code_base.unseen if path.startswith(below)]
        if not found and not unseen:
            raise ToolError("folder: there is no file below it")
        more = sum(max(len(paths) - MAX_LISTED, 0) for paths in (found, unseen))
        return fetching.given(
            {"files": found[:MAX_LISTED]}
            | ({"files_without_text": unseen[:MAX_LISTED]} if unseen else {})
            | ({"not_listed": more} if more > 0 else {})
        )

    return _described(execute, "list_files")


def _described(execute: Any, name: str) -> Tool:
    texts = _texts()[name]
    # Inspect would cut a long output in the middle of its JSON; these are bounded already.
    return ToolDef(execute, name, texts["description"], texts["parameters"], max_output=0).as_tool()


def _part(whole: str, offset: int) -> dict[str, Any]:
    """Return a part of a text, and where the rest begins."""
    if not 0 <= offset <= max(len(whole) - 1, 0):
        raise ToolError(f"offset: the text has {len(whole)} characters")
    end = offset + PART
    rest = {"next_offset": end, "length": len(whole)} if end < len(whole) else {}
    return {"offset": offset, **rest, "text": whole[offset:end]}


def _within(path: str, root: str) -> str:
    """Return a path relative to the project; it is only ever compared with known ones."""
    name = posixpath.normpath(path.strip())
    name = name.removeprefix(f"{root}/") if root else name
    if "\0" in path or ".." in path.split("/"):
        raise ToolError("path: must lie within the project, without any ..")
    return "." if name == root else name


@cache
def _texts() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(_file("tools.yaml"))
    return loaded


@cache
def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8").strip()


def instructions(limits: FetchLimits) -> str:
    """Return what a model is told before the question."""
    return _file("instructions.md").format(**limits.model_dump())


def fetching_digest() -> str:
    """Return the digest of all that a model is told about fetching."""
    whole = "\0".join(map(_file, ("instructions.md", "tools.yaml")))
    return hashlib.sha256(whole.encode()).hexdigest()


async def answer_with_tools(
    model: Model,
    state: Sequence[ChatMessage],
    state_id: str,
    probe: Probe,
    sources: Callable[[], Awaitable[Sources]],
    limits: FetchLimits,
) -> RefetchRecord:
    """Ask a probe about a state again, with tools; whatever fails is recorded.

    The model is not shown its answer from the state alone, so that this is what an agent with tools
    would do, at its full price.

    Args:
        model: The model under test.
        state: The messages of the state.
        state_id: Its id.
        probe: The question.
        sources: Returns what lies before the cut.
        limits: How much may be fetched.
    """
    try:
        given = await sources()
    except Exception as error:  # the fixture may have to be read again
        return RefetchRecord(answer=_failed(model, error))
    # A strategy that shortens a message may leave it its id.
    kept = {(message_index(message.id), message_text(message)) for message in state}
    whole = frozenset(n for n, (_, text) in enumerate(given.messages) if (n, text) in kept)
    fetching = Fetching(given, limits, whole)
    tools = [search_history(fetching), read_message(fetching)]
    if given.has_files:
        tools += [read_file(fetching), list_files(fetching)]
    question = ChatMessageUser(
        id=f"question-{probe.id}-with-tools",
        content=[
            ContentText(text=f"{instructions(limits)}\n\n", cache_breakpoint=True),
            ContentText(text=probe.question),
        ],
    )
    usages: list[ModelUsage | None] = []
    async with span(name="refetch", type="refetch"):
        try:
            answer = await _loop(model, [*state, question], state_id, tools, fetching, usages)
        except LimitExceededError:
            raise
        except Exception as error:  # providers raise all kinds of errors
            answer = _failed(model, error)
    known = [usage for usage in usages if usage is not None]
    complete = len(known) == len(usages)
    return RefetchRecord(
        answer=answer,
        requests=len(usages),
        calls=dict(fetching.calls),
        failed_calls=fetching.failed_calls,
        limit_reached=fetching.limit_reached,
        input_tokens=sum(map(input_tokens, known)) if complete else None,
        output_tokens=sum(usage.output_tokens for usage in known) if complete else None,
        fetched_tokens=fetching.tokens,
        fetched=fetching.fetched(),
    )


def _failed(model: Model, error: Exception) -> AnswerRecord:
    return AnswerRecord(model=str(model), failure=f"{type(error).__name__}: {error}")


async def _loop(
    model: Model,
    messages: list[ChatMessage],
    state_id: str,
    tools: Sequence[Tool],
    fetching: Fetching,
    usages: list[ModelUsage | None],
) -> AnswerRecord:
    """Generate and carry out calls until the model answers, or has used up what it may fetch."""
    while True:
        last = fetching.used_up
        async with prefix_first(f"refetch:{state_id}", model):
            output = await model.generate(
                messages, tools=list(tools), tool_choice="none" if last else "auto"
            )
        usages.append(output.usage)
        answer = AnswerRecord.of(output, model)
        if output.empty or not output.message.tool_calls:
            return answer
        if last:
            fetching.limit_reached = fetching.limit_reached or "calls"
            reached = f"the limit of {fetching.limit_reached} was reached"
            return answer.model_copy(update={"failure": reached})
        messages.append(output.message)
        before = fetching.calls.total()
        results = (await execute_tools(messages, list(tools))).messages
        messages.extend(results)
        failed = [each for each in results if isinstance(each, ChatMessageTool) and each.error]
        fetching.failed_calls += len(failed)
        # What reached no tool of ours counts too, or a model could go on like that without end.
        if (astray := len(output.message.tool_calls) - fetching.calls.total() + before) > 0:
            fetching.calls["other"] += astray
