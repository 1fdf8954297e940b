"""Personal data to plant: accounts, names, addresses and numbers, none of them anybody's."""

import string
from collections.abc import Callable

from benchmarks.planted_drawing import Draw, Kind


def _personal(name: str, draw: Callable[[Draw], tuple[str, str, str, str | None]]) -> Kind:
    return Kind(name, "personal", draw)


def personal_kinds() -> list[Kind]:
    """Return every kind of personal data."""
    return [
        _personal("home folder, linux", lambda d: _home(d, "/home/{}/projects/api/main.py")),
        _personal("home folder, macos", lambda d: _home(d, "/Users/{}/Library/Caches/pip")),
        _personal("home folder, windows", _windows),
        _personal("encoded project folder", _encoded),
        _personal("owner in ls -l", _listing),
        _personal("shell prompt", _prompt),
        _personal("e-mail", _email),
        _personal("git author name", _author),
        _personal("co-author name", _co_author),
        _personal("handle after cc", _handle),
        _personal("login and name in an API's JSON", _api),
        _personal("createdBy, assignee", _assignee),
        _personal("name in a git config", _git_config),
        _personal("author in gh pr view", _pr_view),
        _personal("handle in a branch name", _branch),
        _personal("private host", _host),
        _personal("mdns host", _mdns),
        _personal("public ipv4", lambda d: _address(d.people.ipv4_public())),
        _personal("private ipv4", lambda d: _address(d.people.ipv4_private())),
        _personal("ipv6", lambda d: _ipv6(d.people.ipv6())),
        _personal("mac address", _mac),
        _personal("phone, us", _us_phone),
        _personal("phone, international", _international_phone),
        _personal("phone, japan", lambda d: _phone(d.japanese.numerify("090-%###-%###"))),
        _personal("phone, china", lambda d: _phone(d.chinese.phone_number())),
        _personal("slack mention", _slack_mention),
        _personal("discord mention", _discord_mention),
        *_unmarked_personal_kinds(),
    ]


def _unmarked_personal_kinds() -> list[Kind]:
    """Return personal data that hardly anything marks as such."""
    return [
        _personal("bare handle", _bare_handle),
        _personal("first name in prose", _first_name),
        _personal("full name in prose", _full_name),
        _personal("owner of a git remote", _remote),
        _personal("company domain", _company),
        _personal("street address", _street),
        _personal("login at a bare host", _bare_host),
    ]


def _account(draw: Draw) -> str:
    return draw.people.user_name()


def _home(draw: Draw, path: str) -> tuple[str, str, str, str | None]:
    name = _account(draw)
    full = path.format(name)
    return name, f"error: cannot open {full}", f'open("{full}")', f"file://{full}"


def _windows(draw: Draw) -> tuple[str, str, str, str | None]:
    name = _account(draw)
    full = f"C:\\Users\\{name}\\source\\repos\\api\\Program.cs"
    url = f"file:///C:/Users/{name}/source/repos/api/Program.cs"
    return name, f"{full}(12,5): error CS1002", f'var p = @"{full}";', url


def _encoded(draw: Draw) -> tuple[str, str, str, str | None]:
    name = _account(draw)
    full = f"/data/.claude/projects/-Users-{name}-work-api/9f.jsonl"
    return name, f"transcript: {full}", f'LOG = "{full}"', None


def _listing(draw: Draw) -> tuple[str, str, str, str | None]:
    name = _account(draw)
    line = f"-rw-r--r--  1 {name}  staff  {draw.random.randint(10, 9999)} Mar  3 10:12 notes.md"
    return name, line, f"# {line}", None


def _prompt(draw: Draw) -> tuple[str, str, str, str | None]:
    name = _account(draw)
    line = f"{name}@build-{draw.random.randint(1, 99)}:~/projects/api$ make test"
    return name, line, f"# {line}", None


def _email(draw: Draw) -> tuple[str, str, str, str | None]:
    value = f"{_account(draw)}@{draw.people.domain_word()}-{draw.random.randint(10, 99)}.com"
    return value, f"ask {value} first", f'OWNER = "{value}"', f"https://x.io/invite?to={value}"


def _author(draw: Draw) -> tuple[str, str, str, str | None]:
    name = draw.random.choice((draw.people, draw.chinese, draw.japanese)).name()
    line = f"Author: {name} <{_account(draw)}@vendor-{draw.random.randint(10, 99)}.com>"
    return name, f"commit 8d0f\n{line}\nDate:   Mon Mar 3\n\n    As {name} said", f"# {line}", None


def _co_author(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{draw.people.first_name()} {draw.people.last_name()}"
    line = f"Co-authored-by: {name} <{draw.of(string.digits, 7)}+x@users.noreply.github.com>"
    return name, line, f'MESSAGE = """Fix\n\n{line}\n"""', None


def _handle(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{_account(draw)}-{draw.random.randint(10, 99)}"
    return name, f"cc @{name} for review", f"# reviewed by @{name}", None


def _api(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{draw.people.first_name()} {draw.people.last_name()}"
    account = f'{{"login": "{_account(draw)}", "id": {draw.of("123456789", 6)}, "name": "{name}"}}'
    return name, f"response: {account}", f"AUTHOR = {account}", None


def _assignee(draw: Draw) -> tuple[str, str, str, str | None]:
    name = _account(draw)
    key = draw.random.choice(["createdBy", "assignee", "updated_by"])
    return name, f'issue: {{"{key}": "{name}"}}', f'issue = Issue({key}="{name}")', None


def _git_config(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{draw.people.first_name()} {draw.people.last_name()}"
    mail = f"{draw.of(string.ascii_lowercase, 5)}@vendor.com"
    section = f"[user]\n\temail = {mail}\n\tname = {name}"
    return name, f"$ cat ~/.gitconfig\n{section}\n", f'CONFIG = """{section}\n"""', None


def _pr_view(draw: Draw) -> tuple[str, str, str, str | None]:
    name = _account(draw)
    view = f"title:\tFix the login\nstate:\tOPEN\nauthor:\t{name}\nlabels:\tbug"
    return name, view, f'VIEW = """\n{view}\n"""', None


def _host(draw: Draw) -> tuple[str, str, str, str | None]:
    host = draw.company_host()
    return host, f"ssh deploy@{host} uptime", f'HOST = "{host}"', f"https://{host}:8443/status"


def _mdns(draw: Draw) -> tuple[str, str, str, str | None]:
    host = f"{draw.people.last_name()}s-MacBook-Pro.local"
    return host, f"Connecting to {host}:8080 ...", f'HOST = "{host}"', f"http://{host}:3000/"


def _address(value: str) -> tuple[str, str, str, str | None]:
    return value, f"dial tcp {value}:6379: refused", f'HOST = "{value}"', f"http://{value}:9000/x"


def _ipv6(value: str) -> tuple[str, str, str, str | None]:
    return value, f"inet6 {value} prefixlen 64", f'HOST = "{value}"', f"http://[{value}]:9000/x"


def _mac(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.people.mac_address()
    return value, f"ether {value} txqueuelen 1000", f'MAC = "{value}"', None


def _us_phone(draw: Draw) -> tuple[str, str, str, str | None]:
    form = draw.random.choice(["({}) {}-{}", "{}-{}-{}", "+1 {} {} {}", "{}.{}.{}"])
    area, exchange = draw.random.randint(201, 989), draw.random.randint(200, 499)
    return _phone(form.format(area, exchange, draw.of(string.digits, 4)))


def _international_phone(draw: Draw) -> tuple[str, str, str, str | None]:
    form = draw.random.choice(["+44 20 {} {}", "+49 30 {} {}", "+81 3 {} {}", "+33 1 {} {}"])
    return _phone(form.format(draw.random.randint(2000, 9999), draw.of(string.digits, 4)))


def _phone(value: str) -> tuple[str, str, str, str | None]:
    return value, f"phone: {value}", f'PHONE = "{value}"', None


def _number(label: str, value: str) -> tuple[str, str, str, str | None]:
    return value, f"{label} {value} declined", f'value = "{value}"', None


def _slack_mention(draw: Draw) -> tuple[str, str, str, str | None]:
    value = "U" + draw.of(string.ascii_uppercase + string.digits, 10)
    return value, f"<@{value}> please restart the job", f'post("<@{value}> done")', None


def _discord_mention(draw: Draw) -> tuple[str, str, str, str | None]:
    value = str(draw.random.randint(10**17, 10**18))
    return value, f"<@{value}> the deploy is out", f'post("<@{value}> done")', None


def _bare_handle(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{_account(draw)}-{draw.random.randint(10, 99)}"
    return name, f"@{name} broke the build again", f"# TODO(@{name}): remove", None


def _first_name(draw: Draw) -> tuple[str, str, str, str | None]:
    name = draw.people.first_name()
    return name, f"{name} said that we should wait", f"# {name} wants this to stay", None


def _full_name(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{draw.people.first_name()} {draw.people.last_name()}"
    return name, f"I asked {name} about it", f"# written by {name}", None


def _remote(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{_account(draw)}-{draw.random.randint(10, 99)}"
    url = f"https://github.com/{name}/api.git"
    return name, f"origin  {url} (fetch)", f'REPO = "git@github.com:{name}/api.git"', url


def _branch(draw: Draw) -> tuple[str, str, str, str | None]:
    name = f"{_account(draw)}-{draw.random.randint(10, 99)}"
    return name, f"On branch {name}/fix-login", f'BRANCH = "{name}/fix-login"', None


def _company(draw: Draw) -> tuple[str, str, str, str | None]:
    host = f"{draw.people.domain_word()}-{draw.random.randint(10, 99)}.com"
    return host, f"deployed to app.{host}", f'HOST = "app.{host}"', f"https://app.{host}/status"


def _street(draw: Draw) -> tuple[str, str, str, str | None]:
    value = draw.people.street_address()
    return value, f"ship to {value}", f'address = "{value}"', None


def _bare_host(draw: Draw) -> tuple[str, str, str, str | None]:
    host = f"{draw.people.last_name().lower()}box"
    return host, f"ssh {host} uptime", f'run("ssh {host} uptime")', f"http://{host}:8080/"
