"""``command``: a program of the user compresses; messages as JSON in, messages as JSON out."""

import json
import os
import shutil
from pathlib import Path

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.yours.processes import ProgramError, run_program
from compression_eval.compressors.yours.wire import from_wire, to_wire
from compression_eval.fixtures.invoked_paths import invoked_folder


class CommandArguments(Arguments):
    """How the program is run."""

    command: list[str] = Field(min_length=1)
    """The program and its arguments, as a list; no shell reads it."""
    timeout_seconds: float = Field(default=120.0, gt=0)
    """Time limit of one compression."""
    max_output_bytes: int = Field(default=10_000_000, gt=0)
    """Limit of what it may write to standard output."""
    environment: list[str] = Field(default_factory=list)
    """Names of environment variables that it gets besides the usual ones, such as a key."""

    @field_validator("environment")
    @classmethod
    def _are_set(cls, environment: list[str]) -> list[str]:
        missing = [name for name in environment if name not in os.environ]
        if missing:
            raise PydanticCustomError(
                "no_variable",
                "there is no environment variable {name}; give names, not values",
                # What stands here may be the key itself.
                {"name": repr(missing[0]) if missing[0].isupper() else "of that name"},
            )
        return environment

    @field_validator("command")
    @classmethod
    def _can_be_found(cls, command: list[str]) -> list[str]:
        if any("\0" in part for part in command):
            raise PydanticCustomError("null_character", "an argument holds a null character")
        if program_path(command) is None:
            raise PydanticCustomError(
                "no_program",
                "there is no program {program} that can be run",
                {"program": repr(command[0])},
            )
        return command


def command_folder(command: list[str]) -> Path:
    """Return the folder that a command runs in: the one that its relative files are seen from."""
    return invoked_folder(command)


def program_path(command: list[str]) -> str | None:
    """Return the absolute path of a command's program, or None if there is none."""
    program = command[0]
    if not program:
        return None
    if Path(program).name != program:
        program = str(command_folder(command) / program)
    return shutil.which(program)


class CommandCompaction(CompactionStrategy):
    """Replace a conversation by what a program makes of it.

    The program reads one JSON document, a list of messages in the OpenAI chat form, from standard
    input, and writes such a list to standard output. It must exit with 0.

    Args:
        arguments: The command and its limits.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: CommandArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,  # noqa: ARG002
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation by one run of the program.

        Args:
            model: Not used; a program brings its own.
            messages: The conversation.
            tools: Not used.

        Returns:
            The messages of its reply, and None.

        Raises:
            CompressionError: It failed, or its reply is not a list of messages.
        """
        arguments = self.arguments
        command = arguments.command
        try:
            finished = await run_program(
                [program_path(command) or command[0], *command[1:]],
                json.dumps(to_wire(messages), ensure_ascii=False).encode(),
                seconds=arguments.timeout_seconds,
                most_bytes=arguments.max_output_bytes,
                folder=command_folder(command),
                variables=arguments.environment,
            )
        except ProgramError as error:
            raise CompressionError("error", str(error)) from error
        if finished.exit_code != 0:
            text = finished.error_text or "it wrote nothing to standard error"
            raise CompressionError("error", f"the command exited with {finished.exit_code}: {text}")
        try:
            reply = json.loads(finished.output)
        except (ValueError, RecursionError) as error:
            what = f"not JSON ({error})" if finished.output.strip() else "empty"
            raise CompressionError(
                "error",
                f"the command's standard output is {what}"
                + (f"; on standard error: {finished.error_text}" if finished.error_text else ""),
            ) from error
        return await from_wire(reply, messages), None


COMPRESSOR = Compressor(
    "command",
    "yours: a program that reads messages as JSON and writes them",
    CommandArguments,
    CommandCompaction,
    calls_model=False,
)
