"""The package from Python: what the documentation shows runs as it stands."""

import ast
import builtins
import re
from pathlib import Path
from typing import Any

import pytest

import compression_eval
from tests.e2e import command

DOCS = sorted((command.ROOT / "docs").rglob("*.md"))
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_quickstart_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (command.ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    scope: dict[str, Any] = {}
    for snippet in PYTHON.findall(text):
        exec(snippet, scope)  # noqa: S102
    assert scope["log"].status == "success"
    assert len(scope["frame"]) == len(scope["log"].samples)


def test_everything_public_is_there() -> None:
    assert dir(compression_eval) == sorted(compression_eval.__all__)
    for name in compression_eval.__all__:
        assert getattr(compression_eval, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = compression_eval.absent


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_no_snippet_uses_a_name_that_it_does_not_define(page: Path) -> None:
    defined = set(dir(builtins))
    for snippet in PYTHON.findall(page.read_text(encoding="utf-8")):
        tree = list(ast.walk(ast.parse(snippet)))
        names = [node for node in tree if isinstance(node, ast.Name)]
        defined |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        defined |= {node.arg for node in tree if isinstance(node, ast.arg)}
        for node in tree:
            if isinstance(node, ast.Import | ast.ImportFrom):
                defined |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                defined.add(node.name)
        assert {node.id for node in names if isinstance(node.ctx, ast.Load)} <= defined
