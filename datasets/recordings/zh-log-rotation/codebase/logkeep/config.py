"""读取 conf/logkeep.ini。"""

import configparser
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Channel:
    name: str
    folder: Path
    max_kib: int
    # 0 表示不启用。字段先占位，目前没有代码用到。
    compress_after_hours: int = 0
    delete_after_hours: int = 0


def load(path: Path) -> list[Channel]:
    parser = configparser.ConfigParser()
    with path.open(encoding="utf-8") as file:
        parser.read_file(file)
    channels = []
    for section in parser.sections():
        values = parser[section]
        channels.append(
            Channel(
                name=section,
                folder=Path(values["folder"]),
                max_kib=values.getint("max_kib"),
                compress_after_hours=values.getint("compress_after_hours", 0),
                delete_after_hours=values.getint("delete_after_hours", 0),
            )
        )
    return channels
