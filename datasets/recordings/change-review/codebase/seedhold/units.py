"""Mass and seeds (docs/design/DN-4-quantities.md).

Mass is integer milligrams. `tsw_mg` is the mass of a thousand seeds in milligrams.
"""

from seedhold.errors import NoSeedWeight


def seeds_in(mg: int, tsw_mg: int | None) -> int:
    """Return how many whole seeds a mass holds."""
    if not tsw_mg:
        raise NoSeedWeight("no thousand-seed weight")
    return mg * 1000 // tsw_mg


def mass_of(seeds: int, tsw_mg: int | None) -> int:
    """Return the milligrams that have to be weighed out for at least so many seeds."""
    if not tsw_mg:
        raise NoSeedWeight("no thousand-seed weight")
    return -(-seeds * tsw_mg // 1000)


def grams(mg: int) -> str:
    """Return a mass as it is printed on a packet."""
    return f"{mg // 1000}.{mg % 1000:03d} g"
