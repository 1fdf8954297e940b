"""Import the target of a name such as ``module:name`` or ``path/file.py@name``."""

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from compression_eval.compressors.errors import description
from compression_eval.errors import DataError, did_you_mean, one_line, shorten
from compression_eval.fixtures.finding_files import invoked_folder, invoked_path

_MAX_PLACE = 200


@dataclass(frozen=True)
class Loaded:
    """A user's target, with a digest of the files that define it."""

    target: Any
    source_digest: str
    """SHA-256 over the named file and the one that defines the target, as 64 digits."""


_loaded: dict[str, Loaded] = {}
"""What each name stood for when it was last loaded."""


def load(name: str) -> Loaded:
    """Import the module or file and return its object of that name.

    Args:
        name: ``module:name`` or ``path/file.py@name``; ``name`` may be dotted.

    Raises:
        DataError: There is no such module, file or name, importing it fails, or it was edited since
            it was imported: its old code would run under the new digest.
    """
    if "@" in name:
        place, _, attribute = name.rpartition("@")
        module = _from_file(name, place)
    else:
        place, _, attribute = name.partition(":")
        if place.endswith(".py") or "/" in place:
            raise _problem(name, "a file is written as file.py@name")
        module = _from_module(name, place)
    target: Any = module
    for part in attribute.split("."):
        if not part.isidentifier():
            raise _problem(name, f"{shorten(attribute)} is not a name in Python")
        if not hasattr(target, part):
            hint = did_you_mean(part, [known for known in dir(target) if known[0] != "_"])
            place = module.__file__ or module.__name__
            raise _problem(name, f"there is no {part!r} in {place}{hint}")
        target = getattr(target, part)
    before, now = _loaded.get(name), Loaded(target, _digest(module, target))
    if before and before.target is target and before.source_digest != now.source_digest:
        raise _problem(
            name,
            "it was edited after this process imported it, and the old code would run: start "
            "Python anew, or name the file as path/file.py@name, which is read anew",
        )
    _loaded[name] = now
    return now


def _problem(name: str, problem: str) -> DataError:
    return DataError(f"compressor: {shorten(name)}: {problem}")


def _from_file(name: str, place: str) -> ModuleType:
    try:
        path = invoked_path(place).absolute()
        is_file = path.is_file()
    except OSError as error:  # such as a name that is too long
        raise _problem(name, f"it cannot be a file: {error.strerror}") from error
    place = one_line(place, _MAX_PLACE)
    if path.suffix != ".py":
        what = f"{place} is not a .py file" if place else "no file stands before the @"
        raise _problem(name, f"{what}; expected path/file.py@name")
    if not is_file:
        hint = did_you_mean(path.name, [file.name for file in path.parent.glob("*.py")])
        raise _problem(name, f"there is no file {place}{hint}")
    # An edited file is another module, so that a long-lived process never runs an old version.
    state = hashlib.sha256(str(path).encode() + b"\0" + path.read_bytes()).hexdigest()
    module_name = f"compression_eval_yours_{state[:16]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise _problem(name, f"{place} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    _importable(path.parent)
    sys.modules[module_name] = module
    try:
        with _importing(name):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _from_module(name: str, place: str) -> ModuleType:
    if not all(part.isidentifier() for part in place.split(".")):
        raise _problem(name, "expected module:name or file.py@name")
    _importable(invoked_folder())
    with _importing(name):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name and (place == error.name or place.startswith(f"{error.name}.")):
                raise _problem(name, f"there is no module {error.name!r}") from error
            raise


def _importable(folder: Path) -> None:
    """Add a folder to the end of the module path."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@contextlib.contextmanager
def _importing(name: str) -> Iterator[None]:
    """Name the user's module in an error raised while it is imported."""
    try:
        yield
    except DataError:
        raise
    except (Exception, SystemExit) as error:
        raise _problem(name, f"importing it failed with {description(error)}") from error


def _digest(module: ModuleType, target: Any) -> str:
    files = {module.__file__}
    thing = target if inspect.isroutine(target) or inspect.isclass(target) else type(target)
    with contextlib.suppress(TypeError):  # built-ins have no source
        files.add(inspect.getsourcefile(inspect.unwrap(thing)))
    whole = hashlib.sha256()
    for file in sorted(Path(name) for name in files if name):
        if file.is_file():
            whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()
