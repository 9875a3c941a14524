"""When is a number right? An answer is read as text: "0.88" claims two places.

"last-place"     less than one unit in the last place given, and of at least the places asked for (the default)
"exact"          the very number: a fraction, a root, or a decimal that terminates
"2 places"       less than one unit in the second decimal place
"3 figures"      less than one unit in the third significant figure of the right number
"0.01 + 1%"      at most so far away, absolutely plus relatively; either may stand alone
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from math import inf, isinf

from headwork.errors import HeadworkError
from headwork.numbers.certain import AnyNumber
from headwork.numbers.digits import exponent, to_float
from headwork.numbers.enclosure import sign
from headwork.numbers.parse import NumberError, parse_number
from headwork.numbers.surd import Real
from headwork.readings.exact import HIDDEN, Entry, Hidden

DIGITS = 6  # that a number can claim: more are a machine's, and single precision does not answer for the last of them
CLEAR = 1e-9  # float64 decides where the difference is this much clearer than its own noise
_DECIMAL = re.compile(r"[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?", re.ASCII)
_COMMA = re.compile(r"^([+-]?\d+),(\d+)$", re.ASCII)  # a number of its own with a decimal comma
_TEN = re.compile(r"^([+-]?)(?=10 ?(?:\^|\*\*|[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]))")  # a power of ten alone
_ROOT = re.compile(r"\b(?:np|numpy|math|torch|jnp)\.(?=sqrt\()")
_POWER = re.compile(r" ?[*·×x] ?10 ?(?:\^|\*\*) ?\(?([+-]?\d+)\)?$| ?[*·×x] ?10([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)$", re.ASCII)
_RAISED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_HIDDEN = re.compile(r"-(?:[a-z]{1,5}\.)?(?:inf(?:inity)?|∞|oo)|float\(['\"]-inf(?:inity)?['\"]\)", re.IGNORECASE)
_MIXED = re.compile(r"([+-]?)(\d+) (\d+/\d+)", re.ASCII)

# As keyboards and word processors have it: full-width signs, Arabic digits, the dashes that stand for a minus.
TYPED: dict[int, str | int] = {
    **{0xFF01 + i: 0x21 + i for i in range(94)},
    **{first + i: ord("0") + i for first in (0x0660, 0x06F0) for i in range(10)},
    **dict.fromkeys(map(ord, "٫。"), "."),
    **dict.fromkeys(map(ord, "−–‒‐‑﹣"), "-"),
}


@dataclass(frozen=True)
class Written:
    """An answer's number, and how finely it was written."""

    value: Real | Hidden
    near: float  # its float64
    places: int | None  # decimal places claimed; None for a fraction, a root or a sum
    text: str = field(default="", compare=False)  # as it was written

    @property
    def needed(self) -> int:
        """The places claimed, without zeros at the end."""
        places = self.places or 0
        units = self.value * 10 ** max(0, places) if isinstance(self.value, Fraction) else Fraction(1)
        while places > 0 and units.denominator == 1 and units.numerator % 10 == 0:
            places, units = places - 1, units / 10
        return places


@lru_cache(maxsize=20_000)  # a class writes the same few numbers over and over
def read_number(text: str | int) -> Written:
    """A number and the places it claims; "-inf" is what a mask hides with.

    >>> read_number("0.880").places, read_number("6.90e-13").places, read_number("1/3").places
    (3, 15, None)
    >>> read_number("12.5%") == read_number("0.125"), read_number("0,88") == read_number("0.88")
    (True, True)
    >>> read_number("1 3/4").value, read_number("6.65×10⁻¹") == read_number("6.65e-1"), read_number("≈ –0.12").near
    (Fraction(7, 4), True, -0.12)
    """
    words = " ".join(str(text).translate(TYPED).split())
    words = words[1:].lstrip() if words[:1] in ("=", "≈", "~") else words
    if _HIDDEN.fullmatch(words):
        return Written(HIDDEN, -inf, None, "−∞")
    if words.endswith("%") and "%" not in words[:-1]:
        return _hundredth(read_number(words[:-1]))
    words = _COMMA.sub(r"\1.\2", _plainly(_ROOT.sub("", words)))
    value = parse_number(words)
    near = to_float(value)
    if isinf(near):
        raise NumberError(f"'{words[:40]}' is out of range")
    match = _DECIMAL.fullmatch(words)
    if not match:
        return Written(value, near, None, words)
    too_many = max(0, len((match[1] + match[2]).lstrip("0")) - DIGITS)
    return Written(value, near, len(match[2]) - int(match[3] or 0) - too_many, words)


def _plainly(words: str) -> str:
    """A whole number and a fraction as their sum; a decimal times a power of ten as 6.65e-1."""
    if mixed := _MIXED.fullmatch(words):
        return f"{mixed[1]}({mixed[2]}+{mixed[3]})"
    counted = _TEN.sub(r"\g<1>1·", words)
    power = _POWER.search(counted)
    if power is None:
        return words
    decimal = _COMMA.sub(r"\1.\2", counted[: power.start()])
    plain = _DECIMAL.fullmatch(decimal) is not None and not re.search("[eE]", decimal)
    return f"{decimal}e{power[1] or power[2].translate(_RAISED)}" if plain else words


def _hundredth(number: Written) -> Written:
    """What a percentage stands for: it claims two places more."""
    if isinstance(number.value, Hidden):
        raise NumberError("-∞ is no percentage")
    return Written(
        number.value / 100, number.near / 100, None if number.places is None else number.places + 2, f"{number.text}%"
    )


@dataclass(frozen=True)
class Tolerance:
    """One of the rules above."""

    rule: str = "last-place"
    places: int = 0
    figures: int = 0
    absolute: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)

    @classmethod
    def read(cls, text: str) -> Tolerance:
        """The rule that a sheet names.

        >>> Tolerance.read("0.01 + 1%").relative
        Fraction(1, 100)
        """
        words = text.strip().lower()
        if words in ("last-place", "exact"):
            return cls(words)
        if match := re.fullmatch(r"(\d{1,2}) (places|figures)", words):
            number = int(match[1])
            return cls("places", places=number) if match[2] == "places" else cls("figures", figures=number)
        terms = [term.strip() for term in words.split("+")]
        if 1 <= len(terms) <= 2 and all(re.fullmatch(r"\d{0,9}\.?\d{1,9}%?", term) for term in terms):
            relative = sum((Fraction(t[:-1]) / 100 for t in terms if t.endswith("%")), Fraction(0))
            absolute = sum((Fraction(t) for t in terms if not t.endswith("%")), Fraction(0))
            return cls("within", absolute=absolute, relative=relative)
        raise HeadworkError(
            f"'{text[:40]}' is no tolerance; write last-place, exact, 2 places, 3 figures, 0.01 or 0.01 + 1%"
        )

    def __str__(self) -> str:
        if self.rule == "last-place":
            return "less than one unit away in the last place given, and in at least the places asked for"
        if self.rule == "exact":
            return "the exact number"
        if self.rule == "within":
            return f"at most {float(self.absolute):g} + {float(self.relative * 100):g} % away"
        if self.rule == "places":
            return f"less than one unit away in decimal place {self.places}"
        return f"less than one unit away in significant figure {self.figures}"

    @property
    def closed(self) -> bool:
        """Whether a number that lies just so far away is still right; a whole unit away is wrong."""
        return self.rule in ("exact", "within")

    def room(self, answer: Written, right: float, asked: int) -> Fraction:
        """How far from the right number the answer may lie."""
        if self.rule == "last-place":
            claimed = answer.places
            return _unit(asked if claimed is None else max(asked, claimed))[0]
        if self.rule == "places":
            return _unit(self.places)[0]
        if isinf(right):  # what is hidden is −∞ or it is not
            return Fraction(0)
        if self.rule == "figures" and right:
            return Fraction(10) ** (exponent(Fraction(right)) + 1 - self.figures)
        return self.absolute + self.relative * abs(Fraction(right)) if self.rule == "within" else Fraction(0)

    def room_near(self, answer: Written, right: float, asked: int) -> float:
        """The same in float64."""
        if self.rule == "last-place":
            return _unit(asked if answer.places is None else max(asked, answer.places))[1]
        return float(self.room(answer, right, asked))

    def accepts(self, answer: Written, near: float, right: Callable[[], Entry], asked: int) -> bool:
        """Whether the answer is right. float64 decides what is clear, exact arithmetic, on demand, what is not.

        >>> rule = Tolerance()
        >>> rule.accepts(read_number("0.67"), 2 / 3, lambda: Fraction(2, 3), 2)
        True
        """
        if isinstance(answer.value, Hidden) or isinf(near):
            return answer.near == near
        about = self.room_near(answer, near, asked)
        apart = abs(answer.near - near)
        if not abs(apart - about) <= CLEAR * (1 + abs(near)):
            return apart < about
        room = self.room(answer, near, asked)
        exact = right()
        assert not isinstance(exact, Hidden)
        # One unit in the figures of 0 is nothing: only 0 itself is right.
        closed = self.closed or not room
        return not _beyond(answer.value, exact, room) if closed else _inside(answer.value, exact, room)

    def asked(self, places: int) -> int:
        """The decimal places that an answer must have."""
        return {"last-place": places, "places": self.places}.get(self.rule, 0)

    def too_coarse(self, answer: Written, right: float, asked: int) -> bool:
        """Whether the answer is right as far as it goes, but has fewer places than are asked for."""
        if answer.places is None or answer.places >= self.asked(asked) or isinf(right):
            return False
        return abs(answer.near - right) <= (0.5 + CLEAR) * _unit(answer.places)[1]

    def too_fine(self, answer: Written, right: float, asked: int) -> bool:
        """Whether the answer is right in the places asked for, and wrong in those that it gives beyond."""
        beyond = self.rule == "last-place" and answer.places is not None and answer.places > asked
        return beyond and abs(answer.near - right) < _unit(asked)[1]


@cache
def _unit(places: int) -> tuple[Fraction, float]:
    """One unit in a decimal place."""
    return Fraction(10) ** -places, 10.0**-places


def _inside(answer: Real, right: AnyNumber, room: Fraction) -> bool:
    """|answer − right| < room, decided."""
    return all(sign(room - side * (right - answer)) > 0 for side in (1, -1))


def _beyond(answer: Real, right: AnyNumber, room: Fraction) -> bool:
    """|answer − right| > room, decided."""
    return any(sign(room - side * (right - answer)) < 0 for side in (1, -1))
