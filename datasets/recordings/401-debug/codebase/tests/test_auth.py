import unittest
from unittest.mock import MagicMock

from infra.fake_redis import ConnectionClosedError
from services.session_service import SessionService, sequence_ids
from tests.support import PASSWORD, USER, Bench, cookie_of


class LoginTest(unittest.TestCase):
    def setUp(self):
        self.bench = Bench()

    def test_good_credentials_give_token_and_session(self):
        response = self.bench.login()
        self.assertEqual(response.status, 200)
        claims = self.bench.app.signer.verify(response.data()["token"], self.bench.clock.now())
        self.assertEqual(claims.sub, response.data()["user"]["id"])
        me = self.bench.send("GET", "/api/session/me", cookie=cookie_of(response))
        self.assertEqual(me.data()["id"], claims.sub)

    def test_wrong_password_is_refused(self):
        response = self.bench.login(password="gangway-0000")
        self.assertEqual((response.status, response.data()["code"]), (401, "AUTH-1100"))

    def test_unknown_user_looks_like_wrong_password(self):
        known = self.bench.login(password="gangway-0000")
        unknown = self.bench.login(username="nobody@example.com")
        self.assertEqual((known.status, known.body), (unknown.status, unknown.body))

    def test_account_locks_after_six_wrong_passwords(self):
        for _ in range(6):
            self.bench.login(password="gangway-0000")
        self.assertEqual(self.bench.login(USER, PASSWORD).status, 401)

    def test_store_down_issues_no_token(self):
        connection = MagicMock(id=1)
        connection.execute.side_effect = [ConnectionClosedError("gone")]
        pool = MagicMock()
        pool.acquire.return_value = connection
        bench = Bench()
        broken = SessionService(pool, bench.clock, ttl_s=60, ids=sequence_ids("t"))
        bench.app.dispatcher._routes[("POST", "/api/auth/login")].__self__._sessions = broken
        response = bench.login()
        self.assertEqual(response.status, 401)
        self.assertNotIn("token", response.data())


if __name__ == "__main__":
    unittest.main()
