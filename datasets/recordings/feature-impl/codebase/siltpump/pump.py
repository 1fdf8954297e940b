"""One turn of the pump: read the spool, cut a flush, write it, note it in the ledger."""

from siltpump import sink, spool
from siltpump.batcher import Flush, next_flush
from siltpump.config import Config
from siltpump.ledger import Ledger


def turn(config: Config, ledger: Ledger, now_ms: int) -> Flush | None:
    """Carry out one flush; None if nothing is pending."""
    waiting = spool.pending(config.spool, ledger.shipped, now_ms, config.settle_s)
    if not waiting:
        return None
    flush = next_flush(waiting, config, now_ms)
    sink.write(config.sink, ledger.flushes + 1, flush)
    ledger.append(flush.records)
    return flush
