"""Whether the model that will answer can read what a vendor's compaction returns."""

from inspect_ai.model import Model, get_model

from compression_eval.compressors.errors import CompressionError


def require_vendor_to_answer(compressing: Model) -> Model | None:
    """Check, before anything is paid for, that answers come from the vendor that compresses.

    Args:
        compressing: The model whose vendor makes the state.

    Returns:
        The model that answers; None outside of an eval, where it is not known.

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
