"""Compare the reports with what billing signed off: ``python -m tools.golden --night DAY [--env ENV]``."""

import argparse
import hashlib
import json
import sys

from sluicework.config import load
from sluicework.export import HEADS
from sluicework.files import ROOT
from sluicework.pipeline import run

parser = argparse.ArgumentParser()
parser.add_argument("--night", required=True)
parser.add_argument("--env", default="prod")
options = parser.parse_args()
run(load(options.env), options.night, f"out/{options.night}")
golden = json.loads((ROOT / "data" / "golden" / f"{options.night}.json").read_text())
wrong = 0
for name in HEADS:
    text = (ROOT / "out" / options.night / name).read_bytes()
    same = hashlib.sha256(text).hexdigest()[:16] == golden[name]["sha256"]
    wrong += not same
    print(f"{'same' if same else 'DIFFERENT':9} {name}: {len(text.splitlines())} lines, signed off {golden[name]['lines']}")
sys.exit(1 if wrong else 0)
