"""The passes that replace values: what each finds in a text, and what it teaches the vocabulary.

A pass yields spans with the kind of their stand-in. Those for accounts, handles, people and hosts
also teach: a name that one form reveals is replaced in other places, too, as far as its evidence
goes (`vocabulary`). `PASSES` at the end lists them in the order in which they run.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

from compression_eval.conversations.scrubbing.rules import (
    Hit,
    holds_any,
    is_account,
    is_bot,
    is_common,
    is_name,
    is_personal,
    matches,
    without_overlaps,
    words,
)
from compression_eval.conversations.scrubbing.secrets import secrets, stands_for_itself
from compression_eval.conversations.scrubbing.vocabulary import (
    FOLDER,
    HOME,
    IN_HOST,
    JOINED,
    LOGIN,
    NAMED,
    OPENED,
    OWN,
    SURE,
    Learnt,
)

_ascii = partial(re.compile, flags=re.ASCII)


Taught = Iterator[tuple[Learnt | str, str]]
"""Values to look for elsewhere, or signs of what may be one, each with the name of the sign."""


@dataclass(frozen=True)
class Pass:
    """One pass."""

    search: Callable[[str], Iterable[Hit]]
    teach: Callable[[str, Sequence[Hit]], Taught] = lambda *_: iter(())
    """Yields, of what was found in a text, what is to be replaced wherever it stands."""


def _teach_secrets(text: str, hits: Sequence[Hit]) -> Taught:
    for hit in without_overlaps(hits):
        value = hit.of(text)
        for form in {value, value.rstrip("!")}:
            if stands_for_itself(form):
                yield Learnt(form, "secret", hit.rule), SURE


_SOURCE_FILE = _ascii(
    r".+\.(?:html?|jsx?|tsx?|css|scss|vue|svelte|py|rb|go|php|md|json|svg|png|jpe?g|sh|java|c|cpp|h|rs"
    r"|kt|patch|diff|txt|log|ya?ml|toml)"
)
_OPENED = _ascii(
    r"(?m)^(?:\w*(?:path|file|folder|dir|directory|cwd|root)\w*[ ]=[ ]\""
    r"|(?:command|cmd)[ ]=[ ]\"cd[ ]\"?)"
    r"(?:/(?:home|Users)/|[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2})[^/\\\s\"]{1,64}[/\\\"]"
)


def _user_names(text: str) -> Iterator[Hit]:
    """Yield the accounts in home folders, listings and prompts."""
    for _, _, hit in matches("user_names", text):
        name = text[hit.start : hit.end].rstrip(".-")
        if (
            (any(map(str.isalpha, name)) or (hit.rule == "windows-home" and len(name) > 3))
            and not is_account(name)
            and not _SOURCE_FILE.fullmatch(name)
            and not (hit.rule == "bare-folder" and (is_common(name) or name.isupper()))
        ):
            yield Hit(hit.start, hit.start + len(name), hit.rule, hit.kind)


_MIN_LISTED = 6
"""Places in one text, two to a line, from which on a listing is taken for a real machine's."""


def _teach_user_names(text: str, hits: Sequence[Hit]) -> Taught:
    listed = Counter(hit.of(text) for hit in hits if hit.rule == "listing")
    for hit in hits:
        # A path and its encoded form are written from each other: one sign.
        sign = HOME if hit.rule.endswith(("-home", "-folder")) else hit.rule
        yield from _account(hit.of(text), hit.rule, sign)
        if listed[hit.of(text)] >= _MIN_LISTED:
            yield hit.of(text), SURE


def teach_opened(arguments: str) -> Taught:
    """Yield whose home folder a call worked in, from its arguments as lines ``key = "value"``.

    One sign is enough here: an agent opens files where they are, while a home folder in the
    text of a script or a test may be anybody's.
    """
    for opened in _OPENED.finditer(arguments):
        for hit in _user_names(opened[0]):
            if hit.rule.endswith("-home"):
                name = opened[0][hit.start : hit.end]
                yield from _account(name, hit.rule, SURE)
                yield name, OPENED


_SOURCES = re.compile(r"[/\\](?:src|main|java|packages?|include|sources?)[/\\]")


def names_of_code(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a text shows to be a command, a package and the like, and by which sign."""
    for rule, found, hit in matches("names_of_code", text):
        name = text[hit.start : hit.end].casefold()
        if (
            rule.name == FOLDER
            and name == (found["home"] or "").casefold()
            and not _SOURCES.search(text, found.start("listed"), hit.start)
        ):
            continue  # somebody's folder in their home, and no package
        if not is_common(name):
            yield name, rule.name
    for profile in _profiles(text):
        if profile.kind in ("organization", "bot") and profile.login:
            yield profile.login.casefold(), profile.kind


def _account(name: str, rule: str, sign: str) -> Taught:
    if is_common(name):
        return
    if name.isdigit():  # a number elsewhere is another number
        sign = ""
    yield Learnt(name, "user", rule, any_case=True), sign
    encoded, changed = re.subn(r"[._ ]", "-", name)
    if changed:
        yield Learnt(encoded, "user", "encoded-folder", any_case=True), sign


_FORGE_ADDRESS, _MADE_UP = "forge-address", "made-up"
ONLY_TEACHES = (_FORGE_ADDRESS, _MADE_UP)
"""Rules that replace nothing: `emails` replaces the address of a forge, and a name next to an
address that nobody has is mostly nobody's. It is still a sign: who commits as ``jane@localhost``
also has a home folder.
"""

_MADE_BY_FORGES = ("login", "logged-in", _FORGE_ADDRESS, "gh-view")
"""Rules for what a forge writes: what is there is an account, even if it is a word."""


def _handles(text: str) -> Iterator[Hit]:
    """Yield the handles that stand as a person's."""
    for rule, _, hit in matches("handles", text):
        handle = text[hit.start : hit.end]
        if is_account(handle) or (handle.isdigit() and rule.name != OWN):
            continue
        if hit.kind == "user" and rule.name not in _MADE_BY_FORGES and is_common(handle):
            continue
        # Before a branch's name is a ticket, a product or a phase more often than somebody.
        is_nobody = rule.name in ("people-page", "branch") and not is_personal(handle)
        if not is_nobody and not (rule.name == "login" and _is_program(handle)):
            yield hit
    yield from _of_profiles(text)


def _teach_handles(text: str, hits: Sequence[Hit]) -> Taught:
    for hit in hits:
        value = hit.of(text)
        if hit.kind == "person":
            yield from _person(value, hit.rule)
        elif hit.kind != "user":
            yield Learnt(value, hit.kind, hit.rule), SURE
        elif hit.rule in _MADE_BY_FORGES or not is_common(value):
            # An address that a forge made contains the number and the name of a real account.
            sign = SURE if hit.rule in (_FORGE_ADDRESS, "logged-in") else hit.rule
            sign = {"branch": "", "profile": LOGIN, "login": NAMED, UNSURE: NAMED}.get(
                hit.rule, "" if value.isdigit() else sign
            )
            yield Learnt(value, "user", hit.rule, any_case=True), sign


_PROFILE = re.compile(
    r"(?:login|LOGIN|user_?[nN]ame|display_?[nN]ame|screen_?[nN]ame)[\"'\\]{0,3}\s?[:=]"
)
_PROFILE_HINTS = ("login", "user_name", "username", "displayname", "display_name", "screen_name")
_LOGIN = re.compile(
    r"(?i:\blogin)[\"'\\]{0,3}\s?[:=]\s{0,3}(?P<quote>[\"'\\]{0,3})(?P<login>[\w.-]+)"
)
_KEY = re.compile(r"(?<![\w-])([A-Za-z_]{2,24})[\"'\\]{0,3}[ ]{0,2}(?:=>|[:=])")
_SOMEBODYS = re.compile(
    r"(?i:map\[|(?:(?P<group>organi[sz]ation|org|enterprise)|author|assignee|assigned_?to|reporter|creator|created_?by|reviewer|(?P<owner>owner)"
    r"|user|member|committer)s?[\"'\\]{0,2}\s{0,3}[:=]\s{0,3}[\[{\s]{1,9})\Z"
)
"""What is before an object that describes an account."""
_EDGE = re.compile(r"[{}\[\]]|\n\s*\n")
_MAX_PROFILE_CHARACTERS = 4000
_TYPE = r"(?i:type(?:name)?[\"'\\]{0,3}\s?[:=]\s{0,3}[\"'\\]{0,3}%s)\b"
_KINDS = {
    "bot": re.compile(_TYPE % "bot" + r"|\bBOT_kg|\bMDM6Qm90|\b03:Bot"),
    "organization": re.compile(
        _TYPE % "organization" + r"|\bO_kg|\bMDEyOk9yZ2FuaXphdGlv|\b012:Org"
    ),
    "somebody": re.compile(_TYPE % "user" + r"|\bU_kg|\bMDQ6VXNl|\b04:User"),
}
"""The type of an account, or how the ids begin that a forge gives to such accounts."""
UNSURE = "unsure-profile"
"""The rule for an object that may describe an organization as well."""


class _Profile(NamedTuple):
    start: int
    end: int
    kind: str
    """``somebody``, ``organization``, ``bot``, or nothing where the object does not say it."""
    login: str


def _is_program(login: str) -> bool:
    """Return whether a login is words of products and programs: ``gemini-code-assist``."""
    return "-" in login and is_common(login)


@lru_cache(maxsize=2)
def _profiles(text: str) -> tuple[_Profile, ...]:
    """Return every object that describes an account.

    Objects are told by their braces, in JSON, in code and in what programs print, whole or cut.
    """
    profiles: list[_Profile] = []
    place = 0 if holds_any(text, _PROFILE_HINTS) else len(text)
    while found := _PROFILE.search(text, place):
        start = max(place, found.start() - _MAX_PROFILE_CHARACTERS)
        for edge in _EDGE.finditer(text, start, found.start()):
            start = edge.end()
        until = found.end() + _MAX_PROFILE_CHARACTERS
        after = _EDGE.search(text, found.end(), until)
        place = after.start() if after else min(until, len(text))
        described = text[start:place]
        before = _SOMEBODYS.search(text[max(0, start - 40) : start])
        login = _LOGIN.search(described)
        # Of a bare word behind "login:" only other fields, or Go's way to print, say what it is.
        keys = {key.replace("_", "").lower() for key in _KEY.findall(described)}
        if (login and login["quote"]) or before or words("profile_fields") & keys:
            name = login["login"] if login else ""
            profiles.append(_Profile(start, place, _kind_of(described, name, before), name))
    return tuple(profiles)


def _kind_of(described: str, login: str, before: re.Match[str] | None) -> str:
    for kind, form in _KINDS.items():
        if form.search(described):
            return kind
    if not login:
        return "somebody"
    if before and before["group"]:
        return "organization"
    if _is_program(login):
        return "bot"
    return "somebody" if before and not before["owner"] else ""


def _of_profiles(text: str) -> Iterator[Hit]:
    """Yield whatever identifies the account that an object describes."""
    for start, end, kind, _ in _profiles(text):
        found = matches("profiles", text, [(start, end)]) if kind in ("somebody", "") else ()
        for rule, _, hit in found:
            value = text[hit.start : hit.end]
            is_word = rule.name == "other-name" and is_common(value)
            if (hit.kind == "person" and not _is_person(value, "profile")) or (
                hit.kind == "user" and (is_account(value) or value.isdigit() or is_word)
            ):
                continue
            yield replace(hit, rule="profile" if kind else UNSURE)


_VERSION = re.compile(r"v?\d+\.|\d+x\.|sha\d+\.")
_RESERVED = ("example", "test", "invalid", "localhost")
_PLACEHOLDER_LOCAL = re.compile(
    r"(?:your|seu|sua|tu|su|votre|dein|ihr)[-._]|test(?:er|user)?(?![a-z])"
)
_SILENT = ("noreply", "no-reply", "donotreply", "do-not-reply", "git", "hg", "svn")

_ADDRESS_BESIDE = re.compile(r"([\w.+-]{1,64})@([\w-]{1,63}(?:\.[\w-]{1,63}){1,4})")
_LINE_CHARACTERS = 160
_NAMES_PEOPLE = (
    *("author-line", "git-config", "config-section", "profile", UNSURE, "blame"),
    *("chat", "owner-line", "people-title"),
)
_NO_PERSON = re.compile(
    r"(?i:your name|(?:seu|tu|su|votre|dein|ihr) (?:nome|nombre|nom|name).*|.*test user|github.*"
    r"|gitlab.*|claude.*|codex.*|copilot.*|cursor.*|dependabot.*|renovate.*|not committed yet"
    r"|example.*|alice|bob|co-authored-by.*|the .*|openai.*|anthropic.*)"
)
_ACCOUNT = re.compile(r"(?=[a-z-]*\d)(?=\d*[a-z])[a-z0-9-]{4,39}")
_NAME_WORD = re.compile(r"[^\W\d_][\w.'’-]*")
_MIN_LOCAL_CHARACTERS = 4


def _emails(text: str) -> Iterator[Hit]:
    """Yield addresses, and the names that their surroundings show to be a person's."""
    in_author_lines = set()
    for rule, found, hit in matches("emails", text):
        value = text[hit.start : hit.end]
        if hit.kind == "email":
            local, _, domain = value.rpartition("@")
            if _is_somebodys(local, domain.lower()) and not _is_in_url(text, hit.start):
                yield hit
            continue
        if rule.name == "author-line":
            in_author_lines.add(hit.end)
        elif rule.name == "named-address" and hit.end in in_author_lines:
            continue
        name = found["person"] if hit.kind == "user" else value
        is_handle = hit.kind != "user" or not is_common(value)
        if is_handle and _is_person(name, rule.name):
            yield _unless_made_up(text, hit)


def _is_in_url(text: str, start: int) -> bool:
    """Return whether what looks like an address is the user and the host of a URL."""
    before = text[max(0, start - 90) : start]
    return before.endswith("//") or (before.endswith(":") and "//" in before)


def _unless_made_up(text: str, hit: Hit) -> Hit:
    """Return a name, or that only its address may be made up: ``taro@example.com`` is nobody's."""
    found = _ADDRESS_BESIDE.search(text, hit.end, hit.end + _LINE_CHARACTERS)
    is_made_up = found and not _is_somebodys(found[1], found[2].casefold())
    return replace(hit, rule=_MADE_UP) if is_made_up else hit


def _is_somebodys(local: str, domain: str) -> bool:
    """Return whether an address is no version and not ``test@…`` or ``alice@company.com``."""
    labels = domain.split(".")
    if labels[-1] in _RESERVED or "example" in labels or labels[-2] in words("nobodys_domains"):
        return False
    if _VERSION.match(domain) or labels[-1] in words("file_ends"):
        return False
    local = local.casefold()
    numbered = re.fullmatch(r"\d+\+(.+)", local)
    if local in _SILENT or is_bot(local) or (numbered and is_account(numbered[1])):
        return False
    who = local.rstrip("0123456789")
    if who in words("neutral_locals") or _PLACEHOLDER_LOCAL.match(local):
        return False
    return not (who in words("neutral_people") and labels[-2] in words("neutral_domains"))


def _is_person(name: str, rule: str) -> bool:
    """Return whether a name is a person's, and no placeholder, program or word of a grammar."""
    parts = name.split()
    if rule in ("git-config", "config-section") and _ACCOUNT.fullmatch(name):
        return True
    if (
        not all(_NAME_WORD.fullmatch(part) for part in parts)
        or _NO_PERSON.fullmatch(name)
        or is_account(name)
        # Companies and teams own and write things, too.
        or (rule == "owner-line" and not is_personal(name))
        or words("companies").intersection(part.casefold().strip(".,") for part in parts)
        # "[time] ERROR server:" is a log.
        or (rule == "chat" and parts[0].isupper() and is_common(parts[0]))
    ):
        return False
    if not is_common(name):
        return True
    capitalised = all(part[0].isupper() for part in parts)
    nobody = any(is_account(part) for part in parts)
    known = any(is_name(part.casefold()) for part in parts)
    return rule in _NAMES_PEOPLE and capitalised and known and not nobody


_OWN_ADDRESS = re.compile(
    r"(?:user\.email|GIT_(?:AUTHOR|COMMITTER)_EMAIL|(?:\n|\\n)(?:\\t|\s){0,4}email)[ =]{1,3}"
    r"[\"'\\]{0,3}\Z"
)
"""What the address of who works in a session is behind; its domain is theirs."""


def _teach_emails(text: str, hits: Sequence[Hit]) -> Taught:
    """Note the people of author lines, and the accounts in addresses."""
    for hit in hits:
        name = hit.of(text)
        if hit.rule == _MADE_UP:
            yield from ((part, "author") for part in {name, *name.split()})
        elif hit.kind == "user":
            yield Learnt(name, "user", hit.rule, any_case=True), hit.rule
        elif hit.kind == "email":
            local, _, domain = name.partition("@")
            local = local.rpartition("+")[2]
            own = _OWN_ADDRESS.search(text[max(0, hit.start - 40) : hit.start])
            if own and not words("mail_domains").intersection(domain.casefold().split(".")[-3:-1]):
                yield Learnt(domain, "host", "own-address", any_case=True), SURE
            if len(local) >= _MIN_LOCAL_CHARACTERS and not is_common(local):
                yield Learnt(local, "user", "e-mail", any_case=True), "address"
            if "." in local:
                yield local.replace(".", " "), "address"
        else:
            yield from _person(name, hit.rule)


def _person(name: str, rule: str) -> Taught:
    """Note a person, with the longer parts of a whole name.

    First and last name together are sure; one word, or common words, need a second sign, such
    as the same word in an address.
    """
    whole, common = " " in name, is_common(name)
    if whole or not name.isascii() or not common:
        sure = not name.isascii() or (not common and (whole or rule == "chat"))
        yield Learnt(name, "person", rule), SURE if sure else "author"
    if whole and not common and name.isascii() and all(map(str.isalpha, name.split())):
        for between in ("_", "-", ".", ""):
            yield Learnt(between.join(name.split()), "user", JOINED, any_case=True), SURE
    for part in name.split() if whole else ():
        if part[:1].isupper() and part.isalpha() and not is_common(part):
            yield Learnt(part, "person", rule), SURE
            if len(part) >= _MIN_LOCAL_CHARACTERS:
                yield Learnt(part.lower(), "user", IN_HOST), SURE


_EVERYBODYS = _ascii(r"\.svc\.cluster\.local$|(?:^|\.)example\.[a-z]+$")
_CONTAINER = _ascii(r"[0-9a-f]{12}")


def _hosts(text: str) -> Iterator[Hit]:
    """Yield names of machines in private domains, by how they are used, and of personal ones."""
    for rule, _, hit in matches("hosts", text):
        name = text[hit.start : hit.end].lower()
        if name in words("hosts") or _EVERYBODYS.search(name):
            continue
        if rule.name == "prompt" and (_CONTAINER.fullmatch(name) or is_common(name)):
            continue
        yield hit


def _teach_hosts(text: str, hits: Sequence[Hit]) -> Taught:
    for hit in hits:
        name = hit.of(text)
        if hit.rule != "prompt" or re.search(r"[-.0-9]", name):
            yield Learnt(name, "host", hit.rule, any_case=True), SURE


_VERSION_BEFORE = _ascii(
    r"(?:(?i:version|release|ver\.?|/v)|[=~<>^]=)[\"'\s:=]{0,3}\Z|[A-Za-z0-9]-\Z"
)
_LIKE_A_VERSION = _ascii(r"(?!10\.)1?\d\.\d{1,2}\.")
_HOST_BEFORE = _ascii(
    r"(?i:\bip|addr|host|server|ssh|ping|inet|dial|peer|client|remote|dns|gateway|node|listen"
    r"|connect|nslookup|curl|origin|proxy|forward|real|://|@|[\"'=\[(]\s?\Z)"
)
_PORT = _ascii(r":\d|/\d|[ ]?\)? port\b")
"""A public address of small numbers is a version, unless something says that it is a host's."""
_EVERYBODYS4 = [
    *("0.0.0.0/8", "127.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    *("198.18.0.0/15", "224.0.0.0/3"),
]
_SOMEBODYS6, _DOCUMENTATION6 = ["2000::/3", "fc00::/7", "fe80::/10"], ["2001:db8::/32"]


def _addresses(text: str) -> Iterator[Hit]:
    """Yield IPv4, IPv6 and MAC addresses.

    Versions, times, module paths (``a::b``), fingerprints, net masks and the addresses that
    everybody uses (loopback, multicast, documentation, public resolvers) stay.
    """
    for rule, _, hit in matches("addresses", text):
        value = text[hit.start : hit.end]
        before = text[max(0, hit.start - 30) : hit.start]
        if rule.name == "ipv4" and (
            _VERSION_BEFORE.search(before)
            or (
                _LIKE_A_VERSION.match(value)
                and not (_HOST_BEFORE.search(before) or _PORT.match(text, hit.end))
            )
        ):
            continue
        if rule.name == "mac" or _is_address(value):
            yield hit


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        octets = address.packed
        is_block = octets[1:] == b"\0\0\0" or octets[2:] == b"\0\0"
        known = text in words("addresses") or _is_in(address, _EVERYBODYS4)
        return max(octets) > 9 and not (is_block or known)
    groups = [group for group in text.split(":") if group]
    written = any(map(str.isdigit, text)) and len(groups) >= 3
    whole = len(groups) == 8 and any(len(group) > 2 for group in groups)
    taken = whole or _is_in(address, _SOMEBODYS6)
    return written and taken and not _is_in(address, _DOCUMENTATION6)


def _is_in(address: ipaddress.IPv4Address | ipaddress.IPv6Address, blocks: list[str]) -> bool:
    return any(address in _network(block) for block in blocks)


_network = lru_cache(ipaddress.ip_network)


_DATE = _ascii(r"(?:19|20)\d\d-\d\d-\d\d")
_NOT_GIVEN_OUT = _ascii(r".*55501\d\d")


def _numbers(text: str) -> Iterator[Hit]:
    """Yield phone numbers."""
    for rule, found, hit in matches("numbers", text):
        number = text[hit.start : hit.end]
        before = text[max(0, found.start() - 1) : found.start()]
        if _is_phone(rule.name, number, re.sub(r"\D", "", number), before):
            yield hit


def _is_phone(rule: str, number: str, digits: str, before: str) -> bool:
    if _NOT_GIVEN_OUT.fullmatch(digits) or len(set(digits)) < 4:
        return False
    if rule == "phone-international":
        added_line = before in ("", "\n") and number.lstrip("+").isdigit()
        return 10 <= len(digits) <= 15 and not added_line and not _DATE.search(number)
    if rule == "phone-trunk":
        return len(digits) in (10, 11)
    return 9 <= len(digits) <= 14


def _mentions(text: str) -> Iterator[Hit]:
    return (hit for _, _, hit in matches("mentions", text))


def _teach_mentions(text: str, hits: Sequence[Hit]) -> Taught:
    for hit in hits:
        if hit.kind == "mention" and len(hit.of(text)) >= 8:
            yield Learnt(hit.of(text), "mention", hit.rule), SURE


PASSES = {
    "secrets": Pass(secrets, _teach_secrets),
    "user_names": Pass(_user_names, _teach_user_names),
    "handles": Pass(_handles, _teach_handles),
    "emails": Pass(_emails, _teach_emails),
    "hosts": Pass(_hosts, _teach_hosts),
    "addresses": Pass(_addresses),
    "numbers": Pass(_numbers),
    "mentions": Pass(_mentions, _teach_mentions),
}
"""The passes by name, in the order they run."""
