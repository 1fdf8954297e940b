"""Secrets to plant, each as its vendor or standard describes it in public."""

import base64
import json
import string
from collections.abc import Callable

from benchmarks.planted_drawing import ALNUM, BASE32, HEX, URLSAFE, Draw, Kind


def _token(name: str, make: Callable[[Draw], str], variable: str) -> Kind:
    """Make a kind whose values can be told by themselves."""

    def draw(source: Draw) -> tuple[str, str, str, str | None]:
        value = make(source)
        return (
            value,
            f"{variable}={value}",
            f'client = Client("{value}")',
            f"https://api.vendor.io/v1/check?{variable.lower()}={value}&page=2",
        )

    return Kind(name, "secret", draw)


def _assigned(name: str, make: Callable[[Draw], str], variable: str) -> Kind:
    """Make a kind that only its name gives away."""

    def draw(source: Draw) -> tuple[str, str, str, str | None]:
        value = make(source)
        return (
            value,
            f"{variable}: {value}",
            f'{variable} = "{value}"',
            f"https://api.vendor.io/v1/check?{variable.lower()}={value}&page=2",
        )

    return Kind(name, "secret", draw)


def secret_kinds() -> list[Kind]:
    """Return every kind of secret."""
    return [*_vendor_kinds(), *_named_kinds(), *_unmarked_secret_kinds()]


def _vendor_kinds() -> list[Kind]:
    """Return secrets that their form tells."""
    return [
        _token("aws access key id", lambda d: "AKIA" + d.of(BASE32, 16), "AWS_ACCESS_KEY_ID"),
        _assigned(
            "aws secret access key", lambda d: d.of(ALNUM + "/+", 40), "AWS_SECRET_ACCESS_KEY"
        ),
        _token("github token", lambda d: "ghp_" + d.of(ALNUM, 36), "GH_TOKEN"),
        _token(
            "github fine-grained token",
            lambda d: f"github_pat_{d.of(ALNUM, 22)}_{d.of(ALNUM, 59)}",
            "GH_TOKEN",
        ),
        _token("gitlab token", lambda d: "glpat-" + d.of(URLSAFE, 20), "CI_JOB_AUTH"),
        _token("slack bot token", _slack_token, "SLACK"),
        Kind("slack webhook", "secret", _slack_webhook),
        _token("stripe key", lambda d: "sk_live_" + d.of(ALNUM, 24), "STRIPE"),
        _token(
            "openai key",
            lambda d: f"sk-proj-{d.of(URLSAFE, 74)}T3BlbkFJ{d.of(URLSAFE, 74)}",
            "OPENAI",
        ),
        _token("anthropic key", lambda d: f"sk-ant-api03-{d.of(URLSAFE, 93)}AA", "ANTHROPIC"),
        _token("google api key", lambda d: "AIza" + d.of(URLSAFE, 35), "MAPS"),
        _token("google client secret", lambda d: "GOCSPX-" + d.of(URLSAFE, 28), "OAUTH"),
        _token("hugging face token", lambda d: "hf_" + d.of(string.ascii_letters, 34), "HF"),
        _token("npm token", lambda d: "npm_" + d.of(ALNUM, 36), "NPM"),
        _token("pypi token", lambda d: "pypi-AgEIcHlwaS5vcmc" + d.of(URLSAFE, 150), "TWINE"),
        _token("sendgrid key", lambda d: f"SG.{d.of(URLSAFE, 22)}.{d.of(URLSAFE, 43)}", "MAIL"),
        _token("twilio api key", lambda d: "SK" + d.of(HEX, 32), "TWILIO"),
        _token("telegram bot token", _telegram_token, "BOT"),
        _token("discord bot token", _discord_token, "DISCORD"),
        _token("json web token", _jwt, "SESSION"),
        _token("digitalocean token", lambda d: "dop_v1_" + d.of(HEX, 64), "DO"),
        _token("docker hub token", lambda d: "dckr_pat_" + d.of(URLSAFE, 27), "DOCKER"),
        _token("databricks token", lambda d: "dapi" + d.of(HEX, 32), "DATABRICKS"),
        _token("shopify token", lambda d: "shpat_" + d.of(HEX, 32), "SHOP"),
    ]


def _named_kinds() -> list[Kind]:
    """Return secrets that their surroundings tell."""
    return [
        _assigned("api key, uuid", _uuid, "SERVICE_API_KEY"),
        _assigned("api key, 32 hex", lambda d: d.of(HEX, 32), "SERVICE_API_KEY"),
        _assigned("password", Draw.password, "db_password"),
        Kind("bearer header", "secret", _bearer),
        Kind("session cookie", "secret", _cookie),
        Kind("private key", "secret", _private_key),
        Kind("azure connection string", "secret", _azure),
        Kind("postgres url", "secret", lambda d: _database(d, "postgresql", 5432)),
        Kind("mongodb url", "secret", lambda d: _database(d, "mongodb+srv", None)),
        Kind("redis url, no user", "secret", _redis),
        Kind("basic auth in a url", "secret", _basic_url),
        Kind("basic auth header", "secret", _basic_header),
        Kind("basic auth header set in a test", "secret", _set_header),
        Kind("auth in a Docker config", "secret", _docker_auth),
        Kind("password on a command line", "secret", _password_flag),
    ]


def _unmarked_secret_kinds() -> list[Kind]:
    """Return secrets that hardly anything marks as such."""
    return [
        Kind("password glued to -p", "secret", _glued_password),
        Kind("password in .netrc", "secret", _netrc),
        Kind("password in .pgpass", "secret", _pgpass),
        Kind("password in prose", "secret", _spoken_password),
    ]


def _slack_token(draw: Draw) -> str:
    return f"xoxb-{draw.of(string.digits, 12)}-{draw.of(string.digits, 13)}-{draw.of(ALNUM, 24)}"


def _slack_webhook(draw: Draw) -> tuple[str, str, str, str | None]:
    secret = draw.of(ALNUM, 24)
    team = "T" + draw.of(string.ascii_uppercase + string.digits, 10)
    hook = "B" + draw.of(string.ascii_uppercase + string.digits, 10)
    url = f"https://hooks.slack.com/services/{team}/{hook}/{secret}"
    return secret, f"posting to {url} failed", f'notify("{url}")', url


def _telegram_token(draw: Draw) -> str:
    return f"{draw.random.randint(10**9, 8 * 10**9)}:AA{draw.of(URLSAFE, 33)}"


def _discord_token(draw: Draw) -> str:
    account = str(draw.random.randint(10**17, 10**18)).encode()
    first = base64.b64encode(account).decode().rstrip("=")
    return f"{first}.{draw.of(URLSAFE, 6)}.{draw.of(URLSAFE, 38)}"


def _jwt(draw: Draw) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": draw.of(string.digits, 9), "iat": 1716239022}]
    coded = [
        base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode()
        for part in parts
    ]
    return ".".join(part.rstrip("=") for part in coded) + "." + draw.of(URLSAFE, 43)


def _uuid(draw: Draw) -> str:
    digits = draw.of(HEX, 32)
    return "-".join(
        (digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:])
    )


def _bearer(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.of(URLSAFE, 40)
    return (
        value,
        f"> Authorization: Bearer {value}",
        f'headers = {{"Authorization": "Bearer {value}"}}',
        f"https://files.vendor.io/get?access_token={value}",
    )


def _cookie(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.of(ALNUM, 32)
    return (
        value,
        f"< Set-Cookie: sessionid={value}; Path=/; HttpOnly",
        f'cookies = {{"sessionid": "{value}"}}',
        None,
    )


def _private_key(draw: Draw) -> tuple[str, str, str, str | None]:
    lines = [draw.of(ALNUM + "+/", 64) for _ in range(6)]
    name = draw.random.choice(["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY"])
    begin, end = f"-----BEGIN {name}-----", f"-----END {name}-----"
    text = "\n".join((begin, *lines, end))
    joined = "\\n".join((begin, *lines, end))
    return lines[3], text, f'KEY = "{joined}"', None


def _azure(draw: Draw) -> tuple[str, str, str, str | None]:
    key = base64.b64encode(draw.random.randbytes(64)).decode()
    text = (
        f"DefaultEndpointsProtocol=https;AccountName={draw.people.user_name()};"
        f"AccountKey={key};EndpointSuffix=core.windows.net"
    )
    return key, text, f'connect("{text}")', None


def _database(draw: Draw, scheme: str, port: int | None) -> tuple[str, str, str, str | None]:
    password = draw.password().rstrip("!")
    host = f"cluster{draw.random.randint(0, 9)}.vendor.io" + (f":{port}" if port else "")
    url = f"{scheme}://{draw.people.user_name()}:{password}@{host}/app"
    return password, f"connecting to {url}", f'engine = create_engine("{url}")', url


def _redis(draw: Draw) -> tuple[str, str, str, str | None]:
    password = draw.of(ALNUM, 24)
    url = f"redis://:{password}@cache.vendor.io:6379/0"
    return password, f"REDIS_URL={url}", f'redis.from_url("{url}")', url


def _basic_url(draw: Draw) -> tuple[str, str, str, str | None]:
    password = draw.of(ALNUM, 14)
    url = f"https://{draw.people.user_name()}:{password}@registry.vendor.io/simple/"
    return password, f"Looking in indexes: {url}", f'INDEX = "{url}"', url


def _basic_header(draw: Draw) -> tuple[str, str, str, str | None]:
    pair = f"{draw.people.user_name()}:{draw.password()}"
    value = base64.b64encode(pair.encode()).decode()
    return value, f"authorization: Basic {value}", f'{{"Authorization": "Basic {value}"}}', None


def _set_header(draw: Draw) -> tuple[str, str, str, str | None]:
    value = base64.b64encode(f"{draw.people.user_name()}:{draw.password()}".encode()).decode()
    line = f'req.Header.Set("Authorization", "Basic {value}")'
    return value, f"    api_test.go:41: {line}", line, None


def _docker_auth(draw: Draw) -> tuple[str, str, str, str | None]:
    value = base64.b64encode(f"{draw.people.user_name()}:{draw.password()}".encode()).decode()
    config = f'{{"auths": {{"registry.vendor.io": {{"auth": "{value}"}}}}}}'
    return value, f"$ cat ~/.docker/config.json: {config}", f"CONFIG = {config}", None


def _password_flag(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.password()
    return (
        value,
        f"mysql --user=app --password={value} shop < dump.sql",
        f'run(["mysqldump", "--password={value}", "shop"])',
        None,
    )


def _glued_password(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.of(ALNUM, 14)
    return value, f"mysql -uroot -p{value} shop", f'run("mysql -uroot -p{value} shop")', None


def _netrc(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.of(ALNUM, 16)
    line = f"machine git.vendor.io login ci password {value}"
    return value, line, f'write("{line}")', None


def _pgpass(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.of(ALNUM, 14)
    line = f"db.vendor.io:5432:shop:app:{value}"
    return value, f"$ cat ~/.pgpass\n{line}", f'LINE = "{line}"', None


def _spoken_password(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.password()
    return value, f"the password is {value} by the way", f"# the password is {value}", None
