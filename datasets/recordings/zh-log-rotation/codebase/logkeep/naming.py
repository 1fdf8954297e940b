"""切割后文件的命名。文件名里的时间一律是北京时间。"""

from datetime import datetime, timedelta, timezone
from pathlib import Path

BEIJING = timezone(timedelta(hours=8))


def rotated_path(current: Path, when: datetime) -> Path:
    """pay.log -> pay.20260302T1700.log；同一分钟内再切一次就加 -2、-3。"""
    stamp = when.astimezone(BEIJING).strftime("%Y%m%dT%H%M")
    target = current.with_name(f"{current.stem}.{stamp}.log")
    serial = 2
    while target.exists():
        target = current.with_name(f"{current.stem}.{stamp}-{serial}.log")
        serial += 1
    return target
