"""Everything that is exported is found by Inspect under its name, at a low price."""

import json
import subprocess
import sys

from inspect_ai.util import registry_info

import compression_eval._registry as registry
from tests.e2e import command

NAMES = {
    "BubblewrapSandboxEnvironment": ("sandboxenv", "compression_eval/bubblewrap"),
    "compression": ("task", "compression_eval/compression"),
    "compression_scorer": ("scorer", "compression_eval/compression"),
    "embedded": ("modelapi", "compression_eval/embedded"),
    "artifact_files": ("scorer", "compression_eval/artifact_files"),
    "fact_retention": ("scorer", "compression_eval/fact_retention"),
    "grader_calibration": ("task", "compression_eval/grader_calibration"),
    "grader_calibration_scorer": ("scorer", "compression_eval/grader_calibration"),
    "finishing": ("scorer", "compression_eval/finishing"),
    "qualification": ("scorer", "compression_eval/qualification"),
    "refetch": ("scorer", "compression_eval/refetch"),
    "resumption": ("task", "compression_eval/resumption"),
    "six_dimensions": ("scorer", "compression_eval/six_dimensions"),
}

HEAVY = {"openai", "anthropic", "datasets", "pandas", "vl_convert", "bm25s", "numpy", "tiktoken"}
HEAVY |= {"bpe_openai", "fsspec", "pyarrow", "torch", "jieba"}


def test_every_export_has_its_name() -> None:
    assert set(NAMES) == set(registry.__all__)
    for export, (kind, name) in NAMES.items():
        info = registry_info(getattr(registry, export))
        assert (info.type, info.name) == (kind, name)


def imported_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has after a statement."""
    code = f"{statement}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=command.ROOT
    )
    return {name.partition(".")[0] for name in json.loads(result.stdout)}


def test_the_registry_imports_nothing_heavy() -> None:
    base = imported_by("import inspect_ai, inspect_ai.viewer, inspect_ai.hooks")
    ours = imported_by("import compression_eval._registry")
    assert not (ours - base) & HEAVY
