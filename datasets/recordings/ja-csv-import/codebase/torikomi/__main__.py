"""python -m torikomi data/xxx.csv"""

import sys
from pathlib import Path

from .importer import load_settings, run


def main() -> int:
    path = Path(sys.argv[1])
    result = run(path, load_settings(Path("conf/settings.json")))
    print(f"取込完了 {path.name}: {len(result.received)}件 合計{result.total}個")
    return 0


if __name__ == "__main__":
    sys.exit(main())
