"""What the tests share: one worker with its own clock and server."""

from infra.clock import ManualClock
from infra.fake_redis import FakeRedisServer
from config.settings import load
from web.app import App, build_app
from web.http import Request, Response

START = 1_772_175_600.0
USER = "wren@example.com"
PASSWORD = "capstan-7815"


class Bench:
    """A worker of the dev environment that a test can poke."""

    def __init__(self, environment: str = "dev", redis_timeout_s: int = 120) -> None:
        self.clock = ManualClock(START)
        self.server = FakeRedisServer(self.clock, timeout_s=redis_timeout_s)
        self.app: App = build_app("w1", load(environment), self.server, self.clock)

    def send(self, method: str, path: str, *, body: str = "", **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.app.handle(Request(method, path, named, body, client="10.8.0.1"))

    def login(self, username: str = USER, password: str = PASSWORD) -> Response:
        body = f'{{"username": "{username}", "password": "{password}"}}'
        return self.send("POST", "/api/auth/login", body=body)


def cookie_of(response: Response) -> str:
    return response.headers["Set-Cookie"].partition(";")[0]
