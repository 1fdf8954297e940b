"""What a resumed sample leaves, what the agent did again in it, and the scorer of both.

The solver writes a `ResumptionRecord`; the scorer reads it and the sample's messages, and nothing
else. Work that was stopped is unscored with its reason. What counts as done again follows simple
rules, so that two readers count the same: doing something again only counts until the agent changes
something, since tests that are run after an edit are work.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from inspect_ai.model import ChatMessage, ChatMessageAssistant
from inspect_ai.scorer import Score, Scorer, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import StoreModel
from pydantic import BaseModel, Field

from compression_eval.file_ops.calls import Call, calls_of_fixture, calls_of_messages
from compression_eval.file_ops.shell_grammar import ShellSyntaxError, parse, text_of
from compression_eval.file_ops.tools import command_of, deed_of, read_calls
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Message
from compression_eval.fixtures.recording import WORKSPACE
from compression_eval.grading.metrics import over_conversations
from compression_eval.record import Recorded, scoring
from compression_eval.text.markdown import escaped

if TYPE_CHECKING:
    from tree_sitter import Node


MARK = "resumption"
"""Key of a log's metadata that marks logs of this task; those of `compression` have another."""

Outcome = Literal["kept", "broken", "asked"]
"""Of a constraint; ``asked`` if its check failed after the agent had asked the user for it."""


class CheckResult(BaseModel):
    """One check after the agent has ended."""

    what: str
    kind: Literal["check", "rule", "value", "decision"]
    failure: str = ""
    """Why it did not pass; empty if it did."""
    probe: str = ""
    """Of a constraint, and so the following: the id of the probe that asks for it."""
    asked: list[str] = Field(default_factory=list)
    """Words any of which a question about it contains."""
    in_state: bool | None = None
    """Whether the state held it, as far as looking its words up tells."""

    def outcome(self, questions: Sequence[str]) -> Outcome:
        """Return what became of a constraint.

        Args:
            questions: What the agent asked the user, in lower case.
        """
        if not self.failure:  # a question may name what the agent knows
            return "kept"
        about = any(word.lower() in question for word in self.asked for question in questions)
        return "asked" if about else "broken"


class History(BaseModel):
    """What the conversation before the cut had done already."""

    files: list[str] = Field(default_factory=list)
    """Files that it read or wrote."""
    commands: list[str] = Field(default_factory=list)
    """Digests of the commands that it ran."""


class ResumptionRecord(StoreModel):
    """The place of the record in a sample's store."""

    folder: str = ""
    """The project folder in the sandbox."""
    history: History = Field(default_factory=History)
    first: int = 0
    """Number of messages before the agent's first: the state and the user's message."""
    stopped: str = ""
    """Why the work has no score, in countable words."""
    checked: list[CheckResult] = Field(default_factory=list)
    """Empty if the agent did not end by itself."""
    tokens: int = 0
    """All tokens of the calls from the state on, as the providers report them."""


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
    commands = {_digest(text) for call in calls for text in _commands(call)}
    return History(files=sorted(files), commands=sorted(commands))


def _digest(command: str) -> str:
    return digest(command)[:16]


def _commands(call: Call) -> Iterator[str]:
    """Yield the commands that a shell call runs, each on one line, without redirected output.

    Of a pipeline only the first command counts: what its output is cut to makes it no other.
    """
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


def _done_again(
    messages: Sequence[ChatMessage], history: History, folder: str
) -> tuple[list[str], list[str]]:
    """Return the files that the agent read and the commands that it ran although the history had.

    Each is there once: a file if the agent had not changed it before, a command if it had not
    changed anything. A here-document stands as the name of a file that contains it.

    Args:
        messages: The agent's part of the conversation.
        history: Of the conversation before the cut.
        folder: The project folder.
    """
    calls, changed, changes = calls_of_messages(messages), set[str](), list[int]()
    files, commands = dict[str, None](), dict[str, None]()
    for event in read_calls(calls, root=folder).events:
        path = event.path.removeprefix(f"{WORKSPACE}/")
        if event.action != "read":
            changed |= {path, event.to}
            changes.append(event.message)
        elif path in history.files and path not in changed:
            files[path] = None
    known = set(history.commands)
    for call in calls:
        if not changes or call.message <= changes[0]:
            commands |= {text: None for text in _commands(call) if _digest(text) in known}
    return list(files), list(commands)


def asks(message: ChatMessage) -> bool:
    """Return whether the agent ended its turn with a question: no call, a question mark last."""
    return (
        isinstance(message, ChatMessageAssistant)
        and not message.tool_calls
        and bool(_QUESTION_AT_END.search(message.text))
    )


def questions_asked(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the questions to the user: calls of the tool, and turns that end with a question.

    A task can be done from what the user said, so each asks for something that was said before. Of
    a turn, it is the last paragraph.
    """
    calls = [call for call in calls_of_messages(messages) if call.name == ASK_TOOL]
    turns = [message.text.strip().split("\n\n")[-1] for message in messages if asks(message)]
    return [*(str(call.arguments) for call in calls), *turns]


FINISHING_KEYS = (
    "solved",
    "finished",
    "constraints_broken",
    "constraints_asked",
    "tokens_used",
    "turns",
    "files_read_again",
    "commands_run_again",
    "questions",
)
"""Keys of the score of `finishing`, on every sample whose agent ended by itself."""


@scorer(metrics={key: [over_conversations()] for key in FINISHING_KEYS})
def finishing() -> Scorer:
    """Report how the work went on; calls no model.

    ``solved`` is 1 if every check passes and no constraint is broken, ``finished`` the share of
    the checks that pass (0 to 1), ``constraints_broken`` and ``constraints_asked`` are counts of
    those whose check failed: without a question, and after the agent had asked the user for it.
    ``tokens_used`` are those of all calls from the state on, ``turns`` the agent's replies.
    ``files_read_again``, ``commands_run_again`` and ``questions`` are counts by the rules above.
    """

    async def score(sample: Recorded, state: TaskState) -> Score:
        record = state.store_as(ResumptionRecord)
        if failure := sample.compression_failure:
            return Score.unscored(reason=failure, explanation=sample.state.failure)
        if record.stopped or not record.checked:
            reason = record.stopped or "limit: the agent did not end by itself"
            return Score.unscored(reason=f"not_finished: {reason}")
        own = state.messages[record.first :]
        checks = [result for result in record.checked if result.kind == "check"]
        rules = [result for result in record.checked if result.kind != "check"]
        questions = questions_asked(own)
        outcomes = [rule.outcome([each.lower() for each in questions]) for rule in rules]
        passed = sum(not result.failure for result in checks)
        files, commands = _done_again(own, record.history, record.folder)
        return Score(
            value={
                "solved": int(not any(result.failure for result in record.checked)),
                "finished": round(passed / len(checks), 4),
                "constraints_broken": outcomes.count("broken"),
                "constraints_asked": outcomes.count("asked"),
                "tokens_used": record.tokens,
                "turns": sum(message.role == "assistant" for message in own),
                "files_read_again": len(files),
                "commands_run_again": len(commands),
                "questions": len(questions),
            },
            explanation=_explanation([*checks, *rules], outcomes, files, commands),
            metadata={
                "constraints": [
                    {
                        "probe": rule.probe,
                        "kind": rule.kind,
                        "outcome": outcome,
                        "passed": not rule.failure,
                    }
                    | ({} if rule.in_state is None else {"in_state": rule.in_state})
                    for rule, outcome in zip(rules, outcomes, strict=True)
                ],
                "files_read_again": files,
                "commands_run_again": commands,
            },
        )

    return scoring(score)


def _explanation(
    checked: Sequence[CheckResult],
    outcomes: Sequence[Outcome],
    files: Sequence[str],
    commands: Sequence[str],
) -> str:
    known = {True: "yes", False: "no", None: ""}
    words = [""] * (len(checked) - len(outcomes)) + list(outcomes)
    ended = [
        ": ".join(filter(None, (word, escaped(result.failure)))) or "passed"
        for result, word in zip(checked, words, strict=True)
    ]
    rows = [
        f"| {result.kind} | {escaped(result.what)} | {outcome} | {known[result.in_state]} |"
        for result, outcome in zip(checked, ended, strict=True)
    ]
    lines = ["| kind | what | outcome | in the state |", "|---|---|---|---|", *rows]
    for title, items in (("Read again", files), ("Run again", commands)):
        if items:
            lines += ["", f"**{title}**", "", *(f"- {escaped(item)}" for item in items)]
    return "\n".join(lines)
