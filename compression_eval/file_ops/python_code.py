"""The files that a piece of Python would read and write, found by following its literals.

The code is parsed and never run. Statements are followed in order; paths are known if they are made
of literals: names, `Path` arithmetic, loops over literal lists, arguments of functions that the
code itself defines. Every branch is taken. Unknown effects are reported as such.
"""

import ast
import itertools
import posixpath
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compression_eval.file_ops.ledger import Ledger

_MAX_CODE = 100_000
_MAX_VALUES = 20
_MAX_ITEMS = 60
_MAX_STATEMENTS = 10_000
_MAX_DEPTH = 4

Kind = Literal["read", "write", "append", "delete", "rename", "unknown"]

_METHODS: dict[str, Kind] = {
    "write_text": "write",
    "write_bytes": "write",
    "read_text": "read",
    "read_bytes": "read",
    "unlink": "delete",
}
_FUNCTIONS: dict[str, tuple[Kind, int]] = {
    **dict.fromkeys(("os.remove", "os.unlink", "shutil.rmtree"), ("delete", 0)),
    **dict.fromkeys(("shutil.copy", "shutil.copy2", "shutil.copyfile"), ("write", 1)),
}
"""Functions with their effect, and the arguments that it concerns."""

_RENAMES = ("os.rename", "os.replace", "shutil.move")
_WRITERS = ("to_csv", "to_json", "to_parquet", "to_excel", "savefig")
_PATHS = ("Path", "PurePath", "PosixPath")
_FROM_PATH = ("joinpath", "resolve", "absolute", "expanduser")
_RUNNERS = (
    *("os.system", "subprocess.run", "subprocess.call", "subprocess.check_call"),
    *("subprocess.check_output", "subprocess.Popen", "exec", "eval"),
)


@dataclass(frozen=True)
class Effect:
    """An effect of the code; `path` is a label if `kind` is ``unknown``."""

    kind: Kind
    path: str
    to: str = ""
    text: str = ""


def code_effects(source: str) -> list[Effect]:
    """Return the effects of a piece of Python on files, in order.

    Code that is too long or cannot be parsed is one unknown effect.
    """
    if len(source) > _MAX_CODE:
        return [Effect("unknown", "python")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        follower = _Follower()
        follower.visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [Effect("unknown", "python")]
    return follower.effects


def record_code(
    ledger: Ledger, effects: Iterable[Effect], folder: str | None, *, doubtful: bool
) -> None:
    """Record the effects of code in a ledger.

    A file that the code reads and writes is modified; one that it only writes is written whole.

    Args:
        ledger: Records them.
        effects: The effects of the code.
        folder: Its working folder; None if unknown.
        doubtful: Whether the code failed, so that no write is certain.
    """
    effects = list(effects)
    read = {effect.path for effect in effects if effect.kind == "read"}
    written = {effect.path for effect in effects if effect.kind in ("write", "append")}
    for effect in effects:
        if effect.kind == "unknown":
            ledger.unknown("code", effect.path, rewrites=effect.path not in _RUNNERS)
            continue
        path = ledger.clean(effect.path, folder or "")
        if path is None:
            continue
        if folder is None and not path.startswith("/"):
            ledger.unknown("path", path)
        elif effect.kind == "read":
            if effect.path not in written:
                ledger.read(path)
        elif doubtful:
            ledger.unknown("outcome", f"python {effect.kind} {path}")
        elif effect.kind == "write" and effect.path not in read:
            ledger.written(path, effect.text or None)
        elif effect.kind == "write":
            ledger.modified(path)
        elif effect.kind == "append":
            ledger.appended(path)
        elif effect.kind == "delete":
            ledger.deleted(path)
        elif to := ledger.clean(effect.to, folder or ""):
            ledger.renamed(path, to)


class _Value(NamedTuple):
    """A possible text of an expression."""

    text: str
    is_path: bool = False


class _Follower(ast.NodeVisitor):
    """Follows statements in order, through every branch, and collects their effects."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self._names: dict[str, list[_Value]] = {}
        self._collections: dict[str, ast.expr] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._followed = 0
        self._depth = 0

    def visit(self, node: ast.AST) -> None:
        self._followed += isinstance(node, ast.stmt)
        if self._followed <= _MAX_STATEMENTS:  # nested loops over long lists
            super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions[node.name] = node

    def _pass_over(self, node: ast.AST) -> None:
        """Skip a definition, which runs nothing."""

    visit_ClassDef = visit_AsyncFunctionDef = visit_Lambda = _pass_over  # noqa: N815

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._bind(node.target, node.value)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        for item in self._items(node.iter):
            self._bind(node.target, item)
            for statement in node.body:
                self.visit(statement)
        for statement in node.orelse:
            self.visit(statement)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        self._call(node)

    def _items(self, node: ast.expr) -> Sequence[ast.expr | None]:
        """Return the elements of a literal collection; one unknown element for anything else."""
        match self._collection(node):
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return items[:_MAX_ITEMS]
            case ast.Dict(keys=keys):
                return [key for key in keys if key is not None][:_MAX_ITEMS]
            case ast.Call(func=ast.Attribute(value=holder, attr="items")):
                pairs = self._collection(holder)
                if isinstance(pairs, ast.Dict):
                    return [
                        ast.Tuple(elts=[key, value], ctx=ast.Load())
                        for key, value in zip(pairs.keys, pairs.values, strict=True)
                        if key is not None
                    ][:_MAX_ITEMS]
        return [None]

    def _collection(self, node: ast.expr) -> ast.expr:
        return self._collections.get(node.id, node) if isinstance(node, ast.Name) else node

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = self._values(value)
            self._collections.pop(target.id, None)
            if isinstance(value, ast.List | ast.Tuple | ast.Dict | ast.Set):
                self._collections[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            elements = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for part, item in itertools.zip_longest(target.elts, elements):
                if part is not None:
                    self._bind(part, item)

    def _values(self, node: ast.expr | None) -> list[_Value]:
        """Return the possible texts of an expression; empty if unknown."""
        values: list[_Value] = []
        match node:
            case ast.Constant(value=str(text)):
                values = [_Value(text)]
            case ast.Name(id=name):
                values = self._names.get(name, [])
            case ast.JoinedStr(values=parts):
                values = self._joined(parts, is_path=False)
            case ast.FormattedValue(value=inner):
                values = self._values(inner)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                values = self._joined([left, right])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                values = self._joined([left, right], is_path=False)
            case ast.Attribute(value=inner, attr="parent"):
                folders = [posixpath.dirname(value.text) for value in self._values(inner)]
                values = [_Value(folder or ".", is_path=True) for folder in folders]
            case ast.Call(func=ast.Attribute(inner, method), args=args) if method in _FROM_PATH:
                values = self._joined([inner, *args])
            case ast.Call(func=function, args=args):
                name = _dotted(function)
                if name.split(".")[-1] in _PATHS:
                    values = self._joined(args) if args else [_Value(".", is_path=True)]
                elif name == "os.path.join":
                    values = self._joined(args)
                elif name == "str" and len(args) == 1:
                    values = self._values(args[0])
        return values

    def _joined(self, nodes: Iterable[ast.expr], *, is_path: bool = True) -> list[_Value]:
        choices = [[value.text for value in self._values(node)] for node in nodes]
        combined = itertools.islice(itertools.product(*choices), _MAX_VALUES)
        return [
            _Value(posixpath.join(*texts) if is_path else "".join(texts), is_path)
            for texts in combined
        ]

    def _call(self, node: ast.Call) -> None:
        name, args = _dotted(node.func), node.args
        if function := self._functions.get(name):
            self._enter(function, node)
        elif name in _RUNNERS:
            self.effects.append(Effect("unknown", name))
        elif name in ("open", "io.open"):
            self._open(args[0] if args else None, _mode(node, args[1:]))
        elif name in _FUNCTIONS:
            kind, position = _FUNCTIONS[name]
            self._effect(kind, args[position] if len(args) > position else None)
        elif name in _RENAMES and len(args) > 1:
            self._rename(self._values(args[0]), args[1])
        elif isinstance(node.func, ast.Attribute):
            self._method(node.func.value, node.func.attr, node)

    def _method(self, holder: ast.expr, name: str, node: ast.Call) -> None:
        args, values = node.args, self._values(holder)
        if name in _METHODS:
            self._effect(_METHODS[name], holder, _literal(args[0]) if args else "")
        elif name == "open" and (values or _mode(node, args).strip("rbt")):
            self._open(holder, _mode(node, args))
        elif name in ("rename", "replace") and len(args) == 1:
            if paths := [value for value in values if value.is_path]:
                self._rename(paths, args[0])
        elif name == "touch" and values:
            self._effect("append", holder)
        elif name in _WRITERS and args:
            self._effect("write", args[0])

    def _open(self, path: ast.expr | None, mode: str) -> None:
        if "w" in mode or "x" in mode:
            self._effect("write", path)
        elif "a" in mode or "+" in mode:
            self._effect("append", path)
        elif mode == "?":
            self.effects.append(Effect("unknown", "open"))
        else:
            self._effect("read", path)

    def _effect(self, kind: Kind, path: ast.expr | None, text: str = "") -> None:
        values = self._values(path)
        if not values and kind != "read":
            self.effects.append(Effect("unknown", f"python {kind}"))
        self.effects += [Effect(kind, value.text, text=text) for value in values[:_MAX_VALUES]]

    def _rename(self, paths: list[_Value], to: ast.expr) -> None:
        targets = self._values(to)
        if len(paths) == 1 and len(targets) == 1:
            self.effects.append(Effect("rename", paths[0].text, to=targets[0].text))
        else:
            self.effects.append(Effect("unknown", "python rename"))

    def _enter(self, function: ast.FunctionDef, node: ast.Call) -> None:
        """Follow the body of a function with the arguments of one call."""
        if self._depth >= _MAX_DEPTH:
            return
        outer = dict(self._names), dict(self._collections)
        parameters = [*function.args.posonlyargs, *function.args.args]
        by_parameter: dict[str, ast.expr | None] = {parameter.arg: None for parameter in parameters}
        by_parameter.update(zip(by_parameter, node.args, strict=False))
        by_parameter.update({item.arg: item.value for item in node.keywords if item.arg})
        self._names |= {name: self._values(value) for name, value in by_parameter.items()}
        self._collections = {
            n: items for n, items in self._collections.items() if n not in by_parameter
        }
        self._depth += 1
        for statement in function.body:
            self.visit(statement)
        self._depth -= 1
        self._names, self._collections = outer


def _dotted(node: ast.expr) -> str:
    """Return a dotted name; empty for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _mode(node: ast.Call, rest: Sequence[ast.expr]) -> str:
    """Return the mode in which a call opens a file; a question mark if it is no literal."""
    mode = next((item.value for item in node.keywords if item.arg == "mode"), None)
    if mode is None and not rest:
        return "r"
    return _literal(mode or rest[0]) or "?"
