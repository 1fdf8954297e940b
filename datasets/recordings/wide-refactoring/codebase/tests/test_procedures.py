import io
import unittest
from contextlib import redirect_stderr

from gaugeyard import plugins
from gaugeyard.common import CalError, CalibrationError
from tests.support import instrument, reading


class FewReadingsTest(unittest.TestCase):
    def test_each_kind(self):
        raised = {
            "pressure": CalibrationError,
            "mass": CalibrationError,
            "temperature": CalError,
            "humidity": CalError,
            "caliper": ValueError,
            "torque": SystemExit,
        }
        for kind, error in raised.items():
            with self.subTest(kind), redirect_stderr(io.StringIO()), self.assertRaises(error):
                plugins.procedure(kind)(instrument(kind), [reading("20", "20", "21")])


class LimitTest(unittest.TestCase):
    def test_pressure_includes_the_limit(self):
        lines = plugins.procedure("pressure")(instrument(), [reading("2", "2.25", "2.25", "2.25")])
        self.assertTrue(lines[0][3])

    def test_mass_does_not(self):
        given = instrument("mass", places=4)
        lines = plugins.procedure("mass")(given, [reading("2", "2.25", "2.25", "2.25", unit="g")])
        self.assertFalse(lines[0][3])

    def test_load_of_zero(self):
        with self.assertRaises(CalibrationError) as caught:
            plugins.procedure("mass")(instrument("mass"), [reading("0", "0", "0", "0")])
        self.assertEqual(caught.exception.code, "C22")

    def test_unit(self):
        with self.assertRaises(CalibrationError) as caught:
            plugins.procedure("pressure")(instrument(), [reading("2", "2", "2", "2", unit="psi")])
        self.assertEqual(caught.exception.code, "C11")
