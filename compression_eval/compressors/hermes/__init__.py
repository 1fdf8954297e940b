"""Hermes' context compressor as a strategy: its published code, unmodified.

Source: ``agent/context_compressor.py`` of the ``hermes-agent`` package (Nous Research, MIT). It
pins libraries that conflict with ours, so each version has an environment of its own (`install`).
For each compression `_run_worker` starts ``worker.py`` there, without credentials and without a
network, and exchanges lines of JSON with it: the conversation goes in, requests of Hermes to its
model come out and are answered by an Inspect model (`_Answerer`), and the new messages come last.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile, mkdtemp
from typing import Annotated, Any, ClassVar, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelUsage,
    messages_from_openai,
    messages_to_openai,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import LimitExceededError
from platformdirs import user_cache_path
from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from compression_eval.compressors.command import plain_environment
from compression_eval.compressors.errors import CompressionError, is_outage
from compression_eval.compressors.strategy import Strategy, Text, strategy
from compression_eval.errors import DataError, shorten
from compression_eval.inspect_models import NO_CHOICES, refused, said, stop_reason

DEFAULT_VERSION = "0.19.0"

VERSION_PATTERN = r"^\d+(\.\d+){0,3}((a|b|rc|\.post|\.dev)\d+)?$"
"""A release as package indexes write it; it becomes a folder name."""

PINNED = Path(__file__).with_name("requirements")
"""All required packages with versions and hashes, by version of Hermes.

Made by ``uv pip compile --universal --generate-hashes --no-build``.
"""

_PIPS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")

# -P keeps the worker's folder, which is ours, off the module path.
_WORKER = ("-P", "-s", str(Path(__file__).with_name("worker.py")))
_DESCRIBE_SECONDS = 120
_MAX_LINE_BYTES = 64 * 1024 * 1024
_MAX_SHOWN = 300

_DEAD_PROXY = "http://127.0.0.1:9"
"""Nothing listens on the discard port: a request that is not for the loopback fails at once."""

# We wait for the model call, within Inspect's limits; Hermes must not give up earlier.
_CONFIGURATION = "auxiliary:\n  compression:\n    timeout: 86400\n"

MODEL_NAME = "compressor"
"""The model's name as Hermes sees it: constant, so that nothing depends on it."""

_EXTRAS = "hermes_extras"
"""Metadata key of Hermes' own fields of a message, which it gets back."""
_COMPRESSIONS = "hermes_compressions"
"""Metadata key of rewritten messages: the number of compressions so far."""

_CHAT_FORM = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "refusal"})

_OURS = frozenset(
    {
        *("model", "base_url", "api_key", "provider", "api_mode", "config_context_length"),
        *("summary_model_override", "quiet_mode"),
    }
)
"""Constructor arguments that this strategy sets itself."""


class Description(BaseModel):
    """The version of Hermes in an interpreter, and the parameters it takes."""

    version: str
    constructor: list[str]
    """Parameters of ``ContextCompressor``."""


def environment_folder(version: str) -> Path:
    """Return the folder of the environment with a version, installed or not."""
    return user_cache_path("compression_eval", appauthor=False) / "hermes" / version


def python_of(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def find_interpreter(version: str, python: str | None) -> tuple[Path, Description]:
    """Return the interpreter to use and what it contains: the user's own, or that of a version.

    Raises:
        DataError: There is none; the text says how to get it.
    """
    if python is not None:
        path = Path(python).expanduser()
        # Inspect makes a task in the folder of its file, so a relative path would be ambiguous.
        if not path.is_absolute() or not path.is_file():
            raise DataError(
                f"hermes: python: {python}: expected the absolute path of an interpreter"
            )
        return path, describe(path)
    path = python_of(environment_folder(version))
    if not path.is_file():
        option = "" if version == DEFAULT_VERSION else f" --version {version}"
        raise DataError(
            f"hermes: hermes-agent {version} is not installed for this strategy; it needs an "
            "interpreter of its own, which this command prepares: "
            f"compression-eval compressors install hermes{option}"
        )
    return path, describe(path)


def install(version: str) -> tuple[Path, Description]:
    """Make a virtual environment with ``hermes-agent`` from the package index, unless there is one.

    Only wheels are installed, so that no package runs code during installation, and pip gets no
    environment variable that may contain a key. A version in `PINNED` is installed exactly as
    pinned; for others only the version of the package itself is fixed. The environment is moved to
    its place when it works, so that an interrupted installation never counts.

    Raises:
        DataError: The version is not one, or a step failed; pip's own words are on the terminal.
    """
    if not re.fullmatch(VERSION_PATTERN, version):
        raise DataError(f"--version: {shorten(version)} is not a version of a package")
    target = environment_folder(version)
    if not python_of(target).is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{version}-", dir=target.parent))
        pinned = PINNED / f"{version}.txt"
        wanted = [f"hermes-agent=={version}"]
        if pinned.is_file():
            wanted = ["--require-hashes", "--no-deps", "-r", str(pinned)]
        pip = [str(python_of(draft)), "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
        names = [name for name in os.environ if name.startswith("PIP_") or name.upper() in _PIPS]
        try:
            for command in (
                [sys.executable, "-m", "venv", str(draft)],
                [*pip, "--disable-pip-version-check", *wanted],
            ):
                subprocess.run(command, check=True, env=plain_environment(names))  # noqa: S603
            describe(python_of(draft))
            draft.replace(target)
        except (OSError, subprocess.CalledProcessError) as error:
            raise DataError(f"hermes-agent {version} could not be installed: {error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return target, describe(python_of(target))


@contextmanager
def _scratch_home() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a fresh home folder and an environment without credentials and user settings.

    Traffic other than to the loopback goes to a closed port, so that a version that looks up models
    or prices on the network neither waits nor discloses anything.
    """
    with TemporaryDirectory(prefix="compression-eval-hermes-", ignore_cleanup_errors=True) as name:
        (Path(name) / "config.yaml").write_text(_CONFIGURATION, encoding="utf-8")
        inherited = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "WINDIR")
        environment = {each: os.environ[each] for each in inherited if each in os.environ}
        environment |= dict.fromkeys(("HOME", "USERPROFILE", "HERMES_HOME"), name)
        environment |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _DEAD_PROXY)
        environment |= {"NO_PROXY": "127.0.0.1,localhost", "HERMES_TIMEZONE": "UTC"}
        yield Path(name), environment | {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}


@cache
def describe(python: Path) -> Description:
    """Ask an interpreter for the version of Hermes and the parameters it takes.

    Raises:
        DataError: Hermes cannot be imported there.
    """
    try:
        with _scratch_home() as (home, environment):
            done = subprocess.run(  # noqa: S603
                [str(python), *_WORKER],
                input=json.dumps({"action": "describe"}),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_DESCRIBE_SECONDS,
                env=environment,
                cwd=home,
                check=False,
            )
        if done.returncode != 0:
            raise DataError(
                f"hermes: {python}: Hermes' compressor cannot be loaded: {_last_line(done.stderr)}"
            )
        return Description.model_validate_json(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValidationError) as error:
        raise DataError(f"hermes: {python}: not a usable interpreter: {error}") from error


async def _run_worker(
    python: Path,
    request: Mapping[str, Any],
    answer: Callable[[Mapping[str, Any]], Awaitable[Any]],
    seconds: float,
) -> dict[str, Any]:
    """Return what `worker.compress` returns for a request; its process ends with this call.

    Chat requests of Hermes are answered by ``answer`` in the caller's context (the transcript and
    limits of an Inspect sample), whose time does not count. An error of it ends the exchange.
    """
    with _scratch_home() as (home, environment), TemporaryFile() as errors:
        try:
            with anyio.CancelScope(shield=True):  # else a cancelled start may leave it running
                process = await anyio.open_process(
                    [str(python), *_WORKER], stderr=errors, env=environment, cwd=home
                )
        except OSError as error:
            raise CompressionError("error", f"Hermes' interpreter {python}: {error}") from error
        try:
            stdin = cast(ByteSendStream, process.stdin)
            output = BufferedByteReceiveStream(cast(ByteReceiveStream, process.stdout))
            message: Any = request
            left = seconds
            while True:
                started = anyio.current_time()
                with anyio.move_on_after(left) as limit:
                    try:
                        await stdin.send(json.dumps(message).encode() + b"\n")
                        line = await output.receive_until(b"\n", _MAX_LINE_BYTES)
                    except (anyio.BrokenResourceError, anyio.IncompleteRead, anyio.EndOfStream):
                        code = await process.wait()
                        errors.seek(0)
                        reason = _last_line(errors.read().decode("utf-8", "replace"))
                        raise CompressionError(
                            "error", f"Hermes failed (exit {code}): {reason}"
                        ) from None
                if limit.cancelled_caught:
                    raise CompressionError("error", f"Hermes took longer than {seconds:g} seconds")
                left -= anyio.current_time() - started
                reply: dict[str, Any] = json.loads(line)
                if "ask" not in reply:
                    return reply
                message = await answer(reply["ask"])
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()


def _last_line(text: str) -> str:
    """Return the last line that is not blank: of a traceback, the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_MAX_SHOWN] if lines else "it said nothing"


class _Answerer:
    """Answers the chat requests of Hermes with a model.

    A failed model call is not repeated: Inspect has retried it as configured, so Hermes' own
    retries get the same error.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.failure: tuple[int, dict[str, Any]] | None = None
        self.error = ""
        """Reason of the failed model call; empty if none failed."""
        self.refused = False
        """Whether the model refused, in a reply that Hermes may take for a summary."""

    async def answer(self, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the HTTP status and the body of the reply to a chat request.

        Limits and outages of the model are raised: they say nothing about Hermes.
        """
        if self.failure:
            return self.failure
        messages = await messages_from_openai(cast(Any, body["messages"]))
        most = body.get("max_tokens") or body.get("max_completion_tokens")
        config = GenerateConfig(max_tokens=most, temperature=body.get("temperature"))
        try:
            output = await self.model.generate(messages, config=config)
        except LimitExceededError:
            raise
        except Exception as error:  # any error of a provider is this call's failure
            if is_outage(error, self.model):
                raise
            # Hermes reacts to some statuses.
            status = getattr(error, "status_code", None)
            known = isinstance(status, int) and 400 <= status < 600
            return self._failed(status if known else 500, f"{type(error).__name__}: {error}")
        if stop_reason(output) == "model_length":
            reason = output.error or "the request does not fit the model's context window"
            return self._failed(400, reason, "context_length_exceeded")
        if reason := output.error or (NO_CHOICES if output.empty else ""):
            return self._failed(400, reason)
        self.refused = self.refused or refused(output)
        reasons = {"max_tokens": "length", "content_filter": "content_filter"}
        message = {"role": "assistant", "content": said(output)}
        reason = reasons.get(stop_reason(output), "stop")
        used = output.usage or ModelUsage()
        counts = {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens}
        return 200, {
            "id": "chatcmpl-compression-eval",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": MODEL_NAME,
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {**counts, "total_tokens": sum(counts.values())},
        }

    def _failed(
        self, status: Any, reason: str, code: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        self.error = " ".join(reason.split())
        error = {"message": self.error, "type": "compression_eval", "param": None, "code": code}
        self.failure = (status, {"error": error})
        return self.failure


def _version_used(given: Any) -> str:
    """Return the version of Hermes: an interpreter of the user's own may contain another one."""
    return find_interpreter(given.version, given.python)[1].version


@strategy
class HermesCompaction(Strategy):
    """Compress with Hermes' ``ContextCompressor``.

    Raises:
        ValueError: No interpreter has that version (the text says how to get one), or its
            compressor has no such constructor argument.
    """

    summary = "Hermes' own ContextCompressor, in an interpreter of its own"
    borrowed: ClassVar[Any] = staticmethod(_version_used)

    version: Annotated[str, Field(pattern=VERSION_PATTERN)] = DEFAULT_VERSION
    """Version of ``hermes-agent``; each has to be installed once."""
    python: Text | None = None
    """An interpreter of yours that can import Hermes, in place of an installed version."""
    focus_topic: Text | None = None
    """A topic that deserves the most room; without one, Hermes may derive its own."""
    context_length: PositiveInt = 200_000
    """The context window in tokens that Hermes' own budgets are shares of."""
    constructor: dict[str, JsonValue] = Field(default_factory=dict)
    """More arguments of ``ContextCompressor``, such as ``protect_last_n``."""
    timeout: PositiveFloat = 300
    """Seconds that Hermes may take; the model calls do not count."""
    today: date = date(2026, 9, 1)
    """The date that newer versions put into their prompt: fixed, so that a prompt is the same
    tomorrow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.interpreter, description = find_interpreter(self.version, self.python)
        known = [name for name in description.constructor if name not in _OURS]
        if unknown := sorted(set(self.constructor) - set(known)):
            raise DataError(
                f"hermes: constructor: {', '.join(unknown)}: no such argument of Hermes "
                f"{description.version}, which takes {', '.join(known)}"
            )

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return Hermes' result, and None: its summary may be part of another message.

        Raises:
            CompressionError: Hermes failed, or says itself that it did not compress.
            LimitExceededError: A limit of the sample was hit.
        """
        sent = await _to_hermes(messages)
        earlier = max((int((m.metadata or {}).get(_COMPRESSIONS, 0)) for m in messages), default=0)
        request = {
            "action": "compress",
            "messages": sent,
            "earlier": earlier,
            "today": self.today.isoformat(),
            "constructor": {
                **self.constructor,
                "model": MODEL_NAME,
                # Otherwise Hermes may look for another model and window in its configuration.
                "summary_model_override": MODEL_NAME,
                "config_context_length": self.context_length,
                "provider": "custom",
                "api_mode": "chat_completions",
                "quiet_mode": True,
            },
            "compress": {"focus_topic": self.focus_topic},
        }
        answerer = _Answerer(model)
        reply = await _run_worker(self.interpreter, request, answerer.answer, self.timeout)
        transcript().info({**reply, "messages": len(reply["messages"])}, source="hermes")
        _check_outcome(reply, answerer)
        return await _from_hermes(reply["messages"], sent, messages, earlier + 1), None


def _check_outcome(reply: dict[str, Any], answerer: _Answerer) -> None:
    """Raise if a call of Hermes' compressor did not compress.

    It may have given up, used a substitute for a summary, or found nothing to compress; or its
    summary is a refusal. Not every version has every flag; a missing one means nothing.
    """
    flags = reply["flags"]
    cause = answerer.error or str(flags.get("_last_summary_error") or "no reason given")
    if flags.get("_last_compress_aborted"):
        raise CompressionError("aborted", f"Hermes gave up and kept the conversation: {cause}")
    if flags.get("_last_summary_fallback_used"):
        dropped = flags.get("_last_summary_dropped_count")
        raise CompressionError(
            "fallback",
            f"Hermes dropped {dropped} messages for a fixed text instead of a summary: {cause}",
        )
    if flags.get("_last_compression_made_progress") is False or reply["compressions"] == 0:
        tail = reply["budgets"].get("tail_token_budget")
        raise CompressionError(
            "not_applied",
            f"Hermes found nothing to summarise (its own budget for the tail: {tail} tokens)",
        )
    if answerer.refused:
        raise CompressionError("aborted", "the summarising model refused")


async def _to_hermes(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages as OpenAI chat dicts, one for one."""
    plain = [cast(dict[str, Any], dict(item)) for item in await messages_to_openai(list(messages))]
    for source, item in zip(messages, plain, strict=True):
        for call in item.get("tool_calls") or []:
            # Escapes such as \u30a8 would reach the summarising model unchanged.
            arguments = json.loads(call["function"]["arguments"])
            call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False)
        item.update((source.metadata or {}).get(_EXTRAS, {}))
    return plain


async def _from_hermes(
    returned: Sequence[Mapping[str, Any]],
    sent: Sequence[Mapping[str, Any]],
    originals: Sequence[ChatMessage],
    compressions: int,
) -> list[ChatMessage]:
    """Return Hermes' messages in our form; unchanged ones are the original objects."""
    result: list[ChatMessage] = []
    position = 0
    for item in returned:
        same = next((i for i in range(position, len(sent)) if sent[i] == item), None)
        if same is not None:
            result.append(originals[same])
            position = same + 1
            continue
        (message,) = await messages_from_openai(
            cast(Any, [{key: value for key, value in item.items() if key in _CHAT_FORM}])
        )
        extras = {key: value for key, value in item.items() if key not in _CHAT_FORM}
        metadata = {_COMPRESSIONS: compressions} | ({_EXTRAS: extras} if extras else {})
        update: dict[str, Any] = {"source": None, "metadata": metadata}
        if message.role == "system" and not result and originals[0].role == "system":
            # The system prompt with a note at its end is still the system prompt.
            update["id"] = originals[0].id
        result.append(message.model_copy(update=update))
    return result
