# SPDX-License-Identifier: Apache-2.0
"""Which names of a file may stand for something foreign, told from its text.

One rule, applied until nothing is added: a statement that mentions such a name as a value makes one
of every name that it binds or fills, of the function that it returns from and of the parameters of
what it calls. Names of a function are kept apart from those of others; attributes are not.
"""

import re
from collections.abc import Mapping

from fasttrack.meaning.callees import BUILTINS, HOLDING, PASSING, SHAPING, SILENT
from fasttrack.meaning.carrying import Call, Statement
from fasttrack.meaning.definitions import Definitions
from fasttrack.meaning.lines import Block, Lines
from fasttrack.meaning.mentions import QUOTES, Key, Mentions

_GIVING = ("import_module", "__import__", "getmodule", "getmembers", "resolve_name")
"""Functions whose calls give something foreign."""
_HOOKS = ("__init_subclass__", "__new__", "__prepare__", "__init__", "__mro_entries__")
NOT_FOLLOWED = -1
"""The level of a name that is foreign, and of which mentions say nothing."""
FACTS_LIMIT = 6_000
"""Names that are followed; with more, everything may be foreign."""


class Reachable:
    """The names of one file that may stand for something foreign.

    Attributes:
        all: nobody knows which; all may.
        sites: by a function, the lines on which it is handed something foreign.
        owners: classes that keep something foreign.
        carrying: the first lines of statements that mention something foreign.
        unclear: those of them that hand it to what is no function of this file.
    """

    def __init__(
        self,
        lines: Lines,
        words: frozenset[str],
        foreign: Mapping[str, int],
        makers: frozenset[str],
    ) -> None:
        """Follows names until nothing is added.

        Args:
            lines: the lines of a file.
            words: the words in it.
            foreign: names that are foreign from the start; attributes have a dot before them.
            makers: imported names of modules whose functions hand nothing through.
        """
        self._lines = lines
        self._makers = makers
        self._imported = frozenset(name for name in foreign if name[0] != ".")
        self._mentions = Mentions(lines, words)
        giving = frozenset(name for name, level in foreign.items() if level > 0)
        self._defined = Definitions(lines, giving)
        self.all = False
        self.sites: dict[int, set[int]] = {}
        self.owners: set[str] = set()
        self.carrying: set[int] = set()
        self.unclear: set[int] = set()
        self._levels: dict[Key, int] = {}
        self._held: set[Key] = set()
        self._queue: list[Key] = []
        self._statements: dict[int, Statement] = {}
        text = lines.text
        if "*" in foreign:
            self.all = True
            return
        for name, level in foreign.items():
            if level == NOT_FOLLOWED:
                self._levels[-1, name] = 0
            else:
                self._add((-1, name), level)
        for name in _GIVING:
            if name in text:
                self._add((-1, name), 1)
                self._add((-1, f".{name}"), 1)
        self._follow()

    def is_foreign(self, name: str, line: int) -> bool:
        """Whether a name, or an attribute with a dot before it, may stand for something foreign."""
        return self.all or self._level(name, self._lines.position_of(line)) >= 0

    def leads(self, text: str, line: int, *, behind: bool = True) -> bool:
        """Whether a text on a line mentions something foreign, as what is changed.

        Args:
            text: the text.
            line: the line.
            behind: what is held counts as well.
        """
        if self.all:
            return True
        position = self._lines.position_of(line)
        for found in _WORD.finditer(text):
            name = found[0]
            if name[0] in {'"', "'"}:
                name = f".{name[1:]}"
            level = self._level(name, position)
            told = level >= 0 and (level or not self._mentions.is_call(text, found.end()))
            if told and (behind or not self._only_holds(name, position)):
                return True
        return False

    def _only_holds(self, name: str, position: int) -> bool:
        keys = [key for key in ((position, name), (-1, name)) if key in self._levels]
        return all(key in self._held for key in keys)

    @property
    def lent(self) -> dict[str, int]:
        """Names of the module, and attributes with a dot, with 1 where calls may give one."""
        if self.all:
            return {"*": 0}
        return {name: level for (position, name), level in self._levels.items() if position < 0}

    def _level(self, name: str, position: int) -> int:
        own = self._levels.get((position, name), -1) if position >= 0 else -1
        return max(own, self._levels.get((-1, name), -1))

    def _add(self, key: Key, level: int, *, held: bool = False) -> None:
        before = self._levels.get(key, -1)
        if held and before < 0:
            self._held.add(key)
        elif not held:
            self._held.discard(key)
        if level > before:
            self._levels[key] = level
            self._queue.append(key)

    def _follow(self) -> None:
        while self._queue:
            if len(self._levels) > FACTS_LIMIT:
                self.all = True
                return
            key = self._queue.pop()
            level = self._levels[key]
            for place in list(self._mentions.places(key)):
                if self._mentions.is_mention(key[1], place, 1 if key in self._held else level):
                    self._carry(place, level)

    def _carry(self, place: int, level: int) -> None:
        """Hands a mention on to whatever its statement binds, defines or calls."""
        if self._mentions.is_idle(place):
            return
        first, last = self._lines.statement_of(self._lines.line_of(place))
        if first not in self._statements:
            self._statements[first] = Statement("\n".join(self._lines.rows[first:last]))
        statement = self._statements[first]
        relative = place - self._lines.starts[first]
        if not statement.is_value(relative) or self._mentions.is_plain_text(place, statement.text):
            return
        if statement.word == "def":
            key = (self._lines.position_of(first), statement.parameter_of(relative))
            self._add(key, level)
        elif statement.word == "class":
            self._carry_into_class(level, first)
        else:
            self._carry_through_calls(statement, place, level, first)

    def _carry_into_class(self, level: int, first: int) -> None:
        self.carrying.add(first)
        for name in _HOOKS:
            for position in self._defined.functions.get(name, ()):
                self._give(position, "", -1, level, first)

    def _carry_through_calls(
        self, statement: Statement, place: int, level: int, first: int
    ) -> None:
        for call in statement.calls_around(place - self._lines.starts[first]):
            last_part = call.callee.rpartition(".")[2]
            higher = -1
            if last_part not in SILENT:
                self.carrying.add(first)
                higher = self._handed_on(call, last_part, level, first)
            if higher < 0:
                return
            level = max(level, higher)
        before = self._lines.text[place - 1 : place]
        if statement.word == "@" or (before not in QUOTES and self._mentions.is_in_text(place)):
            return
        self.carrying.add(first)
        if "lambda" in statement.text:
            level = 1
        self._bind(statement, self._lines.position_of(first), first, level)

    def _handed_on(self, call: Call, last: str, level: int, first: int) -> int:
        """Hands an argument to what is called: -1 when its result has nothing of it."""
        root = call.callee.partition(".")[0]
        self._give_named(self._statements[first], level, first)
        if root in self._makers or (last == "cast" and not call.index):
            return -1
        if last in self._defined.functions and (root == last or root not in self._imported):
            for position in self._defined.functions[last]:
                self._give(position, call.keyword, call.index, level, first)
                if root in self._lines.classes and root != last and call.index > 0:
                    # A method that is called on its class is handed its object first.
                    self._give(position, "", call.index - 1, level, first)
            return -1 if last not in self._lines.classes or last in self._defined.initialised else 0
        if last in PASSING:
            return 1
        if root in BUILTINS or root in self._imported or last in HOLDING:
            return 0
        return self._handed_to_unknown(call, last, first)

    def _handed_to_unknown(self, call: Call, last: str, first: int) -> int:
        """The same for a callee of which the file does not tell what it is."""
        root = call.callee.partition(".")[0]
        if not root and last in SHAPING:
            return -1
        self.unclear.add(first)
        if "." in call.callee and self._statements[first].fills:
            return 0
        if (
            not root
            or root[0] in ")]."
            or last in self._defined.callables
            or root in self._defined.callables
        ):
            return 1
        return 0 if last in self._defined.class_names else -1

    def _give_named(self, statement: Statement, level: int, first: int) -> None:
        """Hands something to the functions that a statement names without calling them."""
        for name in statement.uncalled:
            if name in self._defined.functions and name not in _HOOKS:
                for position in self._defined.functions[name]:
                    self._give(position, "", -1, level, first)

    def _bind(self, statement: Statement, position: int, first: int, level: int) -> None:
        keys = statement.keys
        for names, held in ((keys.bound, False), (keys.held, True)):
            for name in names:
                self._bind_name(name, position, first, level, held=held)
        word = statement.word
        if position >= 0 and (word in {"return", "yield"} or "yield" in statement.text):
            self._return(self._lines.blocks[position])
        if word in {"match", "raise"}:
            self._capture()

    def _bind_name(self, name: str, position: int, first: int, level: int, *, held: bool) -> None:
        if name[0] == ".":
            if name == ".__dict__":
                return  # a word that always needs a look
            self._add((-1, name), level, held=held)
            self._own(position, first)
            return
        self._add((position, name), level, held=held)
        if position < 0:
            if self._lines.rows[first][:1] in {" ", "\t"}:
                self._add((-1, f".{name}"), level, held=held)
                self._own(position, first)
        elif name in self._defined.outer:
            self._add((-1, name), level, held=held)

    def _own(self, position: int, first: int) -> None:
        """Notes that a class keeps something foreign."""
        if position >= 0 and self._lines.blocks[position].owner:
            self.owners.add(self._lines.blocks[position].owner)
        elif position < 0:
            for number in range(first, max(-1, first - 400), -1):
                if found := _CLASS.match(self._lines.rows[number]):
                    self.owners.add(found[1])
                    return

    def _return(self, block: Block) -> None:
        if block.name.startswith("__") and block.owner:
            self._add((-1, block.owner), 1)
            self.owners.add(block.owner)
        else:
            self._add((-1, f".{block.name}" if block.owner else block.name), 1)
            if block.owner:
                self.owners.add(block.owner)

    def _capture(self) -> None:
        """Names that a `case` or an `except` binds."""
        for number, row in enumerate(self._lines.rows):
            text = row.lstrip()
            if text.startswith(("case ", "except ")):
                position = self._lines.position_of(number)
                for name in _PLAIN.findall(text)[1:]:
                    self._add((position, name), 1)

    def _give(self, position: int, keyword: str, index: int, level: int, first: int) -> None:
        """Makes a parameter of a function foreign, or all of them when nobody knows which."""
        if first >= 0:
            self.sites.setdefault(position, set()).add(first)
        for name in self._defined.heads[position].taking(keyword, index):
            self._add((position, name), level)


_WORD = re.compile(r"[.\"']?(?<!\w)[A-Za-z_]\w*")
_PLAIN = re.compile(r"[A-Za-z_]\w*")
_CLASS = re.compile(r"[ \t]*class[ \t]+(\w+)")
