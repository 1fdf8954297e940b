import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from tools import runnb
from tools.notebook import load


def notebook(*sources):
    cells = [{"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": [source], "outputs": [],
              "execution_count": 40 - i} for i, source in enumerate(sources)]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


class RunTest(unittest.TestCase):
    def run_it(self, *sources, check=False):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "n.ipynb"
            path.write_text(json.dumps(notebook(*sources)))
            with contextlib.redirect_stdout(io.StringIO()):
                code = runnb.main([*(["--check"] if check else []), str(path)])
            return code, load(path)["cells"]

    def test_in_order_in_one_namespace(self):
        code, cells = self.run_it("x = 2", "print(x + 1)")
        self.assertEqual(code, 0)
        self.assertEqual([cell["execution_count"] for cell in cells], [1, 2])
        self.assertEqual(cells[1]["outputs"][0]["text"], ["3\n"])

    def test_failure_ends_the_run(self):
        code, cells = self.run_it("print(y)", "print(1)")
        self.assertEqual(code, 1)
        self.assertEqual(cells[0]["outputs"][0]["ename"], "NameError")
        self.assertEqual(cells[1]["outputs"], [])

    def test_check_writes_nothing(self):
        code, cells = self.run_it("print(1)", check=True)
        self.assertEqual((code, cells[0]["outputs"]), (2, []))
