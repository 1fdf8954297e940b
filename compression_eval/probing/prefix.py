"""Let the first call about a state go ahead, so that a vendor's prompt cache is filled by it.

All probes of a state send the same long prefix. Sent at the same moment, each would be billed in
full; sent after the first answer has come, they read the prefix from the provider's cache.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from inspect_ai.model import Model

from compression_eval.probing.run_identity import current_run

_NO_PROMPT_CACHE = frozenset(
    {"embedded", "mockllm", "none", "hf", "vllm", "sglang", "llama-cpp-python"}
)
"""Providers without a prompt cache that is billed; calls to them all go at once."""


@dataclass
class _Gate:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    opened: bool = False


_gates: dict[tuple[str, str, str], _Gate] = {}


def has_prompt_cache(model: Model | str) -> bool:
    """Return whether a model's provider may bill a repeated prefix at a lower price.

    Args:
        model: A model, or its name.
    """
    return str(model).partition("/")[0] not in _NO_PROMPT_CACHE


@asynccontextmanager
async def prefix_first(key: str, model: Model) -> AsyncIterator[None]:
    """Enter at once as the first for a key, or else when the first has left.

    A first call that fails or is cancelled lets the next one go first.

    Args:
        key: Names the shared prefix, for example by its state.
        model: The model to be called.
    """
    if not has_prompt_cache(model):
        yield
        return
    gate = _gates.setdefault((_run_key(), str(model), key), _Gate())
    if gate.opened:
        yield
        return
    async with gate.lock:
        if not gate.opened:
            yield
            gate.opened = True
            return
    yield


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
