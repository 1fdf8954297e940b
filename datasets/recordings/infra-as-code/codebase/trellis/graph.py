"""Order of resources by what they need."""

from collections.abc import Mapping, Sequence

from trellis import TrellisError


def order(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the addresses, each after those it needs; otherwise in the order given.

    Needs that are not among the addresses are passed over.
    """
    done: dict[str, None] = {}
    open_: list[str] = []

    def visit(address: str) -> None:
        if address in done:
            return
        if address in open_:
            raise TrellisError(f"a circle: {' -> '.join([*open_[open_.index(address):], address])}")
        open_.append(address)
        for each in needs[address]:
            if each in needs:
                visit(each)
        open_.pop()
        done[address] = None

    for address in needs:
        visit(address)
    return list(done)
