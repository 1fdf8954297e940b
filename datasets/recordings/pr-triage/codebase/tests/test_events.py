import unittest

from millrace.tarn.events import UnsupportedEnvelope, parse_event

V1 = {
    "envelope": 1,
    "type": "message.posted",
    "delivery_id": "d-71c0",
    "shard": "eu-1",
    "data": {"room": "r8841207", "message": "m51", "author": "u12", "text": "hi"},
}


class ParseEvent(unittest.TestCase):
    def test_version_1(self):
        event = parse_event(V1)
        self.assertEqual((event.room, event.message_id), ("r8841207", "m51"))

    def test_missing_version_is_version_1(self):
        envelope = {key: value for key, value in V1.items() if key != "envelope"}
        self.assertEqual(parse_event(envelope), parse_event(V1))

    def test_unknown_version(self):
        with self.assertRaises(UnsupportedEnvelope):
            parse_event({**V1, "envelope": 3})


if __name__ == "__main__":
    unittest.main()
