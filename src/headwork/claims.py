"""What a part or a command can claim, each as two graphs to be compared: entries, rows, a shift, blocks, a gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from headwork import arguments
from headwork.errors import HeadworkError
from headwork.formulas import blockwise, cut, given, product, scaled_dot_product, softmax, transposed, unfolded
from headwork.graph import Step
from headwork.maths import Letter, Prose, between, listed
from headwork.notation import PLAIN, Notation
from headwork.ops import Add, Join, Split, Transpose
from headwork.proofs import Equality, Lemma, Proof, Short, equal, prove
from headwork.readings.gradients import gradients
from headwork.readings.symbols import symbols

if TYPE_CHECKING:
    from headwork.sheets.ready import Ready


def entry_claim(tokens: int = 2, keys: int = 2, d_k: int = 2) -> tuple[Step, Step]:
    """Q·Kᵀ, and the matrix whose entry (i, j) is row i of Q times row j of K."""
    Q, K = given("Q", (tokens, d_k)), given("K", (keys, d_k))
    rows = []
    for i in range(tokens):
        dots = [product("dot", _row(Q, i, tokens), transposed(_row(K, j, keys))) for j in range(keys)]
        rows.append(Step(Join(), tuple(dots), "row"))
    return product("scores", Q, transposed(K)), _stacked(rows, "scores")


def row_claim(tokens: int = 2, keys: int = 2, d_v: int = 2) -> tuple[Step, Step]:
    """A·V, and the matrix whose row i is Σ_j a_i,j·v_j."""
    A, V = given("weights", (tokens, keys)), given("V", (keys, d_v))
    rows = []
    for i in range(tokens):
        terms = [product("term", _entry(A, i, j, tokens, keys), _row(V, j, keys)) for j in range(keys)]
        total = terms[0]
        for term in terms[1:]:
            total = Step(Add(), (total, term), "sum")
        rows.append(total)
    return product("head_output", A, V), _stacked(rows, "head_output")


def shift_claim(tokens: int = 2, keys: int = 2, _: int = 2) -> tuple[Step, Step]:
    """The softmax in steps, and the same less the row's maximum."""
    weights = softmax(given("scaled", (tokens, keys)))
    return unfolded(weights), unfolded(weights, maximum=True)


def blockwise_claim(tokens: int = 2, keys: int = 2, d_v: int = 1) -> tuple[Step, Step]:
    """The softmax over all keys at once, and over two blocks of them."""
    Q, K, V = given("Q", (tokens, 1)), given("K", (keys, 1)), given("V", (keys, d_v))
    return scaled_dot_product(Q, K, V, scale=None), blockwise(Q, K, V, blocks=cut(keys, min(2, keys)), scale=None)


def prove_softmax_gradient(tokens: int = 1, keys: int = 2, notation: Notation = PLAIN) -> Proof:
    """∂L/∂s of L = Σ g·softmax(s), by differentiating every entry, and by the rule P∘(g − D)."""
    scores, seed = given("scores", (tokens, keys)), given("d_weights", (tokens, keys))
    weights = softmax(scores)
    found = gradients(weights, of=(scores,), seed=seed)[scores]
    meaning = symbols((weights, found), notation=notation)
    loss = sympy.Add(
        *(g * p for rows in zip(meaning[seed], meaning[weights], strict=True) for g, p in zip(*rows, strict=True))
    )
    entries = []
    for i, (own, ruled) in enumerate(zip(meaning[scores], meaning[found], strict=True)):
        for j, (s, by_rule) in enumerate(zip(own, ruled, strict=True)):
            derived = sympy.diff(loss, s)
            entries.append(Equality(notation.entry(found, i, j), derived, by_rule, equal(derived, by_rule)))
    name = notation.of(found)
    return Proof((Lemma(name, tuple(entries)),), (name,))


def _row(matrix: Step, row: int, rows: int) -> Step:
    return transposed(Step(Split(row, rows), (transposed(matrix),), f"{matrix.role}_column"))


def _entry(matrix: Step, row: int, column: int, rows: int, columns: int) -> Step:
    return Step(Split(column, columns), (_row(matrix, row, rows),), f"{matrix.role}_entry")


def _stacked(rows: Sequence[Step], role: str) -> Step:
    standing = Step(Join(), tuple(transposed(row) for row in rows), f"{role}_columns")
    return Step(Transpose(), (standing,), role)


CLAIMS = ("scores[i,j]", "head_output[i]", "shift", "blockwise", "gradient")


def claim(find: Sequence[str], ready: Ready, notation: Notation, *, entries: bool = False) -> list[tuple[Prose, Proof]]:
    """The claims that a part's names stand for, each with its proof.

    "scores[i,j]": an entry of Q·Kᵀ is a row of Q times a row of K. "head_output[i]": a row of A·V is a weighted sum.
    "shift": a number taken off a row of scores changes no weight. "blockwise": blocks of keys give what all give at
    once. "gradient": what the softmax passes back.
    Roles: multi_head and multi_head_blocks agree in them. With `entries` every proof is written out entry by entry.
    """
    sizes = ready.sizes
    tokens, keys, d_k, d_v = (_small(size) for size in (sizes.tokens, sizes.keys, sizes.d_k, sizes.d_v))
    claims: list[tuple[Prose, Proof]] = []
    Q, K, V = (notation.of_role(role) for role in ("Q", "K", "V"))
    i, j = Letter("i"), Letter("j")
    text: Prose
    for name in find:
        if name == "scores[i,j]":
            proof = prove(*entry_claim(tokens, keys, d_k), notation=notation)
            where = ("Entry (", i, ", ", j, ") of ", between((Q.maths, K.flipped().maths), "·"))
            text = (*where, " is row ", i, " of ", Q.maths, " times row ", j, " of ", K.maths, ".")
        elif name == "head_output[i]":
            proof = prove(*row_claim(tokens, keys, d_v), notation=notation)
            summed = (" is the sum of the rows of ", V.maths, ", weighted.")
            text = ("Row ", i, " of the weights times ", V.maths, *summed)
        elif name == "shift":
            proof = prove(*shift_claim(tokens, keys), notation=notation)
            text = ("Taking the same number off every score of a row, such as the largest, changes no weight.",)
        elif name == "blockwise":
            proof = prove(*blockwise_claim(min(tokens, 2), min(keys, 3)), notation=notation)
            text = ("Block after block, corrected, gives what all keys at once give.",)
        elif name == "gradient":
            proof = prove_softmax_gradient(1, min(keys, 3), notation)
            text = ("The softmax passes back P∘(dP − D), where D is the row sum of P∘dP.",)
        elif "[" in name:
            raise HeadworkError(f"nothing is known to prove about '{name}'; try {', '.join(CLAIMS)} or a role")
        else:
            continue
        claims.append((text, proof if entries else in_names(proof, name, notation)))
    if roles := [name for name in find if name not in CLAIMS]:
        claims.append(_block_split(roles, sizes.heads, notation, entries))
    return claims


def _block_split(roles: Sequence[str], heads: Any, notation: Notation, entries: bool) -> tuple[Prose, Proof]:
    heads = heads if isinstance(heads, int) and heads > 1 else 2
    same = listed(notation.of_role(role).maths for role in roles)
    text = ("One wide projection, split, and a projection for every head give the same ", *same, ".")
    tried = heads if entries else min(heads, 3)  # the argument in names is the same for any number of heads
    last = () if "output" in roles else roles
    proof = prove("multi_head", "multi_head_blocks", roles=last, notation=notation, heads=tried)
    if tried < heads and last:
        proof = replace(proof, claimed=tuple(map(notation.of_role, roles)))
    return text, proof if entries else blocks_in_names(proof, roles, notation, heads)


def blocks_in_names(
    proof: Proof, roles: Sequence[str] = ("output",), notation: Notation = PLAIN, heads: int | None = None
) -> Proof:
    """The proof of the block split as a block identity; for any number of heads if none is told."""
    return replace(proof, short=arguments.blocks_argument(roles, notation, heads)) if proof else proof


def in_names(proof: Proof, name: str, notation: Notation = PLAIN) -> Proof:
    """The proof of one of the `CLAIMS`, with the argument that a lecturer would write."""
    return replace(proof, short=_ARGUMENTS[name](notation)) if proof else proof


_ARGUMENTS: Mapping[str, Callable[[Notation], Short]] = {
    "scores[i,j]": arguments.entry_argument,
    "head_output[i]": arguments.row_argument,
    "shift": lambda notation: arguments.shift_argument(),
    "blockwise": lambda notation: arguments.blockwise_argument(),
    "gradient": lambda notation: arguments.gradient_argument(),
}


def _small(size: Any) -> int:
    """A size to prove at: the problem's own where it is a small number, else 2."""
    return size if isinstance(size, int) and size <= 4 else 2
