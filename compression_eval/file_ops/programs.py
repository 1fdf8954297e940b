"""The effects of common programs on the files in their arguments.

`run` looks up the function for a program; each records what that program reads, writes, moves or
removes. Interpreters and programs that run others follow the script or command they are given.
What may have written files in a way that is not known is counted as that.
"""

import itertools
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence

from compression_eval.file_ops.invocation import Invocation, programs
from compression_eval.file_ops.patches import apply_patch, is_envelope
from compression_eval.file_ops.python_code import code_effects, record_code
from compression_eval.file_ops.shell_grammar import Argument

_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|pypy3?")
_INLINE_TRACE = re.compile(r'^  File "<(?:stdin|string)>"', re.MULTILINE)
_UNPRINTED = re.compile(r"-[a-zA-Z]*[clLq][a-zA-Z]*|--(?:count|files-with.*|quiet|silent|files)")
_SED_SCRIPT = re.compile(r"-[nrsEz]*[ef]|--(?:expression|file)(?:=.*)?", re.DOTALL)
_MENDS = re.compile(
    r"(?:[\w-]+:)?(?:fmt|format|fix|lint:fix|lint-fix|codemod)(?::[\w-]+)?|--fix(?:-.*)?|--write"
    r"|black|isort|autopep8|yapf|autoflake|pyupgrade|prettier|gofmt|gofumpt|goimports|rustfmt"
    r"|clang-format|shfmt|swiftformat|pre-commit"
)
"""Words of formatters and of the like."""
_GIT_VALUE_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree")


def run(call: Invocation) -> None:
    """Record the effects of one program."""
    program = call.program
    call.lists = program in programs("listing")
    rule = _RULES.get(program)
    if program in programs("readers"):
        rule = _read
    elif _PYTHON.fullmatch(program):
        rule = _python
    elif program in programs("shells"):
        rule = _shell
    elif program in programs("interpreters"):
        rule = _interpreter
    if rule is not None:
        tolerant = program in programs("tolerant") or rule in (_read, _python, _shell)
        call.certain = tolerant or not call.failed
        if call.certain:
            rule(call)
    elif program in programs("harmless"):
        call.certain = program not in programs("answers")
    else:
        call.certain = False
        checks = program in programs("checks") or call.label in programs("check_commands")
        if not checks or _rewrites(call):
            call.ledger.unknown("program", call.label, rewrites=_rewrites(call))


def _rewrites(call: Invocation) -> bool:
    """Return whether a program is one that formats or mends files in place, and is told to."""
    words = {call.program, *call.texts}
    return any(map(_MENDS.fullmatch, words)) and not words & programs("only_checks")


def _read(call: Invocation) -> None:
    """Record the files that a program prints, whole or in part."""
    files = call.operands()
    if call.program in ("tr", "jq", "yq"):
        files = [] if call.program == "tr" else files[1:]
    if not files and call.input_file is not None:
        files = [call.input_file]
    call.reads(files)


def _diff(call: Invocation) -> None:
    """Record files that are compared: their differing lines are shown."""
    call.certain = False
    if call.failed and (call.outcome.exit_code or 0) > 1:
        return
    call.failed = False
    for argument in call.operands() if call.shown and not call.doubtful else ():
        for path in call.paths(argument, reads=True):
            call.ledger.read(path)


def _grep(call: Invocation) -> None:
    """Record files whose matching lines are shown."""
    call.certain = False
    if any(map(_UNPRINTED.fullmatch, call.texts)):
        call.lists = True
        return
    has_pattern_option = any(
        text in ("-e", "-f") or text.startswith("--regexp") for text in call.texts
    )
    files = call.operands()[0 if has_pattern_option else 1 :]
    if call.program in ("rg", "ag", "ack") or call.has("rR", "--recursive"):
        # A folder is searched, and its files are not opened one by one.
        files = [f for f in files if f.text and "." in posixpath.basename(f.text.rstrip("."))]
    call.reads(files, search=True)


def _sed(call: Invocation) -> None:
    """Record files that sed changes in place, else those it prints."""
    in_place = any(re.match(r"-[nrsEz]*i|--in-place", text) for text in call.texts)
    files = call.operands()
    if in_place and files and files[0].text == "":
        files = files[1:]  # BSD sed takes an empty suffix as a word of its own
    _edited(call, files[0 if any(map(_SED_SCRIPT.fullmatch, call.texts)) else 1 :], in_place)


def _perl(call: Invocation) -> None:
    """Record files that Perl changes in place, else those it prints."""
    if any(re.match(r"-[a-zA-Z0-9]*[eE]", text) for text in call.texts):
        in_place = any(re.match(r"-[0-9a-hj-zA-Z]*i", text) for text in call.texts)
        _edited(call, call.operands(), in_place)
    else:
        call.ledger.unknown("program", call.label)


def _awk(call: Invocation) -> None:
    """Record files that awk changes in place, else those it prints."""
    files = [argument for argument in call.operands() if argument.text != "inplace"]
    in_place = "inplace" in call.texts
    if not in_place and files and re.search(r">\s*\"", files[0].text or ""):
        call.ledger.unknown("code", "awk with its own output file")
    _edited(call, files[0 if "-f" in call.texts and not in_place else 1 :], in_place)


def _edited(call: Invocation, arguments: Iterable[Argument], in_place: bool) -> None:
    if not in_place:
        call.reads(arguments)
        return
    for path in call.touched(arguments):
        call.ledger.modified(path)


def _tee(call: Invocation) -> None:
    for path in call.touched(call.operands()):
        if call.has("a", "--append"):
            call.ledger.appended(path)
        else:
            call.ledger.written(path, call.standard_input)


def _touch(call: Invocation) -> None:
    for path in call.touched(call.operands()):
        if call.ledger.exists(path) is not True:  # a new timestamp is no change
            call.ledger.written(path)


def _mkdir(call: Invocation) -> None:
    for path in call.touched(call.operands()):
        parts = path.split("/")
        for end in range(1 if call.has("p", "--parents") else len(parts), len(parts) + 1):
            if (folder := "/".join(parts[:end])) not in ("", "~"):
                call.ledger.made_folder(folder)


def _remove(call: Invocation) -> None:
    ledger = call.ledger
    forced = call.has("f", "--force")
    deep = call.has("rR", "--recursive") or call.program == "rmdir"
    for path in call.touched(call.operands()):
        if ledger.exists(path) or ledger.is_folder(path) or not forced:
            ledger.deleted(path, folder=deep and "." not in posixpath.basename(path))
        elif not path.startswith("/tmp/"):  # noqa: S108 - a path in a conversation
            ledger.unknown("outcome", f"rm -f {path}")


def _copy_or_move(call: Invocation) -> None:
    """Record copies as new files, and moves as renames."""
    ledger = call.ledger
    sources = call.operands()
    named = ("-t", "--target-directory")
    into = next((b for a, b in itertools.pairwise(call.arguments) if a.text in named), None)
    if into is None:
        if len(sources) < 2:
            return
        sources, into = sources[:-1], sources[-1]
    text = into.text or ""
    moves = call.program in ("mv", "git")
    targets = call.paths(into, reads=True)  # what cannot be told of it is recorded below
    if not targets and text in (".", "./") and call.folder is not None:
        targets = [call.folder]
    if len(targets) != 1:
        aside = call.has("rRa", "--recursive", "--archive")
        call.unknown_path(f"{call.program} to {text or 'a variable'}", rewrites=not aside)
        return
    (target,) = targets
    moved = [(argument, path) for argument in sources for path in call.paths(argument)]
    inside = len(moved) > 1 or text.endswith(("/", "/.")) or text in (".", "..")
    inside = inside or ledger.is_folder(target)
    for argument, source in moved:
        if call.broke(argument.text):
            continue
        path = posixpath.join(target, posixpath.basename(source)) if inside else target
        if call.doubtful:
            ledger.unknown("outcome", f"{call.program} {source} {path}")
        elif moves:
            ledger.renamed(source, path)
        else:
            ledger.copied(source, path, folder=call.has("rRa", "--recursive", "--archive"))


def _link(call: Invocation) -> None:
    operands = call.operands()
    _writes(call, operands[1:] if len(operands) == 2 else [])


def _truncate(call: Invocation) -> None:
    _edited(call, call.operands(), in_place=True)


def _download(call: Invocation) -> None:
    """Record the file that a download goes to."""
    call.certain = False
    names = ("-o", "--output") if call.program == "curl" else ("-O", "--output-document")
    targets = [b for a, b in itertools.pairwise(call.arguments) if a.text in names]
    _writes(call, targets)
    if not targets and (call.program == "wget" or call.has("O", "--remote-name")):
        call.unknown_path(f"{call.program} names the file itself")


def _dd(call: Invocation) -> None:
    _writes(call, [Argument(text[3:]) for text in call.texts if text.startswith("of=")])


def _writes(call: Invocation, arguments: Iterable[Argument]) -> None:
    for path in call.touched(arguments):
        call.ledger.written(path)


def _patch(call: Invocation) -> None:
    """Record a patch given on standard input, or as an argument in the ``apply_patch`` form."""
    text = call.standard_input or next(filter(is_envelope, call.texts), None)
    if text is None or call.doubtful:
        call.unknown_path(call.program)
    else:
        apply_patch(call.ledger, text, call.folder)


def _find(call: Invocation) -> None:
    call.lists = True
    acting = ("-delete", "-exec", "-execdir", "-ok")
    words = list(itertools.dropwhile(lambda text: text not in acting, call.texts))
    if words:
        call.unknown_path(" ".join(["find", *words[:2]]))


def _xargs(call: Invocation) -> None:
    words = [argument.text or "?" for argument in call.operands()]
    if words and (words[0] in programs("harmless") or words[0] in ("grep", "rg")):
        call.lists = words[0] in programs("listing")
    else:
        call.unknown_path(" ".join(["xargs", *words[:1]]))


def _python(call: Invocation) -> None:
    """Record what code given on standard input or by ``-c`` does, or a script that is run."""
    call.certain = False
    texts = [argument.text for argument in call.arguments]
    names = [text for text in texts if text is not None and not text.startswith("-")]
    if "-c" in texts[:-1]:
        _inline_python(call, texts[texts.index("-c") + 1])
    elif "-m" in texts:
        module = texts[texts.index("-m") + 1] if "-m" in texts[:-1] else "?"
        if module not in programs("python_modules"):
            call.ledger.unknown("program", f"python -m {module}", rewrites=_rewrites(call))
    elif call.standard_input is not None and (not names or "-" in texts):
        _inline_python(call, call.standard_input)
    elif names:
        _python_script(call, names[0])


def _inline_python(call: Invocation, code: str | None) -> None:
    if code is None or not call.ledger.may_take(len(code)):
        call.ledger.unknown("code", "python")
        return
    broken = call.failed or bool(_INLINE_TRACE.search(call.outcome.text))
    record_code(call.ledger, code_effects(code), call.folder, doubtful=broken or call.doubtful)


def _python_script(call: Invocation, name: str) -> None:
    """Record a script that is run; its text is known if it was written in the conversation."""
    path = call.ledger.clean(name, call.folder or "") if call.folder is not None else None
    code = call.ledger.scripts.get(path) if path else None
    if code is None or not call.ledger.may_take(len(code)):
        call.ledger.unknown("program", f"python {name}")
        return
    # Reads of a script do not count: nothing shows that the text was printed.
    effects = [effect for effect in code_effects(code) if effect.kind != "read"]
    trace = re.search(rf'File "[^"\n]*{re.escape(posixpath.basename(name))}"', call.outcome.text)
    broken = call.failed or bool(trace and "Traceback" in call.outcome.text)
    record_code(call.ledger, effects, call.folder, doubtful=broken or call.doubtful)


def _shell(call: Invocation) -> None:
    """Follow the script of another shell."""
    call.certain = False
    inline = (b for a, b in itertools.pairwise(call.texts) if re.fullmatch(r"-[a-z]*c", a))
    script = next(inline, call.standard_input)
    if script is not None:
        call.run_script(script, call.folder)
        return
    for path in [path for argument in call.operands()[:1] for path in call.paths(argument)]:
        if path in call.ledger.scripts:
            call.run_script(call.ledger.scripts[path], call.folder)
        else:
            call.ledger.unknown("program", f"{call.program} {path}")


def _interpreter(call: Invocation) -> None:
    call.certain = False
    inline = call.standard_input is not None or {"-e", "-r", "--eval", "-p"} & set(call.texts)
    call.ledger.unknown("code" if inline else "program", call.label)


def _git(call: Invocation) -> None:
    """Record what a git command did to files."""
    while call.arguments and (call.arguments[0].text or "").startswith("-"):
        option, *rest = call.arguments
        if option.text == "-C" and rest and call.folder is not None and rest[0].text:
            call.folder = posixpath.normpath(posixpath.join(call.folder, rest[0].text))
            call.folder = "" if call.folder == "." else call.folder
        call.arguments = rest[1 if option.text in _GIT_VALUE_OPTIONS else 0 :]
    command = (call.arguments[0].text or "?") if call.arguments else ""
    call.arguments = call.arguments[1:]
    words = [argument.text for argument in call.arguments]
    call.certain = command in programs("git_sure")
    call.lists = command in programs("git_listing")
    if call.doubtful and command in ("mv", "rm", "restore", "checkout", "apply"):
        call.ledger.unknown("outcome", f"git {command}")
    elif command == "mv":
        _copy_or_move(call)
    elif command in ("rm", "restore", "checkout", "switch"):
        _git_files(call, command, words)
    elif command in ("show", "blame", "cat-file"):
        _git_shown(call, command)
    elif command in programs("git_rewrites") and not _only_tells(command, words):
        elsewhere = command in programs("git_elsewhere")
        call.ledger.unknown("git", f"git {command}", rewrites=not elsewhere)


def _git_files(call: Invocation, command: str, words: Sequence[str | None]) -> None:
    """Record files that git removes or restores."""
    spared = {"rm": ("--cached",), "restore": ("--staged", "-S")}
    after_dashes = call.arguments[words.index("--") + 1 :] if "--" in words else []
    if command in ("checkout", "switch") and not after_dashes:
        if not {"-b", "-B", "-c", "-C", "--orphan"} & set(words):
            call.ledger.unknown("git", " ".join(["git checkout", *filter(None, words[:1])]))
        return
    if set(spared.get(command, ())) & set(words):
        return
    for argument in after_dashes or call.operands():
        if argument.text in (".", "./"):
            action = "deleted" if command == "rm" else "modified"
            call.ledger.unknown("git", f"git, the whole folder {action}")
            continue
        for path in call.touched([argument]):
            if command == "rm":
                call.ledger.deleted(path)
            else:
                call.ledger.modified(path)


def _git_shown(call: Invocation, command: str) -> None:
    """Record files of a commit whose text git prints."""
    for text in call.texts if call.shown else ():
        name = text if command == "blame" else text.partition(":")[2]
        if text.startswith("-") or (command == "blame" and "." not in posixpath.basename(name)):
            continue
        path = call.ledger.clean(name)
        if path and not call.broke(text):
            call.ledger.read(path)


def _only_tells(command: str, words: Sequence[str | None]) -> bool:
    """Return whether a git command that can rewrite files leaves them unchanged."""
    if command == "reset":
        return not {"--hard", "--merge", "--keep"} & set(words)
    if command == "apply":
        return bool({"--check", "--stat"} & set(words))
    if command in ("stash", "worktree", "submodule"):
        return words[:1] in (["list"], ["show"], ["status"])
    return command == "clean" and "-n" in words


_RULES: dict[str, Callable[[Invocation], None]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag", "ack"), _grep),
    **dict.fromkeys(("diff", "cmp", "sdiff", "colordiff"), _diff),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("awk", "gawk", "mawk"), _awk),
    **dict.fromkeys(("rm", "rmdir", "unlink"), _remove),
    **dict.fromkeys(("cp", "mv", "install"), _copy_or_move),
    **dict.fromkeys(("curl", "wget"), _download),
    **dict.fromkeys(("find", "fd", "fdfind"), _find),
    **dict.fromkeys(("tee", "sponge"), _tee),
    **dict.fromkeys(("patch", "apply_patch", "applypatch"), _patch),
    "perl": _perl,
    "touch": _touch,
    "mkdir": _mkdir,
    "ln": _link,
    "truncate": _truncate,
    "dd": _dd,
    "xargs": _xargs,
    "git": _git,
}
