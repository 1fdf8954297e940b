from seedhold import migrate
from tests.support import BankTest


class MigrateTest(BankTest):
    def test_up_twice(self):
        self.assertEqual(migrate.up(self.connection), [])

    def test_numbers_rise_by_one(self):
        numbers = [number for number, _ in migrate.files()]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
