"""Pull requests without a server: they live as JSON files in `.git/review/`.

    python tools/review.py open --title "SILT-9: say what" --body "why"
    python tools/review.py sync NUMBER
    python tools/review.py reply NUMBER THREAD "text"
    python tools/review.py merge NUMBER

`sync` takes in what reviewers sent by mail; the gateway drops it into `tools/review.json`.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / ".git" / "review"
SETTINGS = ROOT / "tools" / "review.json"
TITLE = re.compile(r"SILT-\d+: .+")


class Refused(Exception):
    pass


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"git {arguments[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def head(branch: str) -> str:
    return git("rev-parse", "--short=7", branch)


def path_of(number: int) -> Path:
    return STORE / f"pr-{number}.json"


def load(number: int) -> dict:
    if not path_of(number).exists():
        raise Refused(f"there is no pull request {number}")
    return json.loads(path_of(number).read_text())


def save(request: dict) -> None:
    STORE.mkdir(exist_ok=True)
    path_of(request["number"]).write_text(json.dumps(request, indent=1) + "\n")


def changes(base: str, branch: str) -> list[str]:
    return [
        f"{added:>5} +{removed:>4} -  {name}"
        for added, removed, name in (
            line.split("\t") for line in git("diff", "--numstat", f"{base}...{branch}").splitlines()
        )
    ]


def open_request(options: argparse.Namespace) -> None:
    branch = git("branch", "--show-current")
    if branch == options.base:
        raise Refused(f"{branch} is the base; work on a branch")
    if git("status", "--porcelain"):
        raise Refused("there are uncommitted changes")
    if not TITLE.fullmatch(options.title) or len(options.title) > 60:
        raise Refused("a title is 'SILT-nnn: text', 60 characters at most")
    settings = json.loads(SETTINGS.read_text())
    number = settings["first_number"]
    while number in settings["used_by_tickets"] or path_of(number).exists():
        number += 1
    request = {
        "number": number, "state": "open", "title": options.title, "body": options.body,
        "branch": branch, "base": options.base, "threads": [], "approved": {}, "read": 0,
    }  # fmt: skip
    save(request)
    print(f"opened pull request #{number}  {options.title}")
    print(f"{branch} ({head(branch)}) into {options.base} ({head(options.base)})")
    print("\n".join(changes(options.base, branch)))
    print("reviewers: marsh-owl (owner of siltpump/batcher.py)")


def sync(options: argparse.Namespace) -> None:
    request = load(options.number)
    mails = json.loads(SETTINGS.read_text())["mail"].get(request["branch"], [])
    fresh = 0
    for mail in mails[request["read"] :]:
        if mail["kind"] == "approve":
            if any(not thread["replies"] for thread in request["threads"]):
                break
            request["approved"][mail["by"]] = head(request["branch"])
            print(f"{mail['by']} approved {head(request['branch'])}: {mail['text']}")
        else:
            lines = (ROOT / mail["file"]).read_text().splitlines()
            line = next((n for n, text in enumerate(lines, 1) if mail["at"] in text), 0)
            thread = "t-" + hashlib.sha256(mail["text"].encode()).hexdigest()[:4]
            request["threads"].append({"id": thread, **mail, "line": line, "replies": []})
            print(f"{thread}  {mail['by']} on {mail['file']}:{line}\n{mail['text']}")
        request["read"] += 1
        fresh += 1
    if not fresh:
        print(f"nothing new on #{options.number}")
    save(request)


def reply(options: argparse.Namespace) -> None:
    request = load(options.number)
    for thread in request["threads"]:
        if thread["id"] == options.thread:
            thread["replies"].append({"at": head(request["branch"]), "text": options.text})
            save(request)
            print(f"replied to {thread['by']} in {thread['id']} at {head(request['branch'])}")
            return
    raise Refused(f"#{options.number} has no thread {options.thread}")


def merge(options: argparse.Namespace) -> None:
    request = load(options.number)
    tip = head(request["branch"])
    unanswered = [t["id"] for t in request["threads"] if not t["replies"]]
    if unanswered:
        raise Refused(f"unanswered: {', '.join(unanswered)}")
    if tip not in request["approved"].values():
        raise Refused(f"nobody approved {tip}")
    tests = subprocess.run(
        [sys.executable, "-m", "unittest", "discover", "-s", "tests", "-t", "."],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    print("tests:", tests.stderr.strip().splitlines()[-1])
    if tests.returncode:
        raise Refused("tests fail")
    git("checkout", "-q", request["base"])
    git("merge", "--no-ff", "-q", "-m", f"{request['title']} (#{request['number']})", tip)
    git("branch", "-D", request["branch"])
    request.update(state="merged", merged_as=head(request["base"]))
    save(request)
    print(f"merged #{request['number']} into {request['base']} as {request['merged_as']}")
    print(f"deleted branch {request['branch']}")


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    for name, work in (("open", open_request), ("sync", sync), ("reply", reply), ("merge", merge)):
        command = commands.add_parser(name)
        command.set_defaults(work=work)
        if name == "open":
            command.add_argument("--title", required=True)
            command.add_argument("--body", default="")
            command.add_argument("--base", default="main")
        else:
            command.add_argument("number", type=int)
        if name == "reply":
            command.add_argument("thread")
            command.add_argument("text")
    options = parser.parse_args()
    try:
        options.work(options)
    except Refused as error:
        print(f"refused: {error}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
