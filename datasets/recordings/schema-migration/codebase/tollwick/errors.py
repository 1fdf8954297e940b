"""Errors that the API turns into answers."""


class TollwickError(Exception):
    code = "TW-500"


class UnknownReturn(TollwickError):
    code = "TW-404"


class UnknownVoucher(TollwickError):
    code = "TW-405"


class WrongState(TollwickError):
    code = "TW-409"


class BadItems(TollwickError):
    code = "TW-422"
