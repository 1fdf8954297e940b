import tempfile
import unittest
from datetime import UTC, datetime
from pathlib import Path

from sched import validate
from sched.model import Settings
from tests.test_times import job

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
PROMPT = "Since {{since}}, at most {{max_items}} items.\n\n## Sources\n- a\n- b\n"


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "prompts").mkdir()
        (self.root / "prompts" / "x.md").write_text(PROMPT)
        self.settings = Settings(
            {
                "horizon_weeks": 2,
                "runtime_min": 15,
                "gap_min": 20,
                "cost": {"weekly_cap_eur": 0.0, "words_per_item": 60},
                "tiers": {"lean": {"per_source": 0.01, "per_100_words": 0.01}},
            },
            {"room-watch": {"kind": "room"}, "late-mail": {"kind": "mail", "hold_until": "07:30"}},
            [{"name": "w", "day": "wed", "start": "04:30", "end": "05:15"}],
        )

    def codes(self, *jobs, **options):
        found = validate.check(self.root, list(jobs), self.settings, NOW, **options)
        return [problem[:4] for problem in found]

    def test_a_good_job(self):
        self.assertEqual(self.codes(job()), [])

    def test_reserved_window(self):
        self.assertEqual(self.codes(job(days=["wed"], at="05:30")), ["E207"])
        self.assertEqual(self.codes(job(days=["wed"], at="05:15")), [])
        self.assertEqual(self.codes(job(days=["wed"], at="06:15")), [])

    def test_reserved_window_after_the_clock_change(self):
        late = job(days=["wed"], at="06:40")
        self.assertEqual(self.codes(late), [])
        self.assertEqual(self.codes(late, weeks=6), ["E207"])

    def test_gap(self):
        self.assertEqual(self.codes(job(), job(id="y", at="06:45")), ["E208"])

    def test_cap_leaves_paused_jobs_out(self):
        self.settings.defaults["cost"]["weekly_cap_eur"] = 0.06
        pair = job(), job(id="y", at="09:00", state="paused")
        self.assertEqual(self.codes(*pair), [])
        self.assertEqual(self.codes(*pair, include_paused=True), ["E301"])

    def test_placeholder_of_the_other_limit(self):
        self.assertEqual(self.codes(job(max_items=None, max_words=300)), ["E131", "E133"])


if __name__ == "__main__":
    unittest.main()
