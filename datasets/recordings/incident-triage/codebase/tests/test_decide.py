import unittest

from tankline.gate.decide import HOLD, REJECT, RELEASE, TIMEOUT, decide
from tankline.intake.register import Register
from tests.support import pickup, result

GATE = {"max_temp_c": 8.0, "release_on_timeout": False, "pending_release_min": 60}


class DecideTest(unittest.TestCase):
    def setUp(self):
        self.register = Register()
        self.one, self.two = pickup(id="P-1"), pickup(id="P-2", bottle="317205")
        for each in (self.one, self.two):
            self.register.add(each)

    def decide(self, held=0, **gate):
        return decide(self.register, [self.one, self.two], held, {**GATE, **gate})

    def test_pending(self):
        self.register.attach(self.one, result())
        self.assertEqual(self.decide(), (HOLD, ["P-2"]))

    def test_all_negative(self):
        self.register.attach(self.one, result())
        self.register.attach(self.two, result(id="K-2"))
        self.assertEqual(self.decide(), (RELEASE, []))

    def test_positive_decides_at_once(self):
        self.register.attach(self.two, result(inhibitor="pos"))
        self.assertEqual(self.decide(), (REJECT, ["P-2"]))

    def test_timeout(self):
        self.assertEqual(self.decide(held=59, release_on_timeout=True)[0], HOLD)
        self.assertEqual(self.decide(held=60, release_on_timeout=True)[0], TIMEOUT)
        self.assertEqual(self.decide(held=600)[0], HOLD)
