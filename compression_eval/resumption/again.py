"""What the agent did that the conversation had done already, and what it asked for.

The rules are simple, so that two readers count the same. Doing something again only counts until
the agent changes something: tests that are run after an edit are work.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from inspect_ai.model import ChatMessage, ChatMessageAssistant

from compression_eval.file_ops.calls import Call, calls_of_fixture, calls_of_messages
from compression_eval.file_ops.shell_grammar import ShellSyntaxError, parse, text_of
from compression_eval.file_ops.tools import command_of, deed_of, read_calls
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Message
from compression_eval.fixtures.recording import WORKSPACE
from compression_eval.resumption.record import History

if TYPE_CHECKING:
    from tree_sitter import Node

ASK_TOOL = "ask_user"
_QUESTION_AT_END = re.compile(r"[?？][\s\"'”’)）」』*_`]*\Z")
_NO_OUTPUT = re.compile(r"\d?>\s*(?:&\d|/dev/null)")
_NO_WORK = frozenset({"cd", "echo", "export", "set", "true", "printf", "mkdir"})
"""Programs whose repetition means nothing."""


def history_of(messages: Sequence[Message]) -> History:
    """Return what the conversation before a cut had read, written and run."""
    calls = calls_of_fixture(messages)
    events = read_calls(calls).events  # the project's folder is found in them
    files = {path for event in events for path in (event.path, event.to) if path}
    return History(files=sorted(files), commands=sorted(commands_in(calls)))


def commands_in(calls: Sequence[Call]) -> set[str]:
    """Return digests of the commands that shell calls ran.

    Of a pipeline only the first command counts: what its output is cut to makes it no other.
    """
    return {digest(text)[:16] for call in calls for text in single_commands(call)}


def single_commands(call: Call) -> Iterator[str]:
    """Yield the commands that a shell call runs, each on one line, without redirected output."""
    command = command_of(call.arguments)
    if deed_of(call.name, call.arguments) != "shell" or not isinstance(command, str):
        return
    try:
        waiting = [parse(command)]
    except ShellSyntaxError:
        yield " ".join(command.split())
        return
    while waiting:
        node: Node = waiting.pop()
        body = node.child_by_field_name("body")
        # With its here-document or its file: `python -` and `cat` alone are any command.
        redirected = node.type == "redirected_statement" and body and body.type == "command"
        if node.type == "command" or redirected:
            words = _NO_OUTPUT.sub("", text_of(node)).split()
            if words[0] not in _NO_WORK:
                yield " ".join(words)
        elif node.type == "pipeline":
            waiting.append(node.named_children[0])
        elif node.type != "function_definition":
            waiting.extend(node.named_children)


def files_read_again(messages: Sequence[ChatMessage], history: History, folder: str) -> list[str]:
    """Return the files that the agent read although the history had them.

    Args:
        messages: The agent's part of the conversation.
        history: Of the conversation before the cut.
        folder: The project folder.

    Returns:
        Each file once; without those that the agent had changed itself before it read them.
    """
    changed: set[str] = set()
    again: dict[str, None] = {}
    for event in read_calls(calls_of_messages(messages), root=folder).events:
        path = event.path.removeprefix(f"{WORKSPACE}/")
        if event.action != "read":
            changed |= {path, event.to}
        elif path in history.files and path not in changed:
            again[path] = None
    return list(again)


def commands_run_again(messages: Sequence[ChatMessage], history: History, folder: str) -> list[str]:
    """Return the commands that the agent ran, before it changed a file, although the history had.

    Args:
        messages: The agent's part of the conversation.
        history: Of the conversation before the cut.
        folder: The project folder.

    Returns:
        Each command once; a here-document stands as the name of a file that holds it.
    """
    calls = calls_of_messages(messages)
    changes = [
        event.message for event in read_calls(calls, root=folder).events if event.action != "read"
    ]
    known = set(history.commands)
    again: dict[str, None] = {}
    for call in calls:
        if changes and call.message > changes[0]:
            break
        again |= {text: None for text in single_commands(call) if digest(text)[:16] in known}
    return list(again)


def asks(message: ChatMessage) -> bool:
    """Return whether the agent ended its turn with a question: no call, a question mark last."""
    return (
        isinstance(message, ChatMessageAssistant)
        and not message.tool_calls
        and bool(_QUESTION_AT_END.search(message.text))
    )


def questions_asked(messages: Sequence[ChatMessage]) -> int:
    """Count the questions to the user: calls of the tool, and turns that end with a question.

    A task can be done from what the user said, so each asks for something that was said before.
    """
    by_tool = [call for call in calls_of_messages(messages) if call.name == ASK_TOOL]
    return len(by_tool) + sum(map(asks, messages))
