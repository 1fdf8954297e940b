"""Print the effective settings of one or more environments, without signing keys.

    python -m scripts.dump_config prod staging
"""

import dataclasses
import sys
from typing import Any

from config import redis, settings


def flatten(prefix: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        merged: dict[str, str] = {}
        for key, item in value.items():
            merged.update(flatten(f"{prefix}.{key}" if prefix else str(key), item))
        return merged
    if isinstance(value, (list, tuple)):
        return {prefix: ", ".join(str(item) for item in value) or "(empty)"}
    return {prefix: str(value)}


def effective(environment: str) -> dict[str, str]:
    data = dataclasses.asdict(settings.load(environment))
    data["signing_keys"] = sorted(data["signing_keys"])
    data["redis_pool"] = redis.describe(environment)
    return flatten("", data)


def main() -> None:
    names = sys.argv[1:] or ["prod"]
    dumps = [effective(name) for name in names]
    keys = sorted({key for dump in dumps for key in dump})
    width = max(len(key) for key in keys)
    print(f"{'':{width}s}  " + " | ".join(names))
    for key in keys:
        values = [dump.get(key, "-") for dump in dumps]
        mark = "*" if len(set(values)) > 1 else " "
        print(f"{key:{width}s} {mark}" + " | ".join(values))


if __name__ == "__main__":
    main()
