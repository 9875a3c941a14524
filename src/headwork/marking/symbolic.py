"""Shapes and counts: answers in letters, as people type them, compared without an algebra system.

Both sides are evaluated: two polynomials of small degree that agree at several large random points are the same. The
text is read by a grammar of our own and only ever becomes a fraction.

    sum = product {("+" | "-") product};  product = power {("*" | "·" | "/") power}
    power = factor ["^" digit];           factor = number | name | "(" sum ")"
"""

import random
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from headwork.errors import HeadworkError
from headwork.marking.answered import Answered
from headwork.marking.marks import AnswerMark, Verdict
from headwork.marking.table import Malformed, is_blank
from headwork.sheets.questions import Asked
from headwork.sheets.ready import Ready

LONGEST = 200
MOST_BITS = 10_000  # of a power
_TOKEN = re.compile(r"\s*(?:(\d{1,9})|([A-Za-z]\w{0,11})|(.))", re.ASCII)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
COUNTED = ("multiplications", "additions", "divisions")
# In a text: multiplications: n*n*d_k, additions: n*n*(d_k - 1)
_COUNT = re.compile(r"""["']?([a-z]+)["']?\s*[:=]\s*["']?([^,;:="'{}]+)""")


def mark_symbolic(kind: str, question: Asked, answered: Answered, ready: Ready) -> AnswerMark:
    """A shape, such as "n×d/h", or the operations of a step, such as { multiplications = "n*n*d_k" }."""
    right = _shape(question, ready) if kind == "shape" else _count(question, ready)
    try:
        raw = answered.take(question)
        if is_blank(raw):
            return AnswerMark(question.name, "blank", len(right))
        given = _sizes(raw, len(right)) if kind == "shape" else _operations(raw, list(right))
        wrong = [i for i, (name, size) in enumerate(right.items()) if not same(given.get(name, "0"), size)]
    except HeadworkError as error:
        return AnswerMark(question.name, "malformed", len(right), message=str(error))
    places = tuple((1, i + 1) for i in wrong)
    verdict: Verdict = "wrong" if wrong else "right"
    return AnswerMark(question.name, verdict, len(right), Fraction(len(right) - len(wrong)), places)


def _shape(question: Asked, ready: Ready) -> dict[str, Any]:
    return {str(i): size for i, size in enumerate(ready.shape[question.found.step])}


def _sizes(raw: Any, number: int) -> dict[str, str]:
    """ "2×3", "2x3", [2, 3]."""
    sizes = raw if isinstance(raw, list) else re.split(r"\s*[×x]\s*", str(raw)[:400])
    if len(sizes) != number:
        raise Malformed(f"has {len(sizes)} length(s); write every one, such as 2×3 or B×n×d")
    return {str(i): str(size) for i, size in enumerate(sizes)}


def _count(question: Asked, ready: Ready) -> dict[str, Any]:
    each = {name: getattr(ready.costs[question.found.step], name) for name in COUNTED}
    return {name: size for name, size in each.items() if size != 0} or each


def _operations(raw: Any, names: list[str]) -> dict[str, str]:
    if isinstance(raw, str):
        raw = dict(_COUNT.findall(raw))
    if not isinstance(raw, dict) or not raw:
        raise Malformed(f"must be a table of {', '.join(COUNTED)}, such as {{ {names[0]} = 'n*d' }}")
    if unknown := [name for name in raw if name not in COUNTED]:
        raise Malformed(f"holds '{str(unknown[0])[:40]}'; counted are {', '.join(COUNTED)}")
    return {name: str(size) for name, size in raw.items() if not is_blank(size)}


def same(text: str, size: Any, points: int = 4) -> bool:
    """Whether a typed expression is the size that is meant.

    >>> same("3*4", 12), same("3 + 4", 12)
    (True, False)
    """
    symbols = sorted(map(str, getattr(size, "free_symbols", ())))
    generator = random.Random(0)
    for _ in range(points if symbols else 1):
        at = {symbol: Fraction(generator.randrange(10**6, 10**9)) for symbol in symbols}
        if evaluate(text, at) != _known(size, at):
            return False
    return True


def _known(size: Any, at: Mapping[str, Fraction]) -> Fraction:
    if isinstance(size, int):
        return Fraction(size)
    from sympy import Rational

    value = Rational(size.subs({s: int(at[str(s)]) for s in size.free_symbols}))
    return Fraction(int(value.p), int(value.q))


def evaluate(text: str, at: Mapping[str, Fraction]) -> Fraction | None:
    """The number a text stands for at a point; None where it holds a name that is not known there."""
    if len(text) > LONGEST:
        raise HeadworkError(f"an expression of {len(text)} characters; at most {LONGEST} are read")
    powers = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda m: "^" + m[0].translate(_RAISED), text)
    return _Evaluator(powers.replace("−", "-").replace("·", "*"), at).whole()


class _Unknown(Exception):
    """A name that the right answer does not hold."""


class _Evaluator:
    """Recursive descent; depth is bounded by the length of the text."""

    def __init__(self, text: str, at: Mapping[str, Fraction]) -> None:
        self.text, self.at = text, at
        self.tokens = [number or name or sign for number, name, sign in _TOKEN.findall(text.strip())]

    def whole(self) -> Fraction | None:
        try:
            value = self.sum()
        except _Unknown:
            return None
        except ZeroDivisionError:
            raise HeadworkError(f"'{self.text[:40]}' divides by zero") from None
        if self.tokens:
            raise self.unreadable()
        return value

    def sum(self) -> Fraction:
        total = -self.product() if self.take("-") else self.product()
        while self.tokens and self.tokens[0] in "+-":
            total += self.product() if self.tokens.pop(0) == "+" else -self.product()
        return total

    def product(self) -> Fraction:
        total = self.power()
        while self.tokens and self.tokens[0] in "*/":
            total = total * self.power() if self.tokens.pop(0) == "*" else total / self.power()
        return total

    def power(self) -> Fraction:
        base = self.factor()
        if not self.take("^"):
            return base
        if not self.tokens or self.tokens[0] not in tuple("0123456789"):
            raise HeadworkError(f"'{self.text[:40]}' has a power that is not a digit from 0 to 9")
        power = int(self.tokens.pop(0))
        if (base.numerator.bit_length() + base.denominator.bit_length()) * power > MOST_BITS:
            raise HeadworkError(f"'{self.text[:40]}' has powers of powers that grow too large")
        return base**power

    def factor(self) -> Fraction:
        if self.take("("):
            inner = self.sum()
            if not self.take(")"):
                raise HeadworkError(f"'{self.text[:40]}' has a bracket that is not closed")
            return inner
        if not self.tokens:
            raise self.unreadable()
        token = self.tokens.pop(0)
        if token.isdecimal():
            return Fraction(int(token))
        if token in self.at:
            return self.at[token]
        raise _Unknown if token[0].isalpha() else self.unreadable()

    def take(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def unreadable(self) -> HeadworkError:
        return HeadworkError(f"'{self.text[:40]}' is not a size; write n, d/h or n*d_k*(n - 1)")
