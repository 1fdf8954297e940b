#!/bin/sh
# Started by the bench's own scheduler. -W error: a warning on the bench has cost us a day in 2024.
cd "$(dirname "$0")/../.." && PYTHONPATH=. exec python -W error contrib/nordkai/bench.py contrib/nordkai/delivery.csv
