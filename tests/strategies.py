"""Random problems for Hypothesis: small enough to work by brute force, varied enough to reach every corner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from headwork.sheets.fields import read_problem
from headwork.sheets.sheet import Problem

numbers = st.one_of(
    st.integers(-4, 4),
    st.integers(-30, 30).map(lambda n: f"{n / 10:.1f}"),
    st.sampled_from(["1/3", "-2/7", "sqrt(2)", "-sqrt(3)/2", "1/2+sqrt(5)"]),
)


@dataclass(frozen=True)
class Drawn:
    """A problem as the sheet's table has it, and as it was read."""

    table: dict[str, Any]
    problem: Problem


def matrix(rows: int, columns: int) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(numbers, min_size=columns, max_size=columns), min_size=rows, max_size=rows)


def mask(tokens: int, keys: int) -> st.SearchStrategy[Any]:
    boolean = st.lists(st.lists(st.booleans(), min_size=keys, max_size=keys), min_size=tokens, max_size=tokens)
    added = st.lists(
        st.lists(st.sampled_from([0, "-inf", "0.5", -1]), min_size=keys, max_size=keys),
        min_size=tokens,
        max_size=tokens,
    )
    choices: list[st.SearchStrategy[Any]] = [st.just("none"), boolean, added]
    return st.one_of(*choices, st.just("causal")) if tokens == keys else st.one_of(*choices)


@st.composite
def problems(draw: st.DrawFn) -> Drawn:
    """1–4 heads, 1–5 tokens, widths 1–6; masks, biases, grouped heads, cross-attention, any scale."""
    formula = draw(st.sampled_from(["single_head", "multi_head", "multi_head_blocks"]))
    heads = 1 if formula == "single_head" else draw(st.integers(1, 4))
    kv_heads = draw(st.sampled_from([g for g in range(1, heads + 1) if heads % g == 0]))
    tokens, d_model = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    d_k, d_v, d_out = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    cross = draw(st.booleans())
    keys, d_context = (draw(st.integers(1, 5)), draw(st.integers(1, 4))) if cross else (tokens, d_model)
    given: dict[str, Any] = {"X": draw(matrix(tokens, d_model))}
    if cross:
        given["context"] = draw(matrix(keys, d_context))
    widths = {"Q": (d_model, d_k, heads), "K": (d_context, d_k, kv_heads), "V": (d_context, d_v, kv_heads)}
    for letter, (rows, columns, number) in widths.items():
        shape = (rows, columns) if formula == "single_head" else (rows, number * columns)
        each = formula == "multi_head"
        given[f"W_{letter}"] = [draw(matrix(rows, columns)) for _ in range(number)] if each else draw(matrix(*shape))
        if draw(st.booleans()):
            flat = [draw(matrix(1, columns))[0] for _ in range(number)]
            given[f"b_{letter}"] = flat if each else draw(matrix(1, shape[1]))[0]
    given["W_O"] = draw(matrix(heads * d_v, d_out))
    if draw(st.booleans()):
        given["b_O"] = draw(matrix(1, d_out))[0]
    table = {
        "formula": formula,
        "given": given,
        "mask": draw(mask(tokens, keys)),
        "scale": draw(st.sampled_from(["sqrt(d_k)", "none", 2, "sqrt(3)"])),
        "part": [{"label": "a", "find": ["output"]}],
    }
    if formula != "single_head":
        table |= {"heads": heads, "kv_heads": kv_heads}
    return Drawn(table, read_problem(table, "Drawn"))
