"""Tell from Hermes' own record of a call whether it compressed anything."""

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.hermes.child import WorkerReply


def check_outcome(reply: WorkerReply, model_error: str, model_refused: bool) -> None:
    """Raise if a call of Hermes' compressor is not to be taken for a compression.

    Not every version has every flag; one that is missing says nothing.

    Args:
        reply: What the worker returned.
        model_error: Why a model call failed; empty if none did.
        model_refused: Whether the model declined to summarise.

    Raises:
        CompressionError: It gave up, put a substitute in the place of a summary, or found nothing
            to compress; or its summary is a refusal.
    """
    flags = reply.flags
    cause = model_error or str(flags.get("_last_summary_error") or "no reason given")
    if flags.get("_last_compress_aborted"):
        raise CompressionError("aborted", f"Hermes gave up and kept the conversation: {cause}")
    if flags.get("_last_summary_fallback_used"):
        dropped = flags.get("_last_summary_dropped_count")
        raise CompressionError(
            "fallback",
            f"Hermes dropped {dropped} messages for a fixed text instead of a summary: {cause}",
        )
    if flags.get("_last_compression_made_progress") is False or reply.compressions == 0:
        tail = reply.budgets.get("tail_token_budget")
        raise CompressionError(
            "not_applied",
            f"Hermes found nothing to summarise (its own budget for the tail: {tail} tokens)",
        )
    if model_refused:
        raise CompressionError("aborted", "the summarising model refused")
