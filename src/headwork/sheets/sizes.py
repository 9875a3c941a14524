"""The sizes of a problem, told by the matrices that are given; what they leave open stays untold, or a symbol."""

from collections.abc import Iterator
from typing import Any

from headwork.build import Sizes
from headwork.errors import HeadworkError
from headwork.formulas import formula_named
from headwork.notation import PLAIN
from headwork.ops import Untold
from headwork.readings.exact import Matrix
from headwork.sheets.sheet import NUMBERS, EachHead, Problem

# Rows and columns of every role. Columns marked with * hold all heads side by side in multi_head_blocks.
PATTERNS: dict[str, tuple[str, str]] = {
    "X": ("tokens", "d_model"),
    "X_past": ("past", "d_model"),
    "positions": ("tokens", "d_model"),
    "X_positioned": ("tokens", "d_model"),
    "context": ("keys", "d_context"),
    "W_Q": ("d_model", "d_k*"),
    "W_K": ("d_context", "d_k*"),
    "W_V": ("d_context", "d_v*"),
    "W_O": ("d_v+", "d_out"),
    "b_Q": ("one", "d_k*"),
    "b_K": ("one", "d_k*"),
    "b_V": ("one", "d_v*"),
    "b_O": ("one", "d_out"),
    "mask": ("tokens", "keys"),
    "cos": ("keys", "pairs"),
    "sin": ("keys", "pairs"),
    "bias": ("tokens", "keys"),
    "Q": ("tokens", "d_k*"),
    "K": ("keys", "d_k*"),
    "V": ("keys", "d_v*"),
    "K_past": ("past", "d_k*"),
    "V_past": ("past", "d_v*"),
    "K_new": ("tokens", "d_k*"),
    "V_new": ("tokens", "d_v*"),
    "Q_rotated": ("tokens", "d_k"),
    "K_rotated": ("keys", "d_k"),
    "scores": ("tokens", "keys"),
    "scaled": ("tokens", "keys"),
    "capped": ("tokens", "keys"),
    "biased": ("tokens", "keys"),
    "masked": ("tokens", "keys"),
    "maxima": ("tokens", "one"),
    "shifted": ("tokens", "keys"),
    "exponentials": ("tokens", "keys"),
    "sums": ("tokens", "one"),
    "weights": ("tokens", "keys"),
    "head_output": ("tokens", "d_v"),
    "joined": ("tokens", "d_v+"),
    "output": ("tokens", "d_out"),
    "target": ("tokens", "d_out"),
    "W_1": ("d_model", "d_ff"),
    "b_1": ("one", "d_ff"),
    "W_2": ("d_ff", "d_model"),
    "b_2": ("one", "d_model"),
    **{f"{role}_{i}": ("one", "d_model") for i in (1, 2) for role in ("gamma", "beta")},
    **{f"{role}_{i}": ("tokens", "d_model") for i in (1, 2) for role in ("residual", "from_mean", "squares", "normed")},
    **{f"{role}_{i}": ("tokens", "one") for i in (1, 2) for role in ("mean", "variance", "deviation")},
    "fed_1": ("tokens", "d_ff"),
    "active": ("tokens", "d_ff"),
    "fed_2": ("tokens", "d_model"),
}


# One for each key head.
KEY_ROLES = ("K", "V", "W_K", "W_V", "b_K", "b_V", "K_past", "V_past", "K_new", "V_new", "K_rotated")
PAST = ("K_past", "V_past", "X_past")
_SYMBOLS = {"tokens": "n", "past": "p", "keys": "n_k", "d_model": "d", "d_context": "d_c", "d_out": "d"}


def pattern(role: str) -> tuple[str, str] | None:
    """Rows and columns of a role; a gradient is as large as what it is the gradient of."""
    return PATTERNS.get(role.removeprefix("d_"))


def has_past(problem: Problem) -> bool:
    """Whether keys and values of earlier tokens stand before those that are worked out."""
    return "past" in problem.sizes or any(role in PAST for role, _ in problem.given)


def infer_sizes(problem: Problem) -> Sizes:
    """Every size of the problem, or an error that names the two matrices that disagree."""
    known = KnownSizes(problem)
    for (role, head), matrix in _matrices(problem):
        known.learn(role, head, matrix)
    if problem.rotary and problem.rotary.angles and problem.rotary.angles.degrees:
        known.learn_pairs(len(problem.rotary.angles.degrees), "rotary")
    return known.sizes()


def _matrices(problem: Problem) -> Iterator[tuple[tuple[str, int | None], Matrix]]:
    yield from problem.given.items()
    for part in problem.parts:
        yield from part.given.items()
    masks = problem.mask if isinstance(problem.mask, EachHead) else (problem.mask,)
    yield from ((("mask", None), mask) for mask in masks if not isinstance(mask, str))
    if problem.bias is not None:
        yield from ((("bias", None), matrix) for matrix in problem.bias.matrices)


class KnownSizes:
    """Sizes learned so far, each with the matrix that told it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        formula = formula_named(problem.formula)
        self.bare = not formula.projects
        self.past = has_past(problem)
        self.projected = formula.several or any(role == "W_O" for role, _ in problem.given)
        self.heads: Any = self._heads("W_Q", problem.heads) if formula.several else 1
        self.kv_heads: Any = (self._heads("W_K", problem.kv_heads) or self.heads) if formula.several else 1
        self.found: dict[str, tuple[Any, str]] = {"one": (1, "it is a single row or column")}
        for name, size in problem.sizes.items():
            if name not in ("heads", "kv_heads"):
                self.found[self.alias(name)] = (size if isinstance(size, int) else _symbol(size), "[sizes]")

    def _heads(self, role: str, asked: int | None) -> Any:
        """The number of heads: as asked, else as many as there are projections, else what [sizes] says."""
        matrices = sum(1 for r, head in self.problem.given if r == role and head is not None)
        if asked and matrices and asked != matrices:
            key = "heads" if role == "W_Q" else "kv_heads"
            raise HeadworkError(f"{key} = {asked}, but {role} holds {matrices} matrices; give one for every head")
        if asked or matrices:
            return asked or matrices
        size = self.problem.sizes.get("heads" if role == "W_Q" else "kv_heads")
        return _symbol(size) if isinstance(size, str) else size

    def alias(self, name: str) -> str:
        """Without a context the keys are the tokens, and those before them; what is added to X is as wide as X."""
        if name == "d_out" and self.problem.around != "none":
            return "d_model"
        if self.past and not self.bare:
            return "d_model" if name == "d_context" else name
        context = self.bare or any(role == "context" for role, _ in self.problem.given)
        context = context or bool({"keys", "d_context"} & self.problem.sizes.keys())
        return name if context else {"keys": "tokens", "d_context": "d_model"}.get(name, name)

    def learn(self, role: str, head: int | None, matrix: Matrix) -> None:
        self.check_head(role, head)
        name = role if role.startswith("d_") else str(PLAIN.of_role(role, head))  # a page's doutput is no key
        rows, columns = self.names(role)
        role = role.removeprefix("d_")
        self.learn_size(rows, len(matrix), name, "rows", role, head)
        if columns == "pairs":
            self.learn_pairs(len(matrix[0]), name)
        else:
            self.learn_size(columns, len(matrix[0]), name, "columns", role, head)

    def learn_pairs(self, number: int, name: str) -> None:
        """An angle turns two columns of the queries and keys."""
        d_k, because = self.found.setdefault("d_k", (2 * number, f"{name} turns {number} pairs of columns"))
        if d_k != 2 * number:
            raise HeadworkError(
                f"{name} turns {number} pairs of columns, but d_k is {d_k} ({because}); give it an angle for every two"
            )

    def names(self, role: str) -> tuple[str, str]:
        """What the rows and columns of a role count, as in the patterns."""
        found = pattern(role)
        assert found is not None, "what has no size cannot be given"
        rows, columns = found
        if role == "positions" and any(given == "X_past" for given, _ in self.problem.given):
            rows = "keys"  # earlier tokens have positions too
        # Without a projection what is put out is the head's own output.
        return rows, "d_v" if columns == "d_out" and not self.projected else columns

    def check_head(self, role: str, head: int | None) -> None:
        limit = self.kv_heads if role in KEY_ROLES else self.heads
        if head is not None and isinstance(limit, int) and head >= limit:
            raise HeadworkError(f"{role} is given for more heads than there are ({limit}); remove it or raise heads")

    def learn_size(self, size: str, length: int, name: str, axis: str, role: str, head: int | None) -> None:
        number = self.sharing(size, role, head)
        side_by_side = side_by_side_in(size, head)
        plain = self.alias(size.rstrip("*+"))
        if number != 1:
            if not isinstance(number, int):
                raise HeadworkError(f"{name} is given in numbers, so heads must be a number too; add heads = …")
            if length % number:
                raise HeadworkError(f"{name} has {length} {axis}, which {number} heads cannot share equally")
            length //= number
        if plain not in self.found:
            self.found[plain] = (length, f"{name} has {length} {axis}" + (" a head" if side_by_side else ""))
        elif self.found[plain][0] != length:
            expected, because = self.found[plain]
            raise HeadworkError(
                f"{name} has {length} {axis}{' a head' if number != 1 else ''}, but {plain} is "
                f"{expected} ({because}); give it {expected}"
            )

    def sharing(self, size: str, role: str, head: int | None) -> Any:
        """How many heads share a length: all of them where they stand side by side, else one."""
        if not side_by_side_in(size, head):
            return 1
        return self.kv_heads if role in KEY_ROLES else self.heads

    def sizes(self) -> Sizes:
        if self.heads is None:
            raise HeadworkError("the number of heads is not given; add heads = …")
        get = self.get
        d_model = 1 if self.bare else get("d_model")
        if self.past:
            self.learn_keys()
        return Sizes(
            tokens=get("tokens"),
            keys=get(self.alias("keys")),
            d_model=d_model,
            d_context=1 if self.bare else get(self.alias("d_context")),
            heads=self.heads,
            kv_heads=self.kv_heads,
            d_k=get("d_k"),
            d_v=get("d_v"),
            d_out=self.found["d_out"][0] if "d_out" in self.found else d_model,
            batch=self.found["batch"][0] if "batch" in self.found else None,
            past=get("past") if self.past else 0,
            d_ff=self.found["d_ff"][0] if "d_ff" in self.found else None,
        )

    def learn_keys(self) -> None:
        """The keys are those of earlier tokens and the new ones."""
        keys, told = self.get("past") + self.get("tokens"), self.found.get("keys")
        if told and told[0] != keys:
            raise HeadworkError(
                f"keys is {told[0]} ({told[1]}), but {self.get('past')} earlier and {self.get('tokens')} new tokens "
                f"have {keys}; give it {keys}{', or give those of the new tokens as K_new and V_new' * self.bare}"
            )
        self.found["keys"] = (keys, "earlier and new tokens together")

    def get(self, name: str) -> Any:
        if name in self.found:
            return self.found[name][0]
        # Symbols are for pages that print sizes; numbers alone need none, and SymPy is slow to load.
        only_values = all(part.kind in (*NUMBERS, "explain") for part in self.problem.parts)
        in_numbers = only_values and not any(isinstance(size, str) for size in self.problem.sizes.values())
        return Untold() if in_numbers else _symbol(_SYMBOLS.get(name, name))


def side_by_side_in(size: str, head: int | None) -> bool:
    return size.endswith("+") or (size.endswith("*") and head is None)


def _symbol(name: str) -> Any:
    from sympy import Symbol  # only a problem with open sizes pays for SymPy

    return Symbol(name, positive=True, integer=True)
