"""How a compression says that it failed."""

from compression_eval.compressors.state import StateStatus


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
