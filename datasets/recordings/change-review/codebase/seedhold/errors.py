"""Errors that a curator or a packer sees. The code is printed on the bench screen."""


class SeedholdError(Exception):
    """Something that a person at the bench has to know."""

    code = "SH-00"

    def __str__(self) -> str:
        return f"{self.code} {super().__str__()}"


class NotEnough(SeedholdError):
    """Fewer seeds above the floor than wanted."""

    code = "SH-20"


class WrongState(SeedholdError):
    """The request is not in a state in which this can be done."""

    code = "SH-21"


class NoSeedWeight(SeedholdError):
    """The lot has no thousand-seed weight, so that its seeds cannot be counted."""

    code = "SH-31"


class Unknown(SeedholdError):
    """No such request, lot or accession."""

    code = "SH-40"
