import unittest

from millrace.router import Router
from millrace.tarn.client import TarnApiError, TarnClient
from tests.fake_tarn import FakeTarn
from tests.test_events import V1


def echo(history, text):
    return f"echo: {text}"


class Routing(unittest.TestCase):
    def setUp(self):
        self.tarn = FakeTarn()
        self.tarn.add_room("eu-1", "r8841207", "standup")
        self.router = Router(TarnClient(self.tarn, "test"), echo)

    def test_answers(self):
        self.router.handle(V1)
        self.assertEqual(self.tarn.said("eu-1", "r8841207"), ["echo: hi"])

    def test_same_message_is_answered_once(self):
        self.router.handle(V1)
        self.router.handle({**V1, "delivery_id": "d-71c1"})
        self.assertEqual(self.tarn.said("eu-1", "r8841207"), ["echo: hi"])

    def test_other_kinds_are_ignored(self):
        self.assertIsNone(self.router.handle({**V1, "type": "member.joined"}))

    def test_unknown_room(self):
        data = {**V1["data"], "room": "r0000001"}
        with self.assertRaises(TarnApiError) as caught:
            self.router.handle({**V1, "data": data})
        self.assertEqual(caught.exception.code, "TRN-4041")


if __name__ == "__main__":
    unittest.main()
