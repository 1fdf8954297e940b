"""``python -m sluicework --env ENV --night DAY``."""

import argparse
import logging

from sluicework.config import load
from sluicework.pipeline import run

parser = argparse.ArgumentParser(prog="sluicework")
parser.add_argument("--env", required=True)
parser.add_argument("--night", required=True)
options = parser.parse_args()
settings = load(options.env)
logging.basicConfig(level=settings.log_level, format="%(name)s %(message)s")
result = run(settings, options.night, f"out/{options.night}")
print(f"read {result.read}, kept {result.kept}, thrown out {result.thrown_out}, unknown meters {result.unknown}")
