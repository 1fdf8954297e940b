"""The order of the rooms: which may import which, down to imports within functions."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
PACKAGE = "compression_eval"

ROOMS = {
    "_version": "The number alone; whoever writes a file or a log names it.",
    "errors": "What every room says of a wrong file or argument, so it can need none of them.",
    "text": "Matching, Markdown and tables work on strings and know of nothing they stand in.",
    "inspect_models": "Compressing, asking and grading all look at a model's reply in one way.",
    "terminal": "Rooms with commands of their own share these manners and come after them.",
    "engine": "Spreads any work over a cluster, so it knows of none.",
    "fixtures": "The conversation and the bank are the data that everything else is about.",
    "conversations": "What agents left on disk becomes fixtures, which cannot know from where.",
    "facts": "Looks for a bank's facts in texts.",
    "file_ops": "Reads what tool calls of a conversation did to files.",
    "postmortem": "Measures recorded sessions by their calls; no task is run.",
    "compressors": "Shorten a conversation, keep watch over facts, and list its files.",
    "record": "What a sample leaves for its scorers names the outcome of its compression.",
    "sharing": "Keeps the states that compressors give, for many samples and for a retry.",
    "plans": "What is to be done for a sample: planned by the dataset, carried out by the solver.",
    "fetching": "Shows a model what lies before the cut again; it must not see what is graded.",
    "solver": "Compresses and asks; it must not see how answers will be graded.",
    "grading": "Reads the record that the solver wrote, and asks judges.",
    "embedded": "The embedded model grades by the rules of grading; others know only its name.",
    "versioning": "Sums up whatever a result depends on.",
    "run_hooks": "Looks at the scores of a run when it ends, and clears what was shared in it.",
    "viewer": "How the log viewer shows a sample.",
    "arguments": "What the task may be given, checked against all that it is about.",
    "dataset": "Makes samples and plans out of arguments, with the digest of each rubric.",
    "task": "Puts dataset, solver and scorers together.",
    "resumption": "A second task, which goes on with the work from a state.",
    "analysis": "Reads finished logs, by any version of the task, so it never asks the task.",
    "calibration": "A third task, which grades the grader.",
    "sweeping": "Runs many tasks, and says before and after what they cost and found.",
    "authoring": "Makes probes and tries them by runs, whose progress is shown as that of a sweep.",
    "quickstart": "One command that imports, writes probes, sweeps and reports.",
    "_registry": "Names for Inspect whatever it may look up.",
    "cli": "Names all commands and imports the one that is called.",
    "": "The package gives users names of any room, when they are asked for.",
}
"""Every room, with why it stands where it does; each imports only those before it.

There is no list of exceptions: where an import is refused, what it wants belongs to an earlier
room, or the room itself to a later place in this table.
"""


@cache
def _modules() -> dict[str, Path]:
    """Return all modules of the package by name."""
    paths = sorted((REPOSITORY / PACKAGE).rglob("*.py"))
    return {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }


def _imports(path: Path, *, types: bool = True) -> Iterator[tuple[str, int]]:
    """Yield the modules of the package that a file imports anywhere in it, with their lines.

    Args:
        path: The file.
        types: Whether imports for the type checker alone count too.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checked = [node for node in tree.body if _is_for_types(node) and not types]
    passed = {id(inner) for node in checked for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in passed or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        named = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: write imports in full"
            whole = [f"{node.module}.{name}" for name in named]
            named = [name if name in _modules() else str(node.module) for name in whole]
        for name in dict.fromkeys(named):
            if name.partition(".")[0] == PACKAGE:
                assert name in _modules(), f"{path}:{node.lineno}: there is no {name}"
                yield name, node.lineno


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _room(module: str) -> str:
    return [*module.split("."), ""][1]


def test_a_room_imports_only_those_before_it() -> None:
    order = list(ROOMS)
    upward = [
        f"{path.relative_to(REPOSITORY)}:{line}: {_room(module)} comes before {imported}"
        for module, path in _modules().items()
        if _room(module)  # the package itself imports nothing when it is imported
        for imported, line in _imports(path)
        if order.index(_room(imported)) > order.index(_room(module))
    ]
    assert not upward, "\n".join(upward)


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Within a room too; there, two modules may only name each other's types."""
    lines = {module: dict(_imports(path, types=False)) for module, path in _modules().items()}
    try:
        TopologicalSorter(lines).prepare()
    except CycleError as error:
        circle = error.args[1]
        said = [
            f"{_modules()[after].relative_to(REPOSITORY)}:{lines[after][before]}: imports {before}"
            for before, after in pairwise(circle)
        ]
        raise AssertionError("\n".join(said)) from None


def test_the_table_names_what_there_is_and_contributors_read_the_same_order() -> None:
    assert set(ROOMS) == {_room(module) for module in _modules()}
    table = [
        line.split("|")[1]
        for line in (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{PACKAGE}/")
    ]
    told = re.findall(rf"`{PACKAGE}/(\w+)(?:/|\.py)`", "".join(table))
    assert told == [room for room in ROOMS if room not in ("", "_version", "_registry")]
