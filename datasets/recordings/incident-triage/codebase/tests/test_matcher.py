import unittest
from datetime import datetime, timedelta

from tests.support import MORNING, handle, matcher, pickup, result


class MatcherTest(unittest.TestCase):
    def test_result_goes_to_its_pickup(self):
        machine = matcher(pickup())
        self.assertEqual(handle(machine, result())[0].id, "P-1")
        self.assertEqual(machine.register.result_of("P-1"), ("K-1", "neg"))

    def test_second_result_is_a_duplicate(self):
        machine = matcher(pickup())
        handle(machine, result(), result(id="K-2", inhibitor="pos"))
        self.assertEqual(machine.register.result_of("P-1"), ("K-1", "neg"))
        self.assertEqual(machine.log.entries[-1]["event"], "result.duplicate")

    def test_unmatched_is_retried_and_parked(self):
        machine = matcher()
        handle(machine, result())
        at = MORNING
        for _ in range(40):
            at += timedelta(minutes=1)
            for message in machine.bus.due(at):
                machine.handle(at, message)
        self.assertEqual(machine.bus.depth("lab.results.parked"), 1)

    def test_older_than_the_window(self):
        machine = matcher(pickup(at=datetime(2026, 2, 20, 4, 0)))
        self.assertEqual(handle(machine, result()), [None])

    def test_no_number_is_parked_at_once(self):
        machine = matcher()
        handle(machine, result(label="X"))
        self.assertEqual(machine.log.entries[-1]["reason"], "label")
