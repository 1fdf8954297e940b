import unittest
from datetime import datetime, timedelta

from toadline.pulses import animals, merge, parse

START = datetime(2025, 3, 8, 20, 0)


def pulse(second, direction="in", logger="L-11", length=300):
    return (logger, START + timedelta(seconds=second), direction, length)


class PulsesTest(unittest.TestCase):
    def test_parse(self):
        row = {"pulse_id": "P1", "logger": "L-11", "ts": "2025-03-08 20:00:00", "dir": "in", "len_ms": "300"}
        self.assertEqual(parse(row), pulse(0))

    def test_mice(self):
        self.assertEqual(len(animals([pulse(0, length=119), pulse(9, length=120)], 120)), 1)

    def test_two_pulses_one_pass(self):
        self.assertEqual(len(merge([pulse(0), pulse(2)], 3)), 1)

    def test_apart(self):
        self.assertEqual(len(merge([pulse(0), pulse(9)], 3)), 2)

    def test_directions_and_loggers_are_kept_apart(self):
        self.assertEqual(len(merge([pulse(0), pulse(1, "out"), pulse(1, logger="L-12")], 3)), 3)
