"""The review desk: pull requests, CI and issues from the offline mirror in desk/.

Reading commands print. `review` and `issue-new` show what would be posted; only --send posts.
"""

import argparse
import json
import sys
from pathlib import Path

DESK = Path(__file__).resolve().parent.parent / "desk"
OUTCOMES = ("approve", "request-changes", "comment", "close")


def load(path):
    return json.loads((DESK / path).read_text(encoding="utf-8"))


def save(path, value):
    (DESK / path).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def show_pr(args):
    pr = load(f"prs/{args.number}/pr.json")
    print(f"#{pr['number']}  {pr['title']}")
    first = " (first contribution)" if pr["first_contribution"] else ""
    print(f"by {pr['author']}{first}, opened {pr['opened']}, {pr['state']}")
    print(f"{pr['head']} -> {pr['base']}   +{pr['added']} -{pr['removed']}")
    print(f"labels: {', '.join(pr['labels'])}")
    print("files:  " + "\n        ".join(pr["files"]))
    print(f"\n{pr['body']}")


def show_diff(args):
    print((DESK / f"prs/{args.number}/patch.diff").read_text(encoding="utf-8").rstrip())


def show_comments(args):
    for comment in load(f"prs/{args.number}/comments.json"):
        print(f"[{comment['id']}] {comment['by']}, {comment['date']}\n  {comment['text']}")


def show_ci(args):
    print((DESK / "ci" / load("ci/index.json")[args.ref]).read_text(encoding="utf-8").rstrip())


def list_issues(args):
    for issue in load("issues.json")["issues"]:
        if args.label and args.label not in issue["labels"]:
            continue
        tags = ", ".join([*issue["labels"], f"milestone {issue['milestone'] or 'none'}"])
        print(f"#{issue['number']}  {issue['title']}  [{tags}]")


def review(args):
    body = Path(args.body).read_text(encoding="utf-8").strip()
    lines = body.splitlines()
    if args.outcome == "request-changes" and not any(x.startswith("Alternative:") for x in lines):
        sys.exit("refused: request-changes needs a line that starts with 'Alternative:' (rule 4)")
    head = f"review of #{args.number}: {args.outcome}, {len(body)} characters"
    if not args.send:
        print(f"DRY RUN {head}")
        return
    pr = load(f"prs/{args.number}/pr.json")
    pr["labels"] = [x for x in pr["labels"] if x != "needs-triage"] + ["changes-requested"]
    save(f"prs/{args.number}/pr.json", pr)
    save(f"prs/{args.number}/review.json", {"id": "rv-3318", "outcome": args.outcome, "body": body})
    print(f"POSTED rv-3318, {head}\nlabels now: {', '.join(pr['labels'])}")


def new_issue(args):
    body = Path(args.body).read_text(encoding="utf-8").strip()
    state = load("issues.json")
    number = state["next"]
    tags = ", ".join([*args.label, f"milestone {args.milestone or 'none'}"])
    if not args.send:
        print(f"DRY RUN issue: {args.title}  [{tags}], {len(body)} characters")
        return
    state["next"] += 1
    issue = {"number": number, "title": args.title, "state": "open", "labels": args.label}
    state["issues"].append({**issue, "milestone": args.milestone, "body": body})
    save("issues.json", state)
    print(f"POSTED #{number}  {args.title}  [{tags}]")


def main():
    parser = argparse.ArgumentParser(prog="desk")
    commands = parser.add_subparsers(required=True)
    for name, function in (("pr", show_pr), ("diff", show_diff), ("comments", show_comments)):
        command = commands.add_parser(name)
        command.add_argument("number", type=int)
        command.set_defaults(run=function)
    command = commands.add_parser("ci")
    command.add_argument("ref")
    command.set_defaults(run=show_ci)
    command = commands.add_parser("issues")
    command.add_argument("--label")
    command.set_defaults(run=list_issues)
    command = commands.add_parser("review")
    command.add_argument("number", type=int)
    command.add_argument("--outcome", choices=OUTCOMES, required=True)
    command.add_argument("--body", required=True)
    command.add_argument("--send", action="store_true")
    command.set_defaults(run=review)
    command = commands.add_parser("issue-new")
    command.add_argument("--title", required=True)
    command.add_argument("--body", required=True)
    command.add_argument("--label", action="append", default=[])
    command.add_argument("--milestone")
    command.add_argument("--send", action="store_true")
    command.set_defaults(run=new_issue)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
