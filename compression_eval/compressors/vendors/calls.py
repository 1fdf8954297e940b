"""Calls of vendors' compaction endpoints: their cost, and who can read the result.

Such a call is no `generate()`, so Inspect records no model event for it. An info event in the
sample's transcript takes its place: the viewer shows it, and costs are added up from it, also for
calls that failed after they were billed.
"""

from typing import Any

from inspect_ai.event import InfoEvent
from inspect_ai.log import transcript
from inspect_ai.model import Model, get_model
from pydantic import BaseModel, ConfigDict, ValidationError

from compression_eval.compressors.errors import CompressionError

SOURCE = "compression_eval/vendor_call"
"""Source of the info events."""


class VendorCall(BaseModel):
    """One billed request to a vendor's compaction endpoint."""

    model_config = ConfigDict(frozen=True)

    endpoint: str
    model: str
    fed_messages: int
    """Number of the messages, from the first, that it was given."""
    input_tokens: int
    output_tokens: int
    outcome: str = ""
    """The result, in the vendor's term."""
    iterations: list[dict[str, Any]] = []
    """The vendor's own breakdown of the usage, if it gives one."""

    def record(self) -> None:
        """Record the call in the transcript of the running sample."""
        transcript().info(self.model_dump(mode="json"), source=SOURCE)


def vendor_call(event: InfoEvent) -> VendorCall | None:
    """Return the call that an event records; None if it records something else."""
    if event.source != SOURCE:
        return None
    try:
        return VendorCall.model_validate(event.data)
    except ValidationError:
        return None


def require_vendor_to_answer(compressing: Model) -> Model | None:
    """Check, before any cost, that the answering model is of the vendor that compresses.

    Args:
        compressing: The model that compresses.

    Returns:
        The model that answers; None outside of an eval, where it is unknown.

    Raises:
        CompressionError: Another vendor's model answers; it could not read the state.
    """
    try:
        answering = get_model()
    except ValueError:
        return None
    provider = str(answering).partition("/")[0]
    if provider == "none":
        return None
    if provider != str(compressing).partition("/")[0]:
        raise CompressionError(
            "unsupported",
            f"only the vendor of {compressing} can read this state, but {answering} is to answer",
        )
    return answering
