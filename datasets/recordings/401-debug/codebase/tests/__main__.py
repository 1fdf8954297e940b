"""Run the suite: one line per test, then what failed, then the count."""

import logging
import sys
import unittest


class Lines(unittest.TestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        print(f"ok    {test.id()}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f"FAIL  {test.id()}")

    def addError(self, test, err):
        super().addError(test, err)
        print(f"ERROR {test.id()}")


def main() -> int:
    logging.getLogger("ferrygate").addHandler(logging.NullHandler())
    logging.getLogger("ferrygate").propagate = False
    result = Lines()
    names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names) if names else loader.discover("tests", top_level_dir=".")
    suite.run(result)
    for test, trace in result.failures + result.errors:
        print(f"\n--- {test.id()}\n{trace.rstrip()}")
    failed = len(result.failures) + len(result.errors)
    print(f"\n{result.testsRun} tests: {result.testsRun - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
