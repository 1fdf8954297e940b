from pathlib import Path

import pytest

from compression_eval.conversations.scrubbing import Pseudonyms, read_names
from compression_eval.errors import DataError
from tests.conversations.scrubbing.building import cleaned, conversation, scrubbed
from tests.fixtures.building import assistant, call, result, user

SUPERUSERS_HOME = "/" + "root"
"""Nobody's name, and on any machine."""
USER = Pseudonyms().of("user", "mmuster")


@pytest.mark.parametrize(
    "text",
    [
        "cd /home/mmuster/api",
        "cd /Users/mmuster/api",
        r"C:\Users\mmuster\api and C:\\Users\\mmuster\\api",
        "/mnt/c/Users/mmuster/api",
        r"first\n/Users/mmuster/api",
        "~/.claude/projects/-Users-mmuster-api/1.jsonl",
        "drwxr-xr-x@ 5 root  mmuster  160 Mar  3 10:12 src",
        "uid=501(mmuster) gid=20(staff)",
        "mmuster@build-7:~/api$ make",
        "USER=mmuster",
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
        f"/home/index.html and /home/runner/jobs and {SUPERUSERS_HOME}/x",
        "GET /Users/{id} and /Users/42 and /Users/Shared/x",
        "git stash --home-dir x",
        "-rw-r--r--  1 root  wheel  120 Mar  3 10:12 notes.md",
        "git@github.com:org/repo.git, https://git@github.com/org/repo",
        r"class A:\n    @pytest.fixture\n    def x(self): ...",
        "root@0f3a9b1c2d4e:/app# ls, agent@runtime:~/work$ ls",
        "user@example.com, x@mail.test, noreply@vendor.io, icon@2x.png",
        "settings.local and threading.local() and app.internal.views",
        "127.0.0.1:80, 0.0.0.0, 255.255.255.0, 192.0.2.7, 8.8.8.8, 10.0.0.0/8, 224.0.0.1",
        "version 10.12.13.14, lib-10.2.3.14.jar, ==10.20.30.40, v10.20.30.40, 1.3.6.1.4.1.99",
        "1700000000000 ms, 2024-10-12, 02-10-2024, 4242 4242 4242 4242, 1234-5678-9012-3456",
        "+1234567890 in a diff is\n+1234567890",
        "test@corp.io, you@corp.io, alice@company.com, a@b.io and tester3@vendor.io",
        "Author: %s <%s@vendor.io> and {name} <{mail}@vendor.io>",
        "On branch feature/x, fix/y, main, ent-221/z; origin/docs/a; git checkout -b wip/x",
        "On branch qvist7/fix-login, phase12/e2e; annotated with @DirtiesContext [false]",
        '{"currencyCode": "CNY", "displayName": "Chinese Yuan"}; ls /home/run.sh /home/fix.patch',
        '{"login":"quuxworks","id":4455667,"node_id":"O_kgDOABCDEFG"} github.com/quuxworks/x',
        '{"owner":{"login":"quuxworks","node_id":"MDEyOk9yZ2FuaXphdGlvbjQ0NTU2Njc="}} quuxworks',
        '{"login":"quuxworks"} import x from \'@quuxworks/core\'',
        '{"login":"gemini-code-assist"} {"login":"greptile-apps","id":867647} by @greptile-apps',
        "company: {\n  name: 'Quuxling',\n}, by @quuxling at twitter.com/quuxling",
        "<sel|@ref>",
        "[2031-04-03, 12:01:11] ERROR server: x\n[12:01, 3/4/2031] Worker: x",
        "Users-list-view, Users-CRUD-x and people/data-models",
    ],
)
def test_false_shapes_stay(text: str) -> None:
    assert cleaned(text) == text


def test_a_user_is_the_same_user_in_every_form_and_every_file() -> None:
    first = cleaned(
        "ls /home/mmuster/x\nUSER=mmuster\nthanks MMuster and fix-mmuster, not mmusterly"
    )
    upper = USER.replace("user", "User")
    assert first == f"ls /home/{USER}/x\nUSER={USER}\nthanks {upper} and fix-{USER}, not mmusterly"
    assert USER in cleaned("write to mmuster@vendor.io")


@pytest.mark.parametrize(
    "word",
    ["grammar", "mark", "retries", "dirtiest", "git-sync2"],
)
def test_a_name_that_is_a_word_goes_in_paths_only(word: str) -> None:
    left = cleaned(f"ls /home/{word}/x\nUSER={word}\n{word} of the line")
    assert f"/home/{word}/" not in left
    assert left.endswith(f"\n{word} of the line")


@pytest.mark.parametrize("name", ["peter", "jared", "wang", "soph"])
def test_a_name_that_a_dictionary_holds_goes_in_sentences_too(name: str) -> None:
    assert name not in cleaned(f"ls /home/{name}/x\nUSER={name}\nask {name} first")


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
        ("8d0f1c2a (Jane Qvist 2031-04-02 10:11:12 +0000 7) x = 1", "Qvist"),
        ("cc @qvist-7 please", "qvist-7"),
        ('{"author": {"id": 3, "login": "qvist7", "name": "Jane Qvist"}}', "Qvist"),
        ('{"assignee": {"displayName": "Jane Qvist"}}', "Qvist"),
        ("[user]\n\temail = x@y.io\n\tname = Jane Qvist\n", "Qvist"),
        ("reviewers:\tmroot (Approved), qvist7 (Requested)", "qvist7"),
        ("M ../../Users/qvist7/Documents/notes.md", "qvist7"),
        ("see C:\\\\Users\\\\22967\\\\.ssh\\\\id, M Users/22967/x", "22967"),
        ('{\\"displayName\\":\\"Jane Qvist\\",\\"emailAddress\\":\\"x@y.io\\",\\"', "Qvist"),
        ("orgs/jane_qvist_org by Jane Qvist <x@y.io>", "qvist"),
        ("q=greta.qvist%40vendor.io&x=1", "greta"),
        ("mail &#103;reta.qvist&#64;vendor.io", "qvist"),
        ("pong from qvists-macbook-pro via", "qvists"),
        ("git checkout -b molly7/fix-login", "molly7"),
        ('{"name": "pkg", "author": "Jane Qvist"}', "Qvist"),
        ("12345+qvist7@users.noreply.github.com", "qvist7"),
        ("ping db01.prod.corp now", "db01"),
        ("ip-10-1-22-33.eu-west-1.compute.internal", "10-1-22-33"),
        ("shop.c9akciq32abc.eu-west-1.rds.amazonaws.com:5432", "c9akciq32abc"),
        ("DESKTOP-8F3K2LQ", "8F3K2LQ"),
        ("[30/7/2031, 15:05:11] Jane Qvist: hello\nso Jane said", "Jane"),
        ("Logged in to github.com account qvist7 (keyring); qvist7", "qvist7"),
        ("GitHub username: `qvist7`", "qvist7"),
        ("owner: Jane-Marie Qvist (Mimi)", "Mimi"),
        ("https://t.me/qvist7", "qvist7"),
        ("see [[notes/people/jq|Jane Qvist]]", "Qvist"),
        ("see people/jane-qvist.md", "qvist"),
        ('{"login": "qvist7", "type": "User"} import "github.com/qvist7/api"', "qvist7"),
        ("dial 10.20.30.40:6379", "10.20.30.40"),
        ("inet6 2a02:8108:96c0:1::7", "2a02"),
        ("ether a4:83:e7:12:9c:0b", "a4:83"),
        ("call (415) 223-4477", "223-4477"),
        ("call +49 30 1234567", "1234567"),
        ("手机13812345678", "12345678"),
        ("<@U04ABCDEFGH> look", "U04ABCDEFGH"),
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
    path.write_text("Jane\nx\n")
    with pytest.raises(DataError, match="line 2: 'x' is too short"):
        read_names(path)


SIGNS = "ls /home/qvist7/x\nUSER=qvist7\n"


@pytest.mark.parametrize(
    "text",
    [
        "import qvist7.io",
        'import "vendor.io/api/qvist7/util"',
        "qvist7_test, test_qvist7, api.qvist7, qvist7.io, qvist7(), std::qvist7, qvist7::new",
        "https://vendor.io/qvist7/x and https://github.com/other/qvist7/tree",
        "{qvist7} and $qvist7 and %qvist7",
        "s3://qvist7-lake/x and qvist7-factory:latest",
    ],
)
def test_a_known_name_stays_inside_identifiers_and_module_paths(text: str) -> None:
    assert cleaned(SIGNS + text).endswith("\n" + text)


@pytest.mark.parametrize(
    "text",
    [
        "qvist7, Qvist7's and (qvist7).",
        "cp -r /mnt/backup/qvist7/x .",
        "cd /home/qvist7/qvist7-notes and qvist7-laptop and refs/heads/qvist7/x",
        r"first\nqvist7 said",
        "https://qvist7.com/x, https://api.qvist7.dev and qvist7.workers.dev",
    ],
)
def test_a_known_name_goes_where_it_means_somebody(text: str) -> None:
    assert "qvist7" not in cleaned(SIGNS + text).lower()


@pytest.mark.parametrize(
    ("sign", "gone"),
    [
        ("see /home/qvist7/x", False),
        ("Author: qvist7 <mail@vendor.io>", False),
        ("Author: qvist7 <qvist7@vendor.io>", True),
        ("Co-authored-by: Q <12345+qvist7@users.noreply.github.com>", True),
        ("see /home/git-sync/x\nUSER=git-sync", False),
    ],
)
def test_a_name_is_replaced_in_sentences_when_two_signs_show_it(sign: str, gone: bool) -> None:
    sentence = "the qvist7 word, the entire word, the git-sync word"
    left = cleaned(f"{sign}\n{sentence}").rpartition("\n")[2]
    assert (left != sentence) is gone
    assert left.endswith(", the entire word, the git-sync word")


def test_a_name_with_one_sign_goes_where_accounts_stand() -> None:
    left = cleaned('"assignee": "qvist7"\n@qvist7 has qvist7/fix at github.com/qvist7/x; qvist7')
    assert left.count("qvist7") == 1
    assert left.endswith("; qvist7")


@pytest.mark.parametrize("sign", ["see /home/quibbo/x", "cc @quibbo please"])
def test_a_name_beside_an_address_that_nobody_has_is_one_sign(sign: str) -> None:
    author, sentence = "Author: Quibbo Lattner <quibbo@example.com>\n", "and quibbo did it"
    assert cleaned(author + sentence) == author + sentence
    assert cleaned(f"{sign}\n{sentence}").endswith("\n" + sentence)
    assert "quibbo" not in cleaned(f"{sign}\n{author}{sentence}").lower()


@pytest.mark.parametrize(
    "text",
    [
        r'{"user": "\u007aorblatt"}',
        r'{"user": "the zor\u0062latt", "n": 1}',
        r'{"user": "Z\u00f6rblatt"}',
        r'{"a": "{\"user\": \"\\u007aorblatt\"}"}',
    ],
)
def test_a_known_name_goes_from_json_that_escapes_its_letters(text: str) -> None:
    taught = user("ls /home/zorblatt/ and ssh zorblatt@h.internal")
    done = scrubbed(conversation(taught, user(text)))
    assert "latt" in text
    assert "latt" not in done.fixture.messages[1].text


def worked_in(path: str, text: str) -> str:
    """What is left of a text next to a call that opens a file."""
    edited = call("c1", file_path=path, new="see /Users/otto9/x")
    done = scrubbed(conversation(user(text), assistant("", edited), result("c1", "ok")))
    return done.fixture.messages[0].text


def test_the_folder_that_a_call_worked_in_is_sign_enough() -> None:
    left = worked_in("/Users/qvist7/api/main.py", "qvist7 and otto9")
    assert left.endswith(" and otto9")
    assert "qvist7" not in left


@pytest.mark.parametrize(
    "text",
    [
        "[qvist7](/qvist7)",
        "Merge pull request #7 from qvist7/fix and a%2Fqvist7%2Fb",
        r"{\"name\": \"qvist7\"}",
    ],
)
def test_a_login_goes_in_every_form_that_only_accounts_have(text: str) -> None:
    assert "qvist7" not in cleaned('{"author": {"login": "qvist7"}}\n' + text)


@pytest.mark.parametrize(
    "sign",
    [
        "origin\thttps://github.com/Qvistoria/api.git (push)",
        '[remote "origin"]\n\turl = https://github.com/Qvistoria/api.git',
    ],
)
def test_whose_repository_is_pushed_to_goes_in_names_of_folders_and_packages(sign: str) -> None:
    left = cleaned(
        f"{sign}\npackage qvistoria.api; com.qvistoria.x, qvistoria-notes/, see qvistoria.dev, "
        "https://vendor.io/qvistoria/x, github.com/other/api"
    )
    assert "qvistoria" not in left.lower()
    assert left.endswith("github.com/other/api")


def test_a_package_that_is_called_after_who_pushes_goes_where_it_is_imported() -> None:
    text = "import qvistoria.api.Client;\n"
    pushed = "origin\thttps://github.com/qvistoria/api.git (push)\n"
    assert cleaned(pushed + text).endswith(text)
    assert "qvistoria" not in cleaned(f"{pushed}package qvistoria.api;\n{text}")


@pytest.mark.parametrize("used", ["import '@qvistoria/core'", "see https://www.qvistoria.com"])
def test_a_company_that_is_pushed_to_and_whose_packages_or_pages_are_used_stays(used: str) -> None:
    text = f"origin\thttps://github.com/qvistoria/api.git (push)\n{used}"
    assert cleaned(text) == text


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (" * @author   Jane Qvist (Qv1st)\nby Qvist", "Qvist"),
        (" * @author   Jane Qvist (Qv1st)\n", "Qv1st"),
        ("Copyright (c) 2031 Jane Qvist\n", "Qvist"),
        ('86\tuserName = "Jane Qvist";\n87\t  userEmail = "jq@vendor.io";', "Qvist"),
        ("git remote add o ssh://git@ssh.github.com:443/qv12/api.git", "qv12"),
        ("see /home/entire/sdc1/home/entire/x", "entire"),
        ("+jane7@Qvists-MacBook-Pro api % make", "Qvists"),
        ("USER=marten9\nls /home/marten9/x\nMärten9 said", "Märten9"),
        ("USER=jorgen\nls /home/jorgen/x\nwritten by Jorgen Qvist, 2031", "Qvist"),
        (
            'git config user.email "mail@qvist.example-host.net"\nssh qvist.example-host.net',
            "qvist",
        ),
        ("-rw-r--r-- 1 qvist7 qvist7 12 Mar 3 10:12 a\n" * 3 + "/mnt/e/qvist7/x", "qvist7"),
    ],
)
def test_other_spellings_and_forms_of_a_person_go(text: str, gone: str) -> None:
    assert gone in text
    assert gone not in cleaned(text)


@pytest.mark.parametrize(
    "text",
    [
        'user.name = "Jane Qvist"\nuser.email = "jane@example.com"',
        'TeamLead(name="Jane Qvist", email="jane.qvist@company.com")',
        "Author: Qvist Robotics <info@example.com>",
        "Owner: Business Analyst (Mary)",
        "git remote add origin https://github.com/SEU-USUARIO/x.git",
        'SECRET_KEY="test-secret-key-32-chars-minimum!!"',
        "System.Text.Json, Version=9.0.0.0, PublicKeyToken=cc7b13ffcd2ddd51",
    ],
)
def test_what_is_nobodys_stays(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(
    ("opened", "goes"),
    [
        ("/home/qvistoria/conf/lib/users/qvistoria/x.nix", True),
        ("/home/qvistoria/x.nix", True),
        ("/home/jane/x.nix", False),
    ],
)
def test_an_account_that_is_nothing_else_goes_in_what_is_called_after_it(
    opened: str, goes: bool
) -> None:
    name = opened.split("/")[2]
    text = f"see conf.{name}.hardware and {name}-p14-gen2"
    left = worked_in(opened, text)
    assert name not in left if goes else left == text
