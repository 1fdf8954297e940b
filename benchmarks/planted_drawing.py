"""What a planted value is, and the source of randomness that it is drawn from."""

import random
import string
from collections.abc import Callable
from dataclasses import dataclass

from faker import Faker

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"


@dataclass(frozen=True)
class Plant:
    """One planted value."""

    kind: str
    hidden: str
    """What must not be found afterwards."""
    text: str
    """How it is in a log, a listing or a message."""
    code: str
    """How it is in source code."""
    url: str | None
    """A URL that contains it; None where the kind does not go into one."""


@dataclass(frozen=True)
class Kind:
    """A kind of value, and how to draw one."""

    name: str
    group: str
    draw: Callable[["Draw"], tuple[str, str, str, str | None]]
    """Returns hidden, text, code, url."""


class Draw:
    """A source of random values with a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.people = Faker("en_US")
        self.people.seed_instance(seed)
        self.chinese = Faker("zh_CN")
        self.chinese.seed_instance(seed)
        self.japanese = Faker("ja_JP")
        self.japanese.seed_instance(seed)

    def of(self, alphabet: str, length: int) -> str:
        """Return random characters."""
        return "".join(self.random.choices(alphabet, k=length))

    def password(self) -> str:
        """Return a password as a password manager would make it, without URL delimiters."""
        return self.people.password(length=self.random.randint(10, 18), special_chars=False) + "!"

    def company_host(self) -> str:
        """Return a host inside a company's network."""
        service = self.random.choice(["db", "redis", "ci", "build", "vault", "grafana"])
        zone = self.random.choice(["prod", "stage", "eu1", "ops"])
        domain = self.random.choice(["corp", "internal", "lan", "intranet"])
        return f"{service}{self.random.randint(1, 40):02d}.{zone}.{domain}"
