from pathlib import Path

import pytest

from compression_eval.conversations.scrubbing import Pseudonyms, read_names
from compression_eval.fixtures.errors import DataError
from tests.conversations.scrubbing.building import cleaned, conversation, scrubbed

USER = Pseudonyms().of("user", "mmuster")


@pytest.mark.parametrize(
    "text",
    [
        "cd /home/mmuster/api",
        "cd /Users/mmuster/api",
        r"C:\Users\mmuster\api and C:\\Users\\mmuster\\api",
        "file:///C:/Users/mmuster/api",
        "/mnt/c/Users/mmuster/api",
        r"first\n/Users/mmuster/api",
        "~/.claude/projects/-Users-mmuster-api/1.jsonl",
        r"~\.claude\projects\C--Users-mmuster-api",
        "-rw-r--r--  1 mmuster  staff  120 Mar  3 10:12 notes.md",
        "drwxr-xr-x@ 5 root  mmuster  160 Mar  3 10:12 src",
        "uid=501(mmuster) gid=20(staff)",
        "mmuster@build-7:~/api$ make",
        "USER=mmuster",
        "ssh://mmuster@code.vendor.io/api.git",
        "日志在/home/mmuster/日志。",
    ],
)
def test_the_account_goes_and_the_path_stays_a_path(text: str) -> None:
    left = cleaned(text, skip=["hosts"])
    assert left == text.replace("mmuster", USER)


@pytest.mark.parametrize(
    "text",
    [
        "src/home/page.ts and ./home/page and ~/home/x",
        "/home/index.html and /home/runner/jobs and /root/x",
        "GET /Users/{id} and /Users/42 and /Users/Shared/x",
        "git stash --home-dir x",
        "-rw-r--r--  1 root  wheel  120 Mar  3 10:12 notes.md",
        "go get golang.org/x/tools@v0.1.2 and name@v1.2.3 and lodash@4.17.21",
        "git@github.com:org/repo.git, https://git@github.com/org/repo",
        r"class A:\n    @pytest.fixture\n    def x(self): ...",
        "a\n@pytest.fixture\n@app.route('/x')",
        "root@0f3a9b1c2d4e:/app# ls",
        "import x from '@types/node'; @Override; @media print",
        "user@example.com, x@mail.test, noreply@vendor.io, icon@2x.png",
        "settings.local and threading.local() and app.internal.views and com.sun.internal.x",
        "host.docker.internal:8080 and redis.default.svc.cluster.local:6379",
        "127.0.0.1:80, 0.0.0.0, 255.255.255.0, 192.0.2.7, 8.8.8.8, 10.0.0.0/8, 224.0.0.1",
        "version 10.12.13.14, lib-10.2.3.14.jar, ==10.20.30.40, v10.20.30.40, 1.3.6.1.4.1.99",
        "std::vector, a::b::c, 12:34:56, ::1, 2001:db8::1, 10:20:30:40",
        "ab:cd:ef:12:34:56:78:90 fingerprint, 00:00:00:00:00:00",
        "1700000000000 ms, 2024-10-12, 02-10-2024, 4242 4242 4242 4242, 1234-5678-9012-3456",
        "+1234567890 in a diff is\n+1234567890",
        "666-12-3456, 000-12-3456, 912-12-3456",
        "List<@NonNull String> and <#channel>",
    ],
)
def test_false_shapes_stay(text: str) -> None:
    assert cleaned(text) == text


def test_a_user_is_the_same_user_in_every_form_and_every_file() -> None:
    first = cleaned("ls /home/mmuster/x; thanks MMuster and mmuster-fix, not mmusterly")
    upper = USER.replace("user", "User")
    assert first == f"ls /home/{USER}/x; thanks {upper} and {USER}-fix, not mmusterly"
    assert USER in cleaned("write to mmuster@vendor.io")


def test_a_name_that_is_a_word_goes_in_paths_only() -> None:
    left = cleaned("ls /home/mark/x\nmark the line")
    assert "/home/mark/" not in left
    assert left.endswith("\nmark the line")


def test_a_route_teaches_no_name() -> None:
    left = cleaned('router.get("/home/quux2") // quux2 stays')
    assert left.endswith("// quux2 stays")


def test_an_author_is_one_person_wherever_the_name_stands() -> None:
    done = scrubbed(
        conversation(
            {
                "role": "user",
                "content": "Author: Jane Qvist <jane@vendor.io>\nSigned-off-by: 田中太郎 <t@v.io>",
            },
            {"role": "assistant", "content": "Jane Qvist and Jane and 田中太郎さん said so."},
        )
    )
    people = Pseudonyms()
    jane, qvist = people.of("person", "Jane"), people.of("person", "Qvist")
    tanaka = people.of("person", "田中太郎")
    assert done.fixture.messages[1].text == f"{jane} {qvist} and {jane} and {tanaka}さん said so."
    assert "vendor.io" not in done.fixture.messages[0].text


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ('{"name": "Jane Qvist", "email": "x@y.io"}', "Qvist"),
        ("git config user.name 'Jane Qvist'", "Qvist"),
        ("8d0f1c2a (Jane Qvist 2031-04-02 10:11:12 +0000 7) x = 1", "Qvist"),
        ("cc @qvist-7 please", "qvist-7"),
        ('{"user": {"login": "qvist7"}}', "qvist7"),
        ("12345+qvist7@users.noreply.github.com", "qvist7"),
        ("ping db01.prod.corp now", "db01"),
        ("host = build.ops.internal", "build.ops"),
        ("http://Qvists-MacBook-Pro.local:3000", "Qvists"),
        ("ip-10-1-22-33.eu-west-1.compute.internal", "10-1-22-33"),
        ("shop.c9akciq32abc.eu-west-1.rds.amazonaws.com:5432", "c9akciq32abc"),
        ("DESKTOP-8F3K2LQ", "8F3K2LQ"),
        ("dial 10.20.30.40:6379", "10.20.30.40"),
        ("inet6 2a02:8108:96c0:1::7", "2a02"),
        ("ether a4:83:e7:12:9c:0b", "a4:83"),
        ("call (415) 223-4477", "223-4477"),
        ("call +49 30 1234567", "1234567"),
        ("電話: 090-1234-5678", "1234-5678"),
        ("手机13812345678", "12345678"),
        ("card 4539 1488 0343 6467", "0343 6467"),
        ("SSN 536-22-1234", "22-1234"),
        ("<@U04ABCDEFGH> look", "U04ABCDEFGH"),
        ("<@!312345678901234567> look", "312345678901234567"),
        ('<at user_id="ou_84aad35d084aa403">Jane Qvist</at>', "Qvist"),
    ],
)
def test_personal_data_goes(text: str, gone: str) -> None:
    assert gone in text
    assert gone not in cleaned(text)


def test_listed_names_go_even_if_they_are_words(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("# people\nMark\nacme.com\n@quux\nperson: Otto\nsecret: swordfish\n")
    left = cleaned("mark OTTO quux acme.com swordfish Markus", listed=read_names(path))
    assert left.endswith(" Markus")
    for name in ("mark ", "OTTO", "quux", "acme", "swordfish"):
        assert name not in left


def test_a_listed_name_that_is_too_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("Jane\nx\n")
    with pytest.raises(DataError, match=r"names.txt: line 2: 'x' is too short"):
        read_names(path)


def test_owners_of_remotes_go_only_if_asked_to() -> None:
    text = "git clone https://github.com/qvist7/api; on branch qvist7/fix"
    assert cleaned(text) == text
    assert "qvist7" not in cleaned(text, remote_owners=True)
