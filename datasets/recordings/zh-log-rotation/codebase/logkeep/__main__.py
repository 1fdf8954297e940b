"""命令行入口：python -m logkeep rotate"""

import argparse
import sys
from pathlib import Path

from . import clock, config, naming


def rotate(channels: list[config.Channel]) -> int:
    for channel in channels:
        current = channel.folder / f"{channel.name}.log"
        if not current.exists() or current.stat().st_size < channel.max_kib * 1024:
            continue
        target = naming.rotated_path(current, clock.now())
        current.rename(target)
        current.touch()
        print(f"ROTATED {target}")
    return 0


COMMANDS = {"rotate": rotate}


def main() -> int:
    parser = argparse.ArgumentParser(prog="logkeep")
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--conf", type=Path, default=Path("conf/logkeep.ini"))
    arguments = parser.parse_args()
    return COMMANDS[arguments.command](config.load(arguments.conf))


if __name__ == "__main__":
    sys.exit(main())
