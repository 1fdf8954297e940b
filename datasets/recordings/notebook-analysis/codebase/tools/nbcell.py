"""Work on cells of a notebook by id.

``python -m tools.nbcell list NOTEBOOK``
``python -m tools.nbcell show|out|drop NOTEBOOK ID``
``python -m tools.nbcell set NOTEBOOK ID < source``
``python -m tools.nbcell add NOTEBOOK ID --after ID [--markdown] < source``
"""

import argparse
import sys
from pathlib import Path

from tools.notebook import NotebookError, find, lines, load, save, stdout


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["list", "show", "out", "drop", "set", "add"])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("id", nargs="?")
    parser.add_argument("--after")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args(arguments)
    try:
        notebook = load(options.notebook)
        cells = notebook["cells"]
        if options.action == "list":
            for cell in cells:
                head = "".join(cell["source"]).strip().split("\n")[0]
                print(f"{cell['id']:<14} {cell['cell_type']:<8} [{cell.get('execution_count') or ''}] {head[:70]}")
            return 0
        if options.action == "add":
            if any(cell["id"] == options.id for cell in cells):
                raise NotebookError(f"there is a cell {options.id} already")
            kind = "markdown" if options.markdown else "code"
            cell = {"cell_type": kind, "id": options.id, "metadata": {}, "source": lines(sys.stdin.read())}
            if kind == "code":
                cell |= {"execution_count": None, "outputs": []}
            cells.insert(find(notebook, options.after) + 1, cell)
        else:
            place = find(notebook, options.id)
            if options.action == "show":
                print("".join(cells[place]["source"]))
                return 0
            if options.action == "out":
                print(stdout(cells[place]), end="")
                return 0
            if options.action == "drop":
                del cells[place]
            else:
                cells[place]["source"] = lines(sys.stdin.read())
                if cells[place]["cell_type"] == "code":
                    cells[place] |= {"execution_count": None, "outputs": []}
        save(options.notebook, notebook)
    except NotebookError as error:
        print(error)
        return 1
    print(f"{options.action} {options.id}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
