"""Numbers as people type them, read exactly: 3, -0.25, 1/3, sqrt(2), 2*sqrt(3)/3, 1e-3.

A small grammar of our own, never `eval`:

    sum     = ["-"] product {("+" | "-") product}
    product = factor {("*" | "/") factor | root}
    factor  = decimal | root | "(" sum ")"
    root    = "sqrt" "(" sum ")" | "√" factor
"""

import re
from fractions import Fraction
from functools import lru_cache

from headwork.errors import HeadworkError
from headwork.numbers.surd import Real, Surd, root

LONGEST = 80  # characters; a number longer than this is a mistake or an attack
LARGEST_EXPONENT = 40
LARGEST_RADICAND = 10**12  # roots are simplified by trial division

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(sqrt|√)|(.))", re.ASCII)


class NumberError(HeadworkError):
    """Text that is not a number of the grammar."""


def parse_number(text: str | int) -> Real:
    """The exact number that a text stands for.

    >>> parse_number("0.1"), parse_number("sqrt(8)")
    (Fraction(1, 10), 2√2)
    """
    if isinstance(text, int):
        if abs(text) >= 10**LONGEST:
            raise NumberError(f"a number of more than {LONGEST} digits; give a shorter one")
        return Fraction(text)
    if len(text) > LONGEST:
        raise NumberError(f"a number of {len(text)} characters; at most {LONGEST} are read")
    return _read(text)


@lru_cache(maxsize=10_000)  # the numbers of sheets are few and small
def _read(text: str) -> Real:
    return _Parser(text).whole()


class _Parser:
    """Recursive descent over the tokens of one number."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = _TOKEN.findall(text.replace("−", "-").replace("·", "*").strip())
        self.tokens = [number or word or sign for number, word, sign in found]

    def whole(self) -> Real:
        if not self.tokens:
            raise NumberError("an empty text where a number belongs")
        number = self.sum()
        if self.tokens:
            raise self.unreadable()
        return number

    def sum(self) -> Real:
        negative = self.take("-")
        if not negative:
            self.take("+")
        total = -self.product() if negative else self.product()
        while self.tokens and self.tokens[0] in "+-":
            total = total + self.product() if self.tokens.pop(0) == "+" else total - self.product()
        return total

    def product(self) -> Real:
        total = self.factor()
        while self.tokens and self.tokens[0] in ("*", "/", "sqrt", "√"):
            if self.take("/"):
                divisor = self.factor()
                if not divisor:
                    raise NumberError(f"'{self.text}' divides by zero")
                total = total / divisor
            else:
                self.take("*")  # 2√3 has none
                total = total * self.factor()
        return total

    def factor(self) -> Real:
        if self.take("sqrt") or self.take("√"):
            return self.square_root()
        if self.take("("):
            return self.closing(self.sum())
        if not self.tokens or self.tokens[0] == "." or self.tokens[0][0] not in "0123456789.":
            raise self.unreadable()
        return self.decimal(self.tokens.pop(0))

    def square_root(self) -> Real:
        # "√2" needs no brackets; "sqrt(2)" has them.
        radicand = self.closing(self.sum()) if self.take("(") else self.factor()
        if isinstance(radicand, Surd):
            raise NumberError(f"'{self.text}' has a root within a root; only roots of fractions are read")
        if radicand < 0:
            raise NumberError(f"'{self.text}' is the root of a negative number")
        if radicand.numerator * radicand.denominator > LARGEST_RADICAND:
            raise NumberError(f"'{self.text}' has too large a number under the root (at most 10^12)")
        return root(radicand)

    def decimal(self, token: str) -> Fraction:
        power = re.split("[eE]", token)[1:]
        if power and abs(int(power[0])) > LARGEST_EXPONENT:
            raise NumberError(f"'{self.text}' is out of range: exponents go from -40 to 40")
        return Fraction(token)

    def closing(self, number: Real) -> Real:
        if not self.take(")"):
            raise NumberError(f"'{self.text}' has a bracket that is not closed")
        return number

    def take(self, token: str) -> bool:
        taken = bool(self.tokens) and self.tokens[0] == token
        if taken:
            self.tokens.pop(0)
        return taken

    def unreadable(self) -> NumberError:
        return NumberError(f"'{self.text}' is not a number; write 3, -0.25, 1/3, sqrt(2) or a sum or product of such")
