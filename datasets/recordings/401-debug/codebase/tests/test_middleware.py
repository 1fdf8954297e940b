import unittest

from tests.support import Bench


class MiddlewareTest(unittest.TestCase):
    def test_trusted_origin_passes_preflight(self):
        response = Bench().send(
            "OPTIONS", "/api/auth/login", origin="http://localhost:5173"
        )
        self.assertEqual(response.status, 204)
        self.assertEqual(response.headers["Access-Control-Max-Age"], "600")

    def test_forty_first_request_in_a_window_is_limited(self):
        bench = Bench()
        answers = [bench.send("POST", "/api/auth/logout").status for _ in range(41)]
        self.assertEqual(answers[-2:], [204, 429])

    def test_request_id_is_repeated(self):
        response = Bench().send("GET", "/healthz", x_request_id="trace-7f31aa")
        self.assertEqual(response.headers["X-Request-Id"], "trace-7f31aa")


if __name__ == "__main__":
    unittest.main()
