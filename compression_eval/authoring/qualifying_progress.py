"""How far a qualifying run has come, on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from inspect_ai.hooks import Hooks, SampleEnd, hooks


class _Bar:
    """The bar of the run that is under way; None between runs."""

    current: Any = None


@hooks(name="compression_eval_qualify", description="Shows how far a qualifying run has come.")
class _ProgressHooks(Hooks):
    """Counts the samples of the run under way."""

    def enabled(self) -> bool:
        """Be silent in every run that is not started here."""
        return _Bar.current is not None

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Count a sample."""
        del data
        if _Bar.current is not None:
            _Bar.current.update(1)


@contextmanager
def progress(label: str, samples: int) -> Iterator[None]:
    """Show a bar while a run is under way; where there is no terminal, only its label.

    Args:
        label: Names the run.
        samples: How many samples it has, all epochs counted.
    """
    text = f"{label} ({samples} questions)"
    with click.progressbar(length=samples, label=text, file=sys.stderr) as bar:
        _Bar.current = bar
        try:
            yield
        finally:
            _Bar.current = None
