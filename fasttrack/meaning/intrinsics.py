# SPDX-License-Identifier: Apache-2.0
"""Functions of Python that hand objects on or change them: `getattr`, `vars`, `partial`, `open`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fasttrack.meaning import hooks, importing, patching, sequences
from fasttrack.meaning.handlers import Handler, rows
from fasttrack.meaning.kinds import Kind
from fasttrack.meaning.objects import attribute, element, elements
from fasttrack.meaning.values import (
    UNKNOWN,
    Bound,
    Foreign,
    Function,
    Items,
    Made,
    Names,
    Operation,
    OwnClass,
    OwnObject,
    Partial,
    Text,
    Value,
    Values,
    joined,
    text,
    texts,
)

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader

PATH = "pathlib.Path"


def writes(mode: Values) -> bool:
    """Whether a mode of `open` is known to write."""
    return any(letter in known for known in texts(mode) for letter in "wax+")


def _getattr(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    found = [arguments.at(2)]
    for value in arguments.at(0):
        names = texts(arguments.at(1))
        found += [attribute(reader, value, name) for name in names]
        if not names and isinstance(value, Foreign):
            found.append((value.part(patching.HIDDEN),))
    return joined(UNKNOWN, *found)


def _vars(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    if not arguments.given:
        scope = reader.frame.scope
        return (Names(scope.module if function.name.endswith("globals") else scope),)
    return joined(UNKNOWN, *(attribute(reader, v, "__dict__") for v in arguments.at(0)))


def _type(_: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    if len(arguments.given) == 3:
        attributes = {
            key: values
            for value in arguments.at(2)
            if isinstance(value, Items)
            for key, values in zip(value.keys or (), value.values, strict=False)
            if key is not None
        }
        return (OwnClass(text(arguments.at(0)) or function.name, (), attributes),)
    found: list[Value] = []
    for value in arguments.at(0):
        if isinstance(value, OwnObject):
            found.append(value.of)
        elif isinstance(value, Foreign):
            found.append(value.part("__class__"))
        elif isinstance(value, Function):
            found.append(Foreign("types.FunctionType"))
    return tuple(found)


def _namespace(_: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    return (OwnObject(OwnClass(function.name, (), {}), dict(arguments.named)),)


def _super(_: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """`super(kind, x)` of a foreign object is that object, as classes above it see it."""
    receivers = tuple(value for value in arguments.at(1) if isinstance(value, Foreign))
    return receivers or (Made(function.name),)


def _property(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    """`property(get, set)`: its first function, with what sets."""
    getters, setters = arguments.at(0, "fget"), arguments.at(1, "fset")
    found = [value for value in getters or setters if isinstance(value, Function)]
    return tuple(
        Function(f.node, f.scope, f.defaults, "property", {"fset": setters}, f.owner) for f in found
    )


def _field(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    """A field of a data class: its default value, or what its factory makes."""
    made = reader.apply(
        arguments.named.get("default_factory", UNKNOWN), replace(arguments, given=(), named={})
    )
    return joined(arguments.named.get("default", UNKNOWN), made)


def _replaced(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    """`dataclasses.replace(x, name=value)`: the same with other attributes."""
    return tuple(
        OwnObject(value.of, {**value.attributes, **arguments.named})
        if isinstance(value, OwnObject)
        else Made("dataclasses.replace")
        for value in arguments.at(0)
    )


def _copied(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """A copy of an own object runs what its class says; of others, what they hold is the same."""
    for value in arguments.at(0):
        for name in ("__copy__", "__deepcopy__", "__getstate__", "__reduce__", "__reduce_ex__"):
            for made in hooks.hook(reader, value, name):
                first, rest, *_ = [*elements(reader, (made,)), UNKNOWN, UNKNOWN]
                given = tuple(elements(reader, rest))
                reader.apply(first, replace(arguments, given=given, named={}))
    if function.name != "copy.copy":
        return (Made(function.name),)
    return tuple(v for v in arguments.at(0) if not isinstance(v, Foreign)) or (Made("copy.copy"),)


def _partial_method(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    named = tuple(arguments.named.items())
    return (Partial(arguments.at(0, "func"), arguments.given[1:], named, is_method=True),)


def _partial(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    named = tuple(arguments.named.items())
    return (Partial(arguments.at(0, "func"), arguments.given[1:], named),)


def _getter(_: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    name = function.name.rpartition(".")[2]
    return (Operation(name, arguments.given, tuple(arguments.named.items())),)


def _get_item(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    key = text(arguments.at(1))
    return joined(UNKNOWN, *(element(reader, value, key, None) for value in arguments.at(0)))


def _first(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    return arguments.at(0)


def _cast(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    return arguments.at(1, "val")


def _open(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    if writes(arguments.at(1, "mode")):
        reader.add(Kind.FILES, function, "called to write", arguments.node)
    return (Made(function.name),)


def _logger(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """The root logger, another module's, or this path's own."""
    if not arguments.given and not arguments.named:
        return (Foreign("logging.root", function.steps),)
    name = text(arguments.at(0, "name"))
    if name is None or reader.project.is_own_name(name, reader.frame.scope.title):
        return (Made(function.name),)
    return (Foreign("logging.getLogger()", (f"the logger `{name}`",)),)


def _context(_: "Reader", function: Foreign, __: "Arguments") -> Values:
    return (Foreign(f"{function.name}()", function.steps),)


def _method(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    receivers: tuple[Value, ...] = arguments.at(1)
    functions = [f for f in arguments.at(0) if isinstance(f, Function)]
    return tuple(Bound(receiver, f) for receiver in receivers for f in functions)


def _text(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    known = text(arguments.at(0))
    return (Text(known),) if known is not None else UNKNOWN


def _path(_: "Reader", __: Foreign, ___: "Arguments") -> Values:
    return (Made(PATH),)


HANDLERS: Mapping[str, Handler] = {
    **importing.HANDLERS,
    **patching.HANDLERS,
    **sequences.HANDLERS,
    **rows(_getattr, "builtins.getattr inspect.getattr_static"),
    **rows(_vars, "builtins.vars builtins.globals builtins.locals"),
    **rows(_type, "builtins.type types.new_class"),
    **rows(_namespace, "types.SimpleNamespace argparse.Namespace threading.local "
           "types.ModuleType"),
    **rows(_partial, "functools.partial"),
    **rows(_partial_method, "functools.partialmethod"),
    **rows(_super, "builtins.super"),
    **rows(_property, "builtins.property"),
    **rows(_field, "dataclasses.field"),
    **rows(_replaced, "dataclasses.replace copy.replace"),
    **rows(_copied, "copy.copy copy.deepcopy pickle.dumps pickle.dump"),
    **rows(_getter, "operator.attrgetter operator.itemgetter operator.methodcaller"),
    **rows(_get_item, "operator.getitem"),
    **rows(_first, "contextlib.nullcontext contextlib.closing weakref.proxy builtins.staticmethod "
            "builtins.classmethod functools.cache collections.ChainMap"),
    **rows(_cast, "typing.cast"),
    **rows(_open, "builtins.open io.open codecs.open gzip.open bz2.open lzma.open os.fdopen"),
    **rows(_logger, "logging.getLogger"),
    **rows(_context, "decimal.getcontext"),
    **rows(_method, "types.MethodType"),
    **rows(_text, "builtins.str sys.intern"),
    **rows(_path, "pathlib.Path pathlib.PosixPath pathlib.Path.cwd pathlib.Path.home"),
}  # fmt: skip
"""Names of functions to what the model does for them."""
