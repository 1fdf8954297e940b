"""Compute each state once and share it among the samples that need it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from inspect_ai.util import LimitExceededError

from compression_eval.compressors.errors import root_cause
from compression_eval.compressors.state import State
from compression_eval.probing.run_identity import current_run
from compression_eval.probing.state_files import StateFiles

logger = logging.getLogger(__name__)

MAX_INTERRUPTIONS = 3
"""After so many owners were cancelled or ran into a limit, the state counts as failed."""


@dataclass
class _Slot:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    state: State | None = None
    interruptions: int = 0
    attempts: int = 0
    """Computations that have ended, one way or another."""
    error: Exception | None = None
    """What the last one raised, unless it gave a state."""


class SharedStates:
    """States by run and key; the first sample that needs one computes it, the others wait.

    A sample that computes one may be cancelled or run into a limit: then the next one that waits
    takes over. A strategy that fails is not tried again in the same logical run; its failure is
    the state that all samples get. An error that says nothing about the strategy, such as an outage
    of the vendor, goes to all samples that waited for this computation, and nothing is kept: a
    sample that comes later, or is retried, tries again.
    """

    def __init__(self) -> None:
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._warned = False

    async def get(self, key: str, compute: Callable[[], Awaitable[State]]) -> tuple[State, bool]:
        """Return the state for a key, and whether this call computed it.

        Args:
            key: Names the state within its logical run.
            compute: Computes it; called by one caller at a time.
        """
        run = current_run()
        slot = self._slots.setdefault((run.eval_id, key), _Slot())
        attempts = slot.attempts
        async with slot.lock:
            if slot.state is not None:
                return slot.state, False
            if slot.error is not None and slot.attempts > attempts:
                raise SharedError(
                    "the compression that this sample waited for ended with "
                    f"{root_cause(slot.error)}"
                ) from slot.error
            files = StateFiles(run.log_folder, run.task_id) if run.log_folder else None
            if files and (kept := await anyio.to_thread.run_sync(files.load, key)):
                slot.state = kept
                return kept, False
            if slot.interruptions >= MAX_INTERRUPTIONS:
                raise InterruptedStateError(
                    f"the compression was interrupted {slot.interruptions} times"
                )
            slot.error = None
            try:
                slot.state = state = await compute()
            except LimitExceededError:
                slot.interruptions += 1
                raise
            except Exception as error:
                slot.error = error
                raise
            except BaseException:
                slot.interruptions += 1
                raise
            finally:
                slot.attempts += 1
            if files:
                await self._save(files, key, state)
            return state, True

    async def _save(self, files: StateFiles, key: str, state: State) -> None:
        try:
            await anyio.to_thread.run_sync(files.save, key, state)
        except Exception as error:  # a file system may raise anything; the run can go on without
            if not self._warned:
                self._warned = True
                logger.warning(
                    "states cannot be kept beside the log, so a retry would compress again: %s",
                    error,
                )


class SharedError(Exception):
    """Another sample's computation of a state ended with an error that says nothing of it."""


class InterruptedStateError(Exception):
    """A state could not be had because its owners kept being interrupted."""
