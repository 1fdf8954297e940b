import unittest
from datetime import UTC, datetime

from sched import zones
from sched.model import Job
from sched.nextrun import runs


def job(**values):
    basis = {
        "id": "x",
        "title": "x",
        "days": ["mon"],
        "at": "06:30",
        "prompt": "prompts/x.md",
        "channel": "room-watch",
        "tier": "lean",
        "max_items": 5,
    }
    return Job(**{**basis, **values})


class Offsets(unittest.TestCase):
    def test_winter_and_summer(self):
        for month, minutes in ((1, 60), (7, 120), (12, 60)):
            moment = datetime(2026, month, 15, tzinfo=UTC)
            self.assertEqual(zones.offset_minutes("Europe/Vienna", moment), minutes)

    def test_the_hour_of_the_change(self):
        before = datetime(2026, 3, 29, 0, 59, tzinfo=UTC)
        after = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
        self.assertEqual(zones.to_local("Europe/Vienna", before).hour, 1)
        self.assertEqual(zones.to_local("Europe/Vienna", after).hour, 3)

    def test_there_and_back(self):
        local = datetime(2026, 3, 30, 6, 30)
        self.assertEqual(zones.to_local("Europe/Vienna", zones.to_utc("Europe/Vienna", local)), local)


class Runs(unittest.TestCase):
    NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)

    def test_a_time_gone_by_today_waits_a_week(self):
        self.assertEqual(runs(job(), self.NOW, 1), [datetime(2026, 3, 9, 5, 30, tzinfo=UTC)])

    def test_wall_clock_time_is_kept_over_the_change(self):
        hours = [start.hour for start in runs(job(), self.NOW, 5)]
        self.assertEqual(hours, [5, 5, 5, 4, 4])

    def test_several_days(self):
        self.assertEqual(len(runs(job(days=["mon", "wed", "fri"]), self.NOW, 2)), 6)


if __name__ == "__main__":
    unittest.main()
