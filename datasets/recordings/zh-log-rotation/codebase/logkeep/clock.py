"""当前时间的唯一来源，便于测试时固定。"""

import os
from datetime import datetime


def now() -> datetime:
    """返回带时区的当前时间。"""
    return datetime.fromisoformat(os.environ["RECORDING_NOW"])
