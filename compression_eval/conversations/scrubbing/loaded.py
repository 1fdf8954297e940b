"""Loads what is large; imported before processes are forked, which so load it once and share it."""

from contextlib import suppress

from compression_eval.conversations.scrubbing.rules import dictionary
from compression_eval.conversations.scrubbing.secrets import scanner
from compression_eval.errors import DataError

for load in (dictionary, scanner):
    with suppress(DataError):  # a package that is missing is named where it is needed
        load()
