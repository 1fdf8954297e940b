"""How far a sweep has come, on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from inspect_ai.hooks import Hooks, SampleEnd, hooks


class _Bar:
    """The bar of the sweep that is under way; None at other times."""

    current: Any = None


@hooks(name="compression_eval_sweep", description="Shows how far a sweep has come.")
class _ProgressHooks(Hooks):
    """Counts the samples of the sweep under way."""

    def enabled(self) -> bool:
        """Be silent in every run that is no sweep."""
        return _Bar.current is not None

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Count a sample that went through; one with an error is tried again."""
        if _Bar.current is not None and data.sample.error is None:
            _Bar.current.update(1)


@contextmanager
def progress(label: str, samples: int, done: int) -> Iterator[None]:
    """Show a bar while a sweep is under way; where there is no terminal, only its label.

    Args:
        label: Names the sweep.
        samples: How many samples it has, all epochs counted.
        done: How many of them earlier attempts have done.
    """
    with click.progressbar(length=samples, label=label, file=sys.stderr) as bar:
        bar.update(done)
        _Bar.current = bar
        try:
            yield
        finally:
            _Bar.current = None
