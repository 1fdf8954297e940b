"""How a compression says that it failed, and what is no failure of it."""

from collections.abc import Iterator

from inspect_ai.model import Model, RetryDecision

from compression_eval.compressors.state import StateStatus
from compression_eval.fixtures.errors import one_line

_OUTAGE_STATUSES = frozenset({401, 402, 403, 407, 408, 409, 425, 429})
"""HTTP statuses that turn on keys, quotas and traffic, not on what was asked; so all from 500."""

_OUTAGE_NAMES = ("ConnectionError", "ConnectError", "TimeoutError", "Timeout", "RateLimitError")
"""How the names of such errors end in HTTP libraries, SDKs and Inspect itself."""

_BILLING = ("credit balance", "insufficient_quota", "exceeded your current quota", "billing")
"""Words of vendors that answer with status 400 where an account has run dry."""

_MAX_CAUSE = 200


class CompressionError(Exception):
    """A compression that cannot give a state; it fails the state, never the score.

    Args:
        status: What kind of failure it is.
        reason: What happened, in one line.
    """

    def __init__(self, status: StateStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def is_outage(error: BaseException, model: Model | None = None) -> bool:
    """Return whether an error is one of the way to a vendor, and says nothing about a strategy.

    That is: no connection, no time, no key, no quota, overload. The same compression may succeed
    later, so it is the sample's error, which Inspect can retry, and never the strategy's.

    Args:
        error: What a strategy raised. What it was raised from counts too.
        model: Its provider knows which errors may pass.
    """
    return any(_is_outage(cause, model) for cause in _causes(error))


def root_cause(error: BaseException) -> str:
    """Return what an error came from, with the kind of error, in one line."""
    *_, root = [error, *_causes(error)]
    return one_line(f"{type(root).__name__}: {root}", _MAX_CAUSE)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        # A strategy that states its failure has looked at what was behind it.
        if isinstance(error, CompressionError):
            return
        seen.add(id(error))
        yield error
        # What tenacity raises when it gives up names no cause but holds it.
        attempt = getattr(error, "last_attempt", None)
        error = (
            attempt.exception()
            if attempt is not None
            else error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        )


def _is_outage(error: BaseException, model: Model | None) -> bool:
    if isinstance(error, ConnectionError) or type(error).__name__.endswith(_OUTAGE_NAMES):
        return True
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    status = status or getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        if status in _OUTAGE_STATUSES or status >= 500:
            return True
        return status == 400 and any(word in str(error).lower() for word in _BILLING)
    if model is None or not isinstance(error, Exception):
        return False
    decision = model.api.should_retry(error)
    return decision.retry if isinstance(decision, RetryDecision) else bool(decision)
