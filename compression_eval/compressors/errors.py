"""Compression failures, and how to tell them from outages of a provider."""

import json
import traceback
from collections.abc import Iterator
from concurrent.futures import Future

from inspect_ai.model import Model, RetryDecision
from pydantic import ValidationError

from compression_eval.compressors.state import StateStatus
from compression_eval.errors import one_line

_OUTAGE_STATUSES = frozenset({401, 402, 403, 407, 408, 409, 425, 429})
"""HTTP statuses about keys, quotas and traffic, not about the request; so are all from 500."""

_OUTAGE_NAMES = ("ConnectionError", "ConnectError", "TimeoutError", "Timeout", "RateLimitError")
"""Suffixes of the names of such errors in HTTP libraries, SDKs and Inspect itself."""

# Some vendors answer with status 400 when an account has no credit: prefixes of the error's code or
# type, and phrases of vendors that have no code or type for it.
_BILLING_KINDS = ("billing_", "insufficient_quota")
_BILLING_PHRASES = ("credit balance is too low", "please enable billing on your project")

_UNREADABLE = (AssertionError, AttributeError, TypeError, json.JSONDecodeError, ValidationError)
"""Errors of a provider's code on replies that are not the vendor's: a proxy's page, truncated JSON,
nothing. Refused requests raise other errors."""

_MAX_CAUSE = 200
_MAX_DESCRIPTION = 500


class CompressionError(Exception):
    """A compression that gives no state; the state fails, never the score.

    Args:
        status: What kind of failure it is.
        reason: What happened, in one line.
    """

    def __init__(self, status: StateStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def is_outage(error: BaseException, model: Model | None = None) -> bool:
    """Return whether an error is an outage of the vendor or the way to it, not of a strategy.

    Outages are a missing connection, key or quota, a timeout, overload, and a reply that is not
    the vendor's. The same compression may succeed later, so the error is the sample's, which
    Inspect can retry, and not the strategy's.

    Args:
        error: The error that a strategy raised; its causes count too.
        model: Its provider knows which errors are transient.
    """
    return any(_is_outage(cause, model) for cause in _causes(error))


def root_cause(error: BaseException) -> str:
    """Return the root cause of an error, with its type, in one line."""
    *_, root = [error, *_causes(error)]
    return one_line(description(root), _MAX_CAUSE)


def description(error: BaseException) -> str:
    """Return an error of somebody else's code with its type, in one printable line."""
    # Inspect's error of a model call begins with the whole request.
    said = getattr(error, "provider_message", None)
    kind = one_line(type(error).__name__, _MAX_CAUSE)
    try:
        text = one_line(str(said or error), _MAX_DESCRIPTION)
    except Exception:  # of a user's own class
        return kind
    return f"{kind}: {text}" if text else kind


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        # A strategy that states its failure has considered the cause.
        if isinstance(error, CompressionError):
            return
        seen.add(id(error))
        yield error
        # tenacity's final error names no cause but contains it.
        attempt = getattr(error, "last_attempt", None)
        error = (
            attempt.exception()
            if isinstance(attempt, Future)
            else error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        )


def _is_outage(error: BaseException, model: Model | None) -> bool:
    if not isinstance(error, Exception):  # the code of a SystemExit is no HTTP status
        return False
    if isinstance(error, ConnectionError) or type(error).__name__.endswith(_OUTAGE_NAMES):
        return True
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    status = status or getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        lasting = status < 500 and status not in _OUTAGE_STATUSES
        return not lasting or (status == 400 and _is_billing(error))
    if model is None or not _came_through(error, model):
        return False
    if isinstance(error, _UNREADABLE):
        return True
    decision = model.api.should_retry(error)
    return decision.retry if isinstance(decision, RetryDecision) else bool(decision)


def _came_through(error: Exception, model: Model) -> bool:
    """Return whether an error was raised within a provider's code.

    Providers treat even a `json.JSONDecodeError` as their endpoint's, which is wrong for one raised
    where a strategy parses a summary.
    """
    provider = {kind.__module__ for kind in type(model.api).__mro__}
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") in provider for frame, _ in frames)


def _is_billing(error: Exception) -> bool:
    """Return whether an error reports an empty account; its text may quote the request."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    kinds = [getattr(error, name, None) for name in ("code", "type")]
    for part in (body, inner):
        if isinstance(part, dict):
            kinds += [part.get("code"), part.get("type")]
    return any(isinstance(kind, str) and kind.startswith(_BILLING_KINDS) for kind in kinds) or any(
        phrase in str(error).lower() for phrase in _BILLING_PHRASES
    )
