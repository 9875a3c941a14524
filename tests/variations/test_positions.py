"""Positions, added or as turns, with a cache, in heads and in gradients; against NumPy written out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from headwork.errors import HeadworkError
from headwork.numbers.surd import Surd
from tests.variations.worked import QKV, W_K, W_O, W_Q, W_V, Q, W, X, close, drawn, softmax, solved, turned


class TestPositions:
    def test_they_are_added_to_X(self) -> None:
        P = drawn(2, 3)
        working = solved("single_head", {"X": X, "positions": P, **W})
        Y = X + P
        close(working["output"], softmax(Y @ W_Q @ (Y @ W_K).T / np.sqrt(2)) @ Y @ W_V @ W_O)

    def test_X_gets_its_gradient_through_them(self) -> None:
        part = 'kind = "gradient"\nloss = "sum"'
        there = solved("single_head", {"X": X, "positions": drawn(2, 3) * 0, **W}, "", part)
        without = solved("single_head", {"X": X, **W}, "", part)
        close(there["d_X"], np.asarray(without["d_X"]))
        assert "d_positions" not in repr(there)

    def test_what_is_passed_on_as_it_is_stands_once(self) -> None:
        """dX = dX_P and its numbers, not the numbers twice."""
        part = 'kind = "gradient"\nloss = "sum"\nfind = ["X"]'
        page = str(solved("single_head", {"X": X, "positions": drawn(2, 3), **W}, "", part))
        assert page.rpartition("dX = dX_P ")[2].count("⎣") == 1

    @pytest.mark.parametrize("pairs", ["neighbours", "halves"])
    @pytest.mark.parametrize("first", [0, 1])
    def test_rotary_by_angles(self, pairs: str, first: int) -> None:
        Q, K, V = drawn(3, 4), drawn(3, 4), drawn(3, 2)
        keys = f'rotary = {{ degrees = [30, 45], pairs = "{pairs}", first = {first} }}'
        working = solved("scaled_dot_product", {"Q": Q, "K": K, "V": V}, keys)
        angles = np.outer(np.arange(first, first + 3), [30, 45])
        Qr, Kr = turned(Q, angles, pairs), turned(K, angles, pairs)
        close(working["Q_rotated"], Qr)
        close(working["output"], softmax(Qr @ Kr.T / 2) @ V)

    def test_multiples_of_15_degrees_are_roots(self) -> None:
        working = solved("scaled_dot_product", QKV, "rotary = { degrees = [15], first = 7 }", 'find = ["Q_rotated"]')
        for name, function in (("cos", np.cos), ("sin", np.sin)):
            assert all(isinstance(x, Fraction | Surd) for row in working[name].value or () for x in row)
            close(working[name], function(np.radians(15 * np.arange(7, 10)))[:, None])

    def test_any_other_angle_has_certain_digits(self) -> None:
        Q, K, V = drawn(3, 4), drawn(3, 4), drawn(3, 2)
        for keys, angles in (
            ("degrees = [10, 100]", np.outer(np.arange(3), [10, 100])),
            ("base = 100", np.degrees(np.outer(np.arange(3), [1, 0.1]))),
            ("base = 10000, first = 2", np.degrees(np.outer(np.arange(2, 5), [1, 0.01]))),
        ):
            working = solved("scaled_dot_product", {"Q": Q, "K": K, "V": V}, f"rotary = {{ {keys} }}")
            Qr, Kr = turned(Q, angles, "neighbours"), turned(K, angles, "neighbours")
            close(working["output"], softmax(Qr @ Kr.T / 2) @ V)

    def test_a_table_of_so_many_places_is_rounded_before_it_is_used(self) -> None:
        working = solved("scaled_dot_product", QKV, "rotary = { base = 100, places = 3 }", 'find = ["Q_rotated"]')
        close(working["cos"], np.round(np.cos(np.arange(3.0)), 3)[:, None])
        cos, sin = (np.round(function(np.arange(3.0)), 3) for function in (np.cos, np.sin))
        close(working["Q_rotated"], np.stack([Q[:, 0] * cos - Q[:, 1] * sin, Q[:, 0] * sin + Q[:, 1] * cos], axis=1))
        assert all(isinstance(x, Fraction) for row in working["Q_rotated"].value or () for x in row)

    @pytest.mark.parametrize(
        ("keys", "base", "places"), [('"sinusoidal"', 10000, 15), ("{ base = 9, places = 2 }", 9, 2)]
    )
    def test_sinusoids_are_added_to_X(self, keys: str, base: int, places: int) -> None:
        X = drawn(3, 4)
        given = {"X": X, **{role: drawn(4, 2) for role in ("W_Q", "W_K", "W_V")}}
        working = solved("single_head", given, f"positions = {keys}")
        angles = np.outer(np.arange(3), [1, base**-0.5])
        P = np.round(np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(3, 4), places)
        close(working["positions"], P)
        Y = X + P
        close(
            working["output"],
            softmax(Y @ given["W_Q"] @ (Y @ given["W_K"]).T / np.sqrt(2)) @ Y @ given["W_V"],
        )

    def test_sinusoids_go_on_after_a_cache(self) -> None:
        given = {"X": drawn(1, 2), **{role: drawn(2, 2) for role in ("W_Q", "W_K", "W_V")}}
        given |= {"K_past": drawn(4, 2), "V_past": drawn(4, 2)}
        working = solved("single_head", given, 'positions = "sinusoidal"')
        close(working["positions"], np.array([[np.sin(4), np.cos(4)]]))

    @pytest.mark.parametrize("keys", ["", "positions = { base = 9, places = 2, first = 1 }"])
    def test_earlier_tokens_have_theirs(self, keys: str) -> None:
        """X_past and X are one sequence: what comes out is the last rows of what the whole sequence gives."""
        X, X_past, P = drawn(2, 4), drawn(3, 4), drawn(5, 4)
        given = {**{role: drawn(4, 2) for role in ("W_Q", "W_K", "W_V")}, **({} if keys else {"positions": P})}
        part = 'kind = "gradient"\nfind = ["X", "X_past", "W_K"]\nloss = "sum"'
        causal = f'mask = "causal"\n{keys}'
        cached = solved("single_head", {"X": X, "X_past": X_past, **given}, causal)
        at_once = solved("single_head", {"X": np.vstack([X_past, X]), **given}, causal)
        close(cached["output"], np.asarray(at_once["output"])[3:])
        back = solved("single_head", {"X": X, "X_past": X_past, **given}, causal, part)
        seed = part.replace('loss = "sum"', "given = { d_output = [[0, 0], [0, 0], [0, 0], [1, 1], [1, 1]] }")
        whole = solved("single_head", {"X": np.vstack([X_past, X]), **given}, causal, seed.replace('"X_past", ', ""))
        close(np.vstack([back["d_X_past"], back["d_X"]]), np.asarray(whole["d_X"]))
        close(back["d_W_K"], np.asarray(whole["d_W_K"]))

    def test_scores_depend_on_the_distance_alone(self) -> None:
        """The point of it, in closed form: two sheets that count positions from 0 and from 5 have equal scores."""
        given = {"Q": drawn(2, 2), "K": drawn(2, 2), "V": drawn(2, 2)}
        one, other = (
            solved("scaled_dot_product", given, f"rotary = {{ degrees = [15], first = {first} }}") for first in (0, 5)
        )
        assert one["scores"].value == other["scores"].value
        assert one["Q_rotated"].value != other["Q_rotated"].value

    def test_tables_as_given_and_queries_at_the_end_of_a_cache(self) -> None:
        cos, sin = drawn(3, 1), drawn(3, 1)
        given = {"Q": drawn(1, 2), "K_past": drawn(2, 2), "V_past": drawn(2, 1), "K_new": drawn(1, 2)}
        working = solved("dot_product", {**given, "V_new": drawn(1, 1), "cos": cos, "sin": sin})
        a, b = given["Q"][0]
        close(working["Q_rotated"], np.array([[a * cos[2, 0] - b * sin[2, 0], a * sin[2, 0] + b * cos[2, 0]]]))
        K = np.vstack([given["K_past"], given["K_new"]])
        turned_keys = np.hstack([K[:, :1] * cos - K[:, 1:] * sin, K[:, :1] * sin + K[:, 1:] * cos])
        close(working["K_rotated"], turned_keys)

    @pytest.mark.parametrize("pairs", ["neighbours", "halves"])
    def test_the_gradient_turns_back(self, pairs: str) -> None:
        Q, K, V = drawn(2, 4), drawn(2, 4), drawn(2, 2)
        keys = f'rotary = {{ degrees = [60, 90], pairs = "{pairs}" }}'
        part = 'kind = "gradient"\nloss = "sum"\nfind = ["Q"]'
        working = solved("scaled_dot_product", {"Q": Q, "K": K, "V": V}, keys, part)
        angles = np.outer([0, 1], [60, 90])
        P = softmax(turned(Q, angles, pairs) @ turned(K, angles, pairs).T / 2)
        dP = np.ones((2, 2)) @ V.T
        dS = P * (dP - (P * dP).sum(axis=1, keepdims=True)) / 2
        close(working["d_Q"], turned(dS @ turned(K, angles, pairs), -angles, pairs))

    def test_heads_are_turned_one_by_one(self) -> None:
        given = {"X": drawn(2, 4), **{role: drawn(4, 4) for role in ("W_Q", "W_K", "W_V", "W_O")}}
        working = solved("multi_head_blocks", given, "heads = 2\nrotary = { degrees = [90] }")
        for head in (0, 1):
            alone = (given["X"] @ given["W_Q"])[:, 2 * head : 2 * head + 2]
            close(working["Q_rotated", head + 1], turned(alone, np.array([[0], [90]]), "neighbours"))

    @pytest.mark.parametrize(
        ("keys", "given", "message"),
        [
            ("rotary = { degrees = [30, 90] }", {}, "rotary turns 2 pairs of columns, but d_k is 2 (Q has 2 columns"),
            ('rotary = "halves"', {}, "need their angles once"),
            ("rotary = { degrees = [30] }", {"cos": drawn(3, 1), "sin": drawn(3, 1)}, "need their angles once"),
            ("", {"cos": drawn(3, 1)}, "no matrix was given for sin; hand one over"),
            ("", {"cos": drawn(2, 1), "sin": drawn(2, 1)}, "cos has 2 rows, but keys is 3"),
            ("rotary = { degrees = [30], base = 3 }", {}, "key 'rotary': needs its angles once"),
            ("rotary = { base = 0 }", {}, "key 'rotary': key 'base': 0 is not greater than 0"),
            ('positions = "sinusoidal"', {}, "key 'positions': scaled_dot_product takes no X"),
            ('positions = "learned"', {}, "key 'positions': 'learned' was given; choose from sinusoidal"),
            ("rotary = { degrees = 30 }", {}, "key 'rotary': key 'degrees': needs an angle for every pair"),
            ('rotary = { degrees = ["sqrt(2)"] }', {}, "pair 1: √2 is no rational number"),
            ("rotary = 30", {}, "key 'rotary': must be a table such as"),
            ('rotary = { degrees = [30], pairs = "odd" }', {}, "key 'pairs': 'odd' was given; choose from neighbours"),
        ],
    )
    def test_what_does_not_fit_is_named(self, keys: str, given: dict[str, Any], message: str) -> None:
        with pytest.raises(HeadworkError) as error:
            solved("scaled_dot_product", {**QKV, **given}, keys)
        assert message in str(error.value)

    def test_pairs_need_an_even_width(self) -> None:
        given = {"Q": drawn(1, 3), "K": drawn(1, 3), "V": drawn(1, 1)}
        with pytest.raises(HeadworkError, match="turns 1 pairs of columns, but d_k is 3"):
            solved("scaled_dot_product", given, "rotary = { degrees = [30] }")
