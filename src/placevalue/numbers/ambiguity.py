r"""Refuse regular expressions that may take far longer than the text is long, such as `(\d+)+e` on 24 digits.

Both Python and the tokenizer try one way after another to match a text. If a text of n characters can be split in 2^n
ways, or in n^2, a match that fails tries them all. So the expression is read as an automaton whose states are its
characters, `(\d+)+e` as two, and refused if two ways through it read the same text again and again.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from placevalue.common.errors import ConfigError

_LONGEST, _COPIES, _STEPS = 300, 40, 200_000
"""The most characters of an expression, how often one that is repeated is counted, and how much is looked at."""
_REPEATED, _WAYS = 24, 20_000
"""A text that repeats one or two characters so often may be read in so many ways."""
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ASSERTIONS = (codes.ASSERT, codes.ASSERT_NOT)
_CLASSES = {
    codes.CATEGORY_DIGIT: string.digits,
    codes.CATEGORY_SPACE: string.whitespace,
    codes.CATEGORY_WORD: f"{string.ascii_letters}{string.digits}_",
}
_NEGATED = {
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}
_BARS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\|", re.DOTALL)
"""A bar between alternatives, and what may contain other bars."""
State = int
Ways = Counter[State]


@lru_cache(maxsize=64)
def refuse_ambiguous(regex: str, setting: str) -> None:
    """Raise an error that names the setting if a regular expression could take far longer than the text is long."""
    try:
        _check(parser.parse(_BARS.sub(_keep_apart, regex), re.ASCII))
    except _TooLongError:
        raise ConfigError(f"{setting}={regex!r} has too many parts to tell how long it may take: shorten it") from None
    except _AmbiguousError:
        raise ConfigError(
            f"{setting}={regex!r} can match the same text in so many ways that it may take for ever: let each repeated "
            r"part begin or end with what the others cannot match, as in \d+(?:,\d+)* instead of (?:\d+,?)+"
        ) from None


class _AmbiguousError(Exception):
    pass


class _TooLongError(Exception):
    pass


@dataclass(frozen=True)
class _Part:
    """A part of an expression: where it begins and ends, and in how many ways."""

    first: Ways
    last: Ways
    empty: int
    """In how many ways it matches nothing."""
    sure: frozenset[State]
    """Where it may end with nothing left to check."""
    surely_empty: bool


_NOTHING = _Part(Counter(), Counter(), 1, frozenset(), True)
_ASSERTED = _Part(Counter(), Counter(), 1, frozenset(), False)


def _check(parsed: Any) -> None:
    found = _Automaton(parsed)
    whole = found.read(parsed)
    found.count_ways(whole.first)
    found.refuse_exponential()
    found.refuse_polynomial(whole.sure)


class _Automaton:
    """The characters of an expression, and which may follow which, in how many ways."""

    def __init__(self, parsed: Any) -> None:
        self.alphabet = {*string.printable, "é", *_literals(parsed)}
        self.characters: list[frozenset[str]] = []
        self.follow: list[Ways] = []
        self.steps = 0

    def read(self, parsed: Any) -> _Part:
        """Add a parsed expression."""
        part = _NOTHING
        for code, value in parsed:
            part = self._sequence(part, self._read_one(code, value))
        return part

    def _read_one(self, code: Any, value: Any) -> _Part:
        if code is codes.SUBPATTERN:
            return self.read(value[-1])
        if code is codes.ATOMIC_GROUP:
            return self.read(value)
        if code is codes.BRANCH:
            parts = [self.read(each) for each in value[1]]
            return _Part(
                sum((each.first for each in parts), Counter()),
                sum((each.last for each in parts), Counter()),
                sum(each.empty for each in parts),
                frozenset().union(*(each.sure for each in parts)),
                any(each.surely_empty for each in parts),
            )
        if code in _REPEATS:
            return self._repeat(*value)
        if code in _ASSERTIONS:
            _check(value[1])
            return _ASSERTED if value[1] else _NOTHING
        if code is codes.AT:
            return _ASSERTED
        if len(self.characters) == _LONGEST:
            raise _TooLongError
        state = len(self.characters)
        self.characters.append(frozenset(each for each in self.alphabet if _contains(code, value, each)))
        self.follow.append(Counter())
        return _Part(Counter([state]), Counter([state]), 0, frozenset([state]), False)

    def _sequence(self, one: _Part, other: _Part) -> _Part:
        self._join(one.last, other.first)
        return _Part(
            one.first + _times(other.first, one.empty),
            other.last + _times(one.last, other.empty),
            one.empty * other.empty,
            other.sure | (one.sure if other.surely_empty else frozenset()),
            one.surely_empty and other.surely_empty,
        )

    def _join(self, last: Ways, first: Ways) -> None:
        for state, ways in last.items():
            self.follow[state] += _times(first, ways)

    def _repeat(self, least: int, most: int, body: Any) -> _Part:
        counted = most <= _COPIES
        part = _NOTHING
        if counted:
            for _ in range(most - least):  # x(x(x)?)?, in which each text has one way
                part = _optional(self._sequence(self.read(body), part))
        else:
            part = self.read(body)
            self._join(part.last, part.first)
            part = part if least else _optional(part)
            least = least - 1 if 0 < least <= _COPIES else 0
        for _ in range(least):
            part = self._sequence(self.read(body), part)
        return part

    def count_ways(self, first: Ways) -> None:
        """Refuse an expression that reads a text of one or two characters, again and again, in too many ways."""
        kinds = {frozenset(i for i, each in enumerate(self.characters) if c in each): c for c in sorted(self.alphabet)}
        for one in kinds.values():
            for other in kinds.values():
                ways = first
                for index in range(_REPEATED):
                    character = (one, other)[index % 2]
                    ways = Counter({at: count for at, count in ways.items() if character in self.characters[at]})
                    if ways.total() > _WAYS:
                        raise _AmbiguousError
                    ways = sum((_times(self.follow[at], count) for at, count in ways.items()), Counter())
                    self._step(len(ways))

    def refuse_exponential(self) -> None:
        """Refuse an expression with two ways from a character back to it that read the same text."""
        for state in range(len(self.follow)):
            loop = self._loop(state)
            for here in loop:
                if any(ways > 1 for there, ways in self.follow[here].items() if there in loop):
                    raise _AmbiguousError
            inside, start = (loop, loop), (state, state)
            for pair in self._walk(start, inside):
                if pair[0] != pair[1] and start in self._walk(pair, inside):
                    raise _AmbiguousError

    def refuse_polynomial(self, sure: frozenset[State]) -> None:
        """Refuse an expression with two loops that read the same text one after the other, and may fail after that.

        Whoever gets to a `sure` state has a match, and tries no other way.
        """
        loops = {state: loop for state in range(len(self.follow)) if (loop := self._loop(state))}
        everywhere = frozenset(range(len(self.follow)))
        for one, loop in loops.items():
            for other in self._reachable(one, lambda state: self.follow[state]):
                if other == one or other not in loops or other in sure:
                    continue
                if not self.characters[one] & self.characters[other]:
                    continue
                if (one, other, other) in self._walk((one, one, other), (loop, everywhere, loops[other])):
                    raise _AmbiguousError

    def _loop(self, state: State) -> frozenset[State]:
        """The states on ways from a state back to it."""
        after = self._reachable(state, lambda each: self.follow[each])
        return frozenset(each for each in after if state in self._reachable(each, lambda found: self.follow[found]))

    def _walk(self, start: tuple[State, ...], allowed: tuple[frozenset[State], ...]) -> set[tuple[State, ...]]:
        """Where several ways from `start`, each inside what it is allowed, may get to by reading the same text."""
        return self._reachable(start, lambda states: self._together(states, allowed))

    def _together(self, states: tuple[State, ...], allowed: tuple[frozenset[State], ...]) -> Iterable[Any]:
        """Where several ways may stand after one more character, the same for all."""
        found: list[tuple[tuple[State, ...], frozenset[str]]] = [((), frozenset(self.alphabet))]
        for state, inside in zip(states, allowed, strict=True):
            found = [
                ((*before, after), shared)
                for before, characters in found
                for after in self.follow[state]
                if after in inside and (shared := characters & self.characters[after])
            ]
        return [each for each, _ in found]

    def _reachable(self, start: Any, follow: Callable[[Any], Iterable[Any]]) -> set[Any]:
        """What can be reached from `start` in one step or more."""
        found: set[Any] = set()
        left = [start]
        while left:
            for each in follow(left.pop()):
                self._step()
                if each not in found:
                    found.add(each)
                    left.append(each)
        return found

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > _STEPS:
            raise _TooLongError


def _keep_apart(found: re.Match[str]) -> str:
    """Keep alternatives apart: Python reads `1|[12]` as `[12]`, but the tokenizer tries both."""
    return "|(?=)" if found[0] == "|" else found[0]


def _times(ways: Ways, count: int) -> Ways:
    return Counter({state: each * count for state, each in ways.items()} if count else {})


def _optional(part: _Part) -> _Part:
    return _Part(part.first, part.last, part.empty + 1, part.sure, True)


def _literals(parsed: Any) -> set[str]:
    """The characters that an expression names, and those beside them."""
    numbers = set(map(int, re.findall(r"\d+", repr(parsed))))
    return {chr(near) for each in numbers for near in (each - 1, each, each + 1) if 0 <= near < 0xD800}


def _contains(code: Any, value: Any, character: str) -> bool:
    """Whether one character of an expression matches this one."""
    if code is codes.ANY:
        return character != "\n"
    if code is codes.LITERAL:
        return ord(character) == value
    if code is codes.NOT_LITERAL:
        return ord(character) != value
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if code is codes.CATEGORY:
        return (character in _CLASSES[_NEGATED.get(value, value)]) != (value in _NEGATED)
    if code is codes.NEGATE:
        return False
    if code is codes.IN:
        negated = value[0][0] is codes.NEGATE
        return any(_contains(inner, given, character) for inner, given in value) != negated
    raise _TooLongError  # a back-reference or another part that the tokenizer reads differently
