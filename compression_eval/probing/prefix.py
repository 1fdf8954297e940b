"""Let the first call about a state go ahead, so that a vendor's prompt cache is filled by it.

All probes of a state send the same long prefix. Sent at the same moment, each would be billed in
full; sent after the first answer has come, they read the prefix from the provider's cache.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio
from inspect_ai.model import Model

from compression_eval.probing.run_identity import current_run

_NO_PROMPT_CACHE = frozenset(
    {"embedded", "mockllm", "none", "hf", "vllm", "sglang", "llama-cpp-python"}
)
"""Providers without a prompt cache that is billed; calls to them all go at once."""


MAX_WAIT_SECONDS = 10.0
"""How long others let a first call go ahead. Providers have a prefix in their cache once the first
reply has begun, so a call that takes longer than this has filled the cache or is in trouble."""


@dataclass
class _Gate:
    opened: anyio.Event = field(default_factory=anyio.Event)
    deadline: float = field(default_factory=lambda: anyio.current_time() + MAX_WAIT_SECONDS)


_gates: dict[tuple[str, str, str], _Gate] = {}
_held: ContextVar[_Gate | None] = ContextVar("compression_eval_held_gate", default=None)
"""The gate that the call of this task goes ahead through."""


def has_prompt_cache(model: Model | str) -> bool:
    """Return whether a model's provider may bill a repeated prefix at a lower price.

    Args:
        model: A model, or its name.
    """
    return str(model).partition("/")[0] not in _NO_PROMPT_CACHE


@asynccontextmanager
async def prefix_first(key: str, model: Model) -> AsyncIterator[None]:
    """Enter at once as the first for a key, or else when the first has left.

    Nobody waits for a first call that has failed, were it only its first attempt, nor longer than
    `MAX_WAIT_SECONDS` after it began.

    Args:
        key: Names the shared prefix, for example by its state.
        model: The model to be called.
    """
    if not has_prompt_cache(model):
        yield
        return
    name = (_run_key(), str(model), key)
    if gate := _gates.get(name):
        with anyio.CancelScope(deadline=gate.deadline):
            await gate.opened.wait()
        yield
        return
    _gates[name] = gate = _Gate()
    token = _held.set(gate)
    try:
        yield
    finally:
        gate.opened.set()
        _held.reset(token)


def open_held_gate() -> None:
    """Let others go ahead of the call that this task makes, if they wait for it."""
    if gate := _held.get():
        gate.opened.set()


def _run_key() -> str:
    """Return the id of the attempt that is running; empty while an old log is scored again."""
    try:
        return current_run().eval_id
    except RuntimeError:
        return ""


def forget_gates(eval_id: str) -> None:
    """Drop the gates of a run that has ended."""
    for key in [key for key in _gates if key[0] == eval_id]:
        del _gates[key]
