"""Levels that a rule states, since nobody can list them: all words of an alphabet, all integers.

A rule has a number of places, the place of each level, and the label of each place. It has no
length and is not iterable, so that whoever would list it is told so at once.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import mul
from typing import Any, NoReturn

from geomdp._ground import notebook, parameters
from geomdp.tables._columns import levels as _levels

#: A range of more integers is a rule.
_LISTED = 2**24
#: The most bits of the number of cells of a table, and of the places of a rule.
MOST_BITS = 1100
_LEAST, _GREATEST = -(2**63), 2**63 - 1


class Rule(ABC):
    """Levels that a rule states."""

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of places; there are as many levels, or fewer."""

    @property
    def common(self) -> Sequence[Any]:
        """A public list of levels that have a threshold of their own."""
        return ()

    @abstractmethod
    def place(self, item: Any) -> int:
        """Return the place of a level, or -1 for any other item.

        Parameters
        ----------
        item : object
            What may be a level.

        Examples
        --------
        >>> from geomdp.tables import Words
        >>> Words("ab", 2).place("b"), Words("ab", 2).place("c")
        (3, -1)

        """

    @abstractmethod
    def label(self, place: int) -> Any:
        """Return what has a place, a level or nothing that a record counts for.

        Parameters
        ----------
        place : int
            From 0 on.

        Examples
        --------
        >>> from geomdp.tables import Words
        >>> [Words("ab", 2).label(place) for place in range(6)]
        ['a', 'aa', 'ab', 'b', 'ba', 'bb']

        """

    @abstractmethod
    def of_text(self, text: str) -> Any:
        """Return the level that a text stands for in a CSV file, or what is none.

        Parameters
        ----------
        text : str
            As in the file.

        Examples
        --------
        >>> from geomdp.tables import Words
        >>> Words("ab", 2).of_text("ba")
        'ba'

        """

    @abstractmethod
    def examples(self) -> list[Any]:
        """Return levels with all that a file may have to hold.

        >>> from geomdp.tables import Words
        >>> Words("ab", 2).examples()
        ['a', 'b']

        """

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return what a file states of the rule.

        >>> from geomdp.tables import Words
        >>> Words("ab", 2).facts()["words"]["alphabet"]
        'ab'

        """

    def __iter__(self) -> NoReturn:
        raise TypeError(f"levels that are a rule cannot be listed: {parameters.shown(self)}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.facts() == other.facts()

    __hash__ = None  # type: ignore[assignment]  # They may have long lists.


@notebook.showable
class Words(Rule):
    """All words of an alphabet up to a length, as the levels of a column of text.

    Nobody has to list them: :meth:`Table.release` with ``at_least=`` publishes the words that many
    records have, whichever these are, in a time that grows with the number of different words in
    the records and not with the number of all words. Words are in the order of a dictionary.

    Records with any other text, such as longer ones or those with other characters, are counted in
    `other`, or not at all. Words are compared by Unicode code points, in the normal form NFC, and
    the library changes none: bring text to lower case and to NFC before it is counted.

    Parameters
    ----------
    alphabet : str
        Two or more characters in their order, each once and in NFC. Take them from public
        knowledge, not from the data.
    longest : int
        The most characters of a word. The threshold grows with this number and with the number of
        bits of a character, so give no more than the words need. There may be up to 2**1100 words.
    shortest : int
        The fewest characters of a word, at least 1.
    common : sequence of str
        A public list of words, such as a dictionary, that is not taken from the data. These get a
        threshold of their own, :meth:`Design.threshold`, which is far lower than that of all other
        words.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> words = tables.Words("abcdefghijklmnopqrstuvwxyz", 20)
    >>> design = tables.Design({"query": words}, other="(other)")
    >>> at_least = design.threshold(epsilon=1, spurious=1)
    >>> at_least
    65
    >>> log = pd.DataFrame({"query": ["weather"] * 900 + ["geometric noise"] * 400 + ["rare"] * 3})
    >>> noisy = design.count(log).release(epsilon=1, at_least=at_least)
    >>> {"weather", "(other)"} <= set(noisy.frame["query"])
    True

    """

    __slots__ = ("_alphabet", "_at", "_begun", "_common", "_longest", "_shortest", "_weights")

    def __init__(
        self, alphabet: str, longest: int, *, shortest: int = 1, common: Sequence[str] = ()
    ) -> None:
        parameters.check_text("alphabet", alphabet)
        if not unicodedata.is_normalized("NFC", alphabet):
            raise ValueError("alphabet is not in NFC: give unicodedata.normalize('NFC', alphabet)")
        self._alphabet, self._at = alphabet, {x: place for place, x in enumerate(alphabet)}
        if len(self._at) < len(alphabet) or len(alphabet) < 2:
            raise ValueError("alphabet has fewer than two characters, or one twice: give each once")
        self._longest = parameters.at_least("longest", longest, 1)
        self._shortest = parameters.at_least("shortest", shortest, 1)
        if self._shortest > self._longest:
            wanted = "an int that is no greater than longest"
            raise ValueError(parameters.refusal("shortest", self._shortest, wanted))
        # At each length, how many words begin with one and the same text.
        self._begun = [1]
        while len(self._begun) <= self._longest and self.size.bit_length() <= MOST_BITS:
            own = self._longest - len(self._begun) >= self._shortest
            self._begun.insert(0, own + len(alphabet) * self._begun[0])
        if self.size.bit_length() > MOST_BITS:
            raise ValueError(
                f"longest = {self._longest} is not accepted with an alphabet of "
                f"{notebook.many(len(alphabet), 'character')}: give one for which there are at "
                f"most 2**{MOST_BITS} words"
            )
        self._weights = self._begun[1:]
        self._common: tuple[str, ...] = ()
        if not isinstance(common, Sequence) or len(common):
            self._common = tuple(_levels.checked("common words", common))
        if _levels.kinds(self._common) - {str}:
            raise TypeError("common words are not text: give a list of str")
        if found := [word for word in self._common if not self._has(word)]:
            raise ValueError(
                f"common has {parameters.shown(found[0])}, which is no word of this alphabet, of "
                "this length and in NFC: leave it out"
            )

    @property
    def alphabet(self) -> str:
        """The characters, in their order."""
        return self._alphabet

    @property
    def longest(self) -> int:
        """The most characters of a word."""
        return self._longest

    @property
    def shortest(self) -> int:
        """The fewest characters of a word."""
        return self._shortest

    @property
    def common(self) -> tuple[str, ...]:
        """The public list of words that have a threshold of their own."""
        return self._common

    @property
    def size(self) -> int:
        """The number of words. With characters that combine, some of them are not in NFC."""
        return self._begun[0]

    def place(self, item: Any) -> int:
        """Return the place of a word in the order of the dictionary, or -1 for what is none."""
        if not isinstance(item, str) or not self._has(item):
            return -1
        # Before it are the words that begin with a lesser text of any of its lengths, and those
        # that it begins with.
        before: int = sum(map(mul, map(self._at.__getitem__, item), self._weights))
        return before + len(item) - self._shortest

    def _has(self, text: str) -> bool:
        """Whether a text is a word."""
        if not self._shortest <= len(text) <= self._longest or not self._at.keys() >= {*text}:
            return False
        return unicodedata.is_normalized("NFC", text)

    def label(self, place: int) -> str:
        """Return the text at a place."""
        found: list[str] = []
        left = place
        while True:
            if len(found) >= self._shortest:
                if not left:
                    return "".join(found)
                left -= 1
            at, left = divmod(left, self._weights[len(found)])
            found.append(self._alphabet[at])

    def of_text(self, text: str) -> str:
        """Return a word itself."""
        return text

    def examples(self) -> list[str]:
        """Return words with each character at the start."""
        return list(map(mul, self._alphabet, repeat(self._shortest)))

    def facts(self) -> dict[str, Any]:
        """Return what a file states of the rule."""
        return {
            "words": {
                "alphabet": self._alphabet,
                "longest": self._longest,
                "shortest": self._shortest,
                "common": list(self._common),
            }
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Words, **self.facts()["words"]), ()

    def __repr__(self) -> str:
        least = f", shortest={self._shortest}" if self._shortest != 1 else ""
        more = f", common={parameters.shown(list(self._common))}" if self._common else ""
        return f"Words({self._alphabet!r}, {self._longest}{least}{more})"


@notebook.showable
class Integers(Rule):
    """All integers of a range."""

    __slots__ = ("_size", "_within")

    def __init__(self, within: range) -> None:
        # The length of a long range is no length for Python.
        self._within, self._size = within, _many(within)
        ends = within[0], within[self._size - 1]
        if min(ends) < _LEAST or max(ends) > _GREATEST:
            raise ValueError(f"{within} has integers beyond 64 bits: give a part of it")

    @property
    def size(self) -> int:
        """The number of integers."""
        return self._size

    @property
    def within(self) -> range:
        """The range."""
        return self._within

    def place(self, item: Any) -> int:
        """Return the place of a number in the range, or -1."""
        try:
            number = int(item)
            return self._within.index(number) if item == number else -1
        except Exception:  # Whatever an object of any class raises.
            return -1

    def label(self, place: int) -> int:
        """Return the integer at a place."""
        return self._within[place]

    def of_text(self, text: str) -> int | None:
        """Return the integer that a text is written for."""
        try:
            return int(text) if str(int(text)) == text else None
        except ValueError:
            return None

    def examples(self) -> list[int]:
        """Return both ends."""
        return [self._within[0], self._within[self._size - 1]]

    def facts(self) -> dict[str, Any]:
        """Return what a file states of the rule."""
        return {"range": [self._within.start, self._within.stop, self._within.step]}

    def __reduce__(self) -> tuple[Any, ...]:
        return Integers, (self._within,)

    def __repr__(self) -> str:
        return repr(self._within)


class Common(Sequence[int]):
    """The places of common levels and of other records, of which a long list has most unasked."""

    def __init__(self, rule: Rule, size: int) -> None:
        self._rule, self._others = rule, range(rule.size, size)

    def __len__(self) -> int:
        return len(self._rule.common) + len(self._others)

    def __getitem__(self, at: Any) -> Any:
        listed = self._rule.common
        return self._rule.place(listed[at]) if at < len(listed) else self._others[at - len(listed)]

    def among(self, places: Sequence[int]) -> Iterable[bool]:
        """Return whether each of some places is one of these."""
        if len(places) < len(self):
            first, words = self._others.start, {*self._rule.common}
            return (x >= first or self._rule.label(x) in words for x in places)
        return map({*self}.__contains__, places)


def of(levels: Any) -> Rule | None:
    """Return the rule that levels are, or None for those that are listed."""
    if isinstance(levels, range) and _many(levels) > _LISTED:
        return Integers(levels)
    return levels if isinstance(levels, Rule) else None


def of_facts(said: Mapping[str, Any]) -> Rule:
    """Return the rule that a file states."""
    [(kind, facts)] = said.items()
    if kind == "words":
        return Words(**facts)
    if kind != "range" or not all(map(parameters.is_integer, facts)):
        raise ValueError("it has levels of another form")
    found = of(range(*facts))
    if found is None:
        raise ValueError("it has a range that is a list")
    return found


def same_levels(one: Rule | None, other: Rule | None) -> bool:
    """Return whether two rules have the same levels, whichever of them have their own threshold."""
    facts = [{} if rule is None else {**rule.facts()} for rule in (one, other)]
    for each in facts:
        if "words" in each:
            each["words"] = {**each["words"], "common": ()}
    return facts[0] == facts[1]


def _many(within: range) -> int:
    """Return how many integers a range has."""
    return max(0, -((within.start - within.stop) // within.step))
