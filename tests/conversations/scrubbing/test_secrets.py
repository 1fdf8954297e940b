import base64

import pytest

from tests.conversations.scrubbing.building import cleaned, conversation, scrubbed

TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gJ6"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"GH={TOKEN}", TOKEN),
        ('cfg = {\\"api_key\\": \\"k3y-93jdkw02\\"}', "k3y-93jdkw02"),
        ("postgres://app:Tr0ub4dor@db.vendor.io/x", "Tr0ub4dor"),
        ("Authorization: Bearer abcDEF123ghiJKL456mno", "abcDEF123ghiJKL456mno"),
        ("curl -u bob:pa55-w0rd https://x.io", "pa55-w0rd"),
        ("mysql -uroot -pGeh3im99 shop", "Geh3im99"),
        ("密码是Geh3im-99。请看", "Geh3im-99"),
        (
            "     1\t-----BEGIN RSA PRIVATE " + "KEY-----\n     2→MIIEpAIBAAKCAQEA75tqk\n"
            "     3→Q9Zx7rK3mPv0LwTbYc5Jd\n     4→aB3\n     5→-----END RSA PRIVATE KEY-----",
            "Q9Zx7rK3mPv0LwTbYc5Jd",
        ),
        ('db_password = "k7Gq,m2Xw;p9&Vd"', "p9&Vd"),
        ("export DB_PASSWORD='nine lamps over 4 rivers'", "lamps over 4 rivers"),
        ('h.Set("Authorization", "Basic cXZpc3Q6czNjcjN0LXBhc3M=")', "cXZpc3Q6czNjcjN0LXBhc3M="),
        ('x: {"ghcr.io": {"auth": "cXZpc3Q6czNjcjN0LXBhc3M="}}', "cXZpc3Q6czNjcjN0LXBhc3M="),
        ("DB_PASSWORD=Zz9-qwerty-77!", "Zz9-qwerty-77!"),
        ("sshpass -p 'Geh3im99' ssh deploy@h", "Geh3im99"),
        ("Password:  oQyG1%hq&ijqJ\n", "ijqJ"),
        ("//registry.vendor.io/:_auth=cXZpc3Q6czNjcjN0LXBhc3M=", "cXZpc3Q6czNjcjN0LXBhc3M="),
        ("<password>Geh3im-99</password>", "Geh3im-99"),
        ("ALTER USER app IDENTIFIED BY 'Geh3im-99'", "Geh3im-99"),
        ("Passwort: Geh3im-99", "Geh3im-99"),
        ("db:\n  password: >-\n    Geh3im-99\n  x: 1", "Geh3im-99"),
        ("echo Geh3im-99 | sudo -S ls", "Geh3im-99"),
        ("API_KEY=abCD12efGH&34ijKL56mn", "34ijKL56mn"),
        ("https://x.io/a?jwt=aB3dE6gH9jK2mN5pQ8sT", "aB3dE6gH9jK2mN5pQ8sT"),
        ("https://x.io/a?b=1&X-Amz-Signature=8d0f1c2a9b3e4d5f6a7b8c9d&x=1", "8d0f1c2a"),
        ("http://localhost/cb?code=1\\u0026state=xYz81kQmW02ab", "xYz81kQmW02ab"),
        ("echo 'bob:Geh3im-99' | chpasswd", "Geh3im-99"),
        ("openssl enc -aes256 -k Geh3im-99", "Geh3im-99"),
        (f"\x1b[31m{TOKEN}\x1b[0m", TOKEN),
        (f"x {TOKEN[:9]}\x1b[1m{TOKEN[9:]}", TOKEN[9:]),
        (TOKEN.replace("_", "\\_"), TOKEN[4:]),
        ("".join(f"\\x{ord(one):02x}" for one in TOKEN), "\\x67\\x68"),
        ("token: " + base64.b64encode(f"t={TOKEN}".encode()).decode(), "dD1naHBf"),
    ],
)
def test_a_secret_goes_wherever_it_stands(text: str, secret: str) -> None:
    assert secret in text
    left = cleaned(text)
    assert secret not in left
    assert "~SCRUBBED~" in left


@pytest.mark.parametrize(
    "text",
    [
        "commit 8d0f1c2a9b3e4d5f6a7b8c9d0e1f2a3b4c5d6e7f fixes 8d0f1c2",
        "id 550e8400-e29b-41d4-a716-446655440000, call toolu_01A09q90qw90lq917835lq9",
        "error E1042 at src/app/tokens.py:118 in v1.22.333, port 8443",
        "password = os.environ['DB_PASSWORD']",
        "token: str = response.json()['token']",
        'login(password="password", token="<your token>")',
        'auth_token = self.settings.token\nsecret_name = "prod/db/main-2"',
        "-----BEGIN PRIVATE KEY----- is how such a file begins, and then it goes on",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= integrity",
        'cfg = {"password":"",user_name:"otto"}',
        'Authorization: Basic dXNlcjpwYXNz; "auth": "none-here"; Basic workflows; basic/abcdEFGH',
        "GH_TOKEN=github_pat_... OPENAI_API_KEY=sk-... TOKEN=<token> API_KEY=xxxxxxxxxxxx",
        "f(ipnsPrivateKey: Uint8Array, secret: Option<String>, k: &str)",
        'if (apiKey === "" && !options?.apiKey) throw new Error();',
        "call({ userPrivateKey: auth.vaultKeypair!.privateKey, token: this.#token2 });",
        "${DB_CREDENTIAL_ROOT:?DB_CREDENTIAL_ROOT is required}",
        "detect_private_key::tests::test_2; associated_token::authority2; spl_token.d:30:ab12cd34",
        "the token is missing/expired, token is base64-encoded, password is per-user/tenant2",
        r"C:\Users\dev\_work\-x and C:\\Users\\dev\\.config and \d+\.\d+",
    ],
)
def test_facts_stay(text: str) -> None:
    assert cleaned(text) == text


def test_a_secret_learnt_from_its_name_goes_where_it_stands_alone() -> None:
    done = scrubbed(
        conversation(
            {"role": "user", "content": "export API_KEY=q7-Zx81-kLmn"},
            {"role": "assistant", "content": "I used q7-Zx81-kLmn, and q7-Zx81-kLmnop is no part."},
        )
    )
    first, second = (message.text for message in done.fixture.messages)
    stand_in = first.removeprefix("export API_KEY=")
    assert second == f"I used {stand_in}, and q7-Zx81-kLmnop is no part."


@pytest.mark.parametrize("line", ["123:abc_defX1", "7-abc_defX1"])
def test_a_numbered_line_never_goes_where_it_stands_alone(line: str) -> None:
    left = cleaned(f"password={line}\nsee {line}")
    assert left.startswith("password=~SCRUBBED~")
    assert left.endswith(f"\nsee {line}")


def test_a_word_of_the_code_never_goes_where_it_stands_alone() -> None:
    text = 'PASSWORD="Base64String"; let x = new Base64String(4)'
    assert cleaned(text).endswith("; let x = new Base64String(4)")


def test_a_vendors_prefix_and_the_length_stay_and_a_passwords_beginning_does_not() -> None:
    left = cleaned(f"GH={TOKEN}").removeprefix("GH=")
    assert left.startswith("ghp_~SCRUBBED~")
    assert len(left) == len(TOKEN)
    assert cleaned("password: my-own-Pass-77").startswith("password: ~SCRUBBED~")


def test_what_stands_beside_a_stand_in_is_not_excused() -> None:
    stand_in = cleaned("DB_PASSWORD=Zz9-qwerty-77").removeprefix("DB_PASSWORD=")
    assert "realSecret99" not in cleaned(f"DB_PASSWORD={stand_in}realSecret99")


def test_a_bare_mark_of_stand_ins_comes_to_rest() -> None:
    assert cleaned(f"password: ghp_~SCRUBBED~; GH={TOKEN}").count("~SCRUBBED~") == 2


def test_places_are_right_behind_characters_of_several_bytes() -> None:
    text = f"\ufeff錠前🔑\x00 GH={TOKEN} と続く"
    left = cleaned(text)
    assert left.startswith("\ufeff錠前🔑\x00 GH=ghp_~SCRUBBED~")
    assert left.endswith("~ と続く")
