"""Run a notebook: ``python -m tools.runnb [--check] [--show ID,…] NOTEBOOK``.

Code cells run in their order in one namespace, from an empty one. What they print is written
back; execution counts are 1, 2, 3, … A cell that fails ends the run (exit 1), and the cells after
it have no output. With --check nothing is written, and other outputs than the stored ones are
an error (exit 2).
"""

import argparse
import contextlib
import copy
import io
import sys
from pathlib import Path

from tools.notebook import NotebookError, lines, load, save, stdout


def run(notebook: dict) -> str | None:
    """Run all cells and put their outputs in; return the id of the cell that failed, if one did."""
    namespace: dict = {"__name__": "__notebook__"}
    count = 0
    failed = None
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        cell["outputs"] = []
        cell["execution_count"] = None
        if failed:
            continue
        count += 1
        cell["execution_count"] = count
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
        except Exception as error:
            failed = cell["id"]
            problem = {
                "output_type": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": [],
            }
        if printed.getvalue():
            cell["outputs"].append(
                {"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())}
            )
        if failed:
            cell["outputs"].append(problem)
    return failed


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--show", default="", help="ids of cells whose output is printed, or all")
    parser.add_argument("notebook", type=Path)
    options = parser.parse_args(arguments)
    try:
        notebook = load(options.notebook)
    except NotebookError as error:
        print(error)
        return 1
    before = copy.deepcopy(notebook)
    failed = run(notebook)
    wanted = options.show.split(",")
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and (cell["id"] in wanted or wanted == ["all"]):
            print(f"[{cell['execution_count']}] {cell['id']}")
            print(stdout(cell), end="")
    if not options.check:
        save(options.notebook, notebook)
    if failed:
        (cell,) = [each for each in notebook["cells"] if each["id"] == failed]
        error = cell["outputs"][-1]
        print(f"{options.notebook}: cell {failed} failed: {error['ename']}: {error['evalue']}")
        return 1
    done = sum(cell["cell_type"] == "code" for cell in notebook["cells"])
    if options.check:
        other = [
            new["id"] for new, old in zip(notebook["cells"], before["cells"])
            if new["cell_type"] == "code" and new["outputs"] != old["outputs"]
        ]
        if other:
            print(f"{options.notebook}: other output in {', '.join(other)}")
            return 2
    print(f"{options.notebook}: {done} cells, {'outputs as stored' if options.check else 'outputs written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
