from tests.base import Case
from trellis import TrellisError, changes


class ChangesTest(Case):
    def test_windows(self):
        self.assertEqual(changes.require_window(self.settings, "prd-eu2", "2026-03-10T05:30"), "CHG-0419")
        for at, message in (
            ("2026-03-10T06:30", "E-WINDOW"),
            ("2026-03-17T05:10", "E-FREEZE"),
            ("2026-03-31T05:10", "E-WINDOW"),
            (None, "give --at"),
        ):
            with self.subTest(at), self.assertRaisesRegex(TrellisError, message):
                changes.require_window(self.settings, "prd-eu2", at)
