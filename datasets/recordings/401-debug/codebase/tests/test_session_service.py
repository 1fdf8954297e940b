import unittest

from infra.clock import ManualClock
from infra.fake_redis import ConnectionClosedError, FakeRedisServer
from services.session_service import SessionService, sequence_ids
from tests.support import START


class StubPool:
    """Hands out one connection and remembers that it came back."""

    def __init__(self, connection):
        self.connection = connection
        self.released = []

    def acquire(self):
        return self.connection

    def release(self, connection):
        self.released.append(connection)


class SessionServiceTest(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock(START)
        self.server = FakeRedisServer(self.clock)
        self.pool = StubPool(self.server.connect("test"))
        self.service = SessionService(self.pool, self.clock, ttl_s=600, ids=sequence_ids("t"))

    def test_session_can_be_loaded_until_it_expires(self):
        session = self.service.create("u-1041", "10.8.0.1")
        self.assertEqual(self.service.load(session.id), session)
        self.clock.advance(601)
        self.assertIsNone(self.service.load(session.id))

    def test_touch_prolongs(self):
        session = self.service.create("u-1041", "10.8.0.1")
        self.clock.advance(500)
        self.assertTrue(self.service.touch(session.id))
        self.clock.advance(500)
        self.assertIsNotNone(self.service.load(session.id))

    def test_revoked_session_is_gone(self):
        session = self.service.create("u-1041", "10.8.0.1")
        self.service.revoke(session.id)
        self.assertIsNone(self.service.load(session.id))

    def test_pool_is_not_drained_by_errors(self):
        self.server.inject(ConnectionClosedError("Connection closed by server."))
        self.assertIsNone(self.service.load("5f0c"))
        self.assertEqual(len(self.pool.released), 1)


if __name__ == "__main__":
    unittest.main()
