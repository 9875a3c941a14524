"""The projections of somebody's layer, found by the names of its parameters, in every way they may be meant.

A wide parameter may hold queries, keys and values in any order, head by head or not; a bare matrix may be meant for
X·W or for X·Wᵀ. Each way is one reading: the layer is right if it is right in one of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from headwork.readings.values import Array

_FILLER = re.compile(
    "params|weights|weight|bias|kernel|projection|proj|linear|layer|lin|attention|attn|self|heads|head|mha|matrix|dense|fc|to|w"
)
_ROLES = {
    **dict.fromkeys(("q", "qs", "query", "queries"), "Q"),
    **dict.fromkeys(("k", "ks", "key", "keys"), "K"),
    **dict.fromkeys(("v", "vs", "value", "values"), "V"),
    **dict.fromkeys(("kv", "keyvalue"), "KV"),
    **dict.fromkeys(("o", "out", "output", "c", "final", "unify", "mix", "combine"), "O"),
}
USUAL = (0, 1, 2, "QKV")  # queries, then keys, then values; in each the heads as blocks of columns
PACKED = ("qkv", "inproj", "cattn", "kqv", "qvk", "querykeyvalue")
Own = Mapping[str, Array]  # W_Q, b_Q … as X·W + b has them


def role_of(name: str) -> str | None:
    """Which projection a parameter belongs to: "Q", "K", "V", "O", "KV", "QKV" for all three in one, or None.

    >>> names = ("q_proj.weight", "W_key", "heads.0.to_v.weight", "out_proj.bias", "in_proj_weight", "norm")
    >>> [role_of(name) for name in names]
    ['Q', 'K', 'V', 'O', 'QKV', None]
    """
    plain = re.sub("[^a-z]", "", name.lower())
    if any(packed in plain for packed in PACKED):
        return "QKV"
    if plain in ("bq", "bk", "bv", "bo"):
        return plain[1].upper()
    return _ROLES.get(_FILLER.sub("", plain))


@dataclass(frozen=True)
class Parameter:
    """One parameter: of outputs×inputs where a linear layer holds it, else in an order that is not known."""

    name: str
    array: Array
    linear: bool = False

    @property
    def bias(self) -> bool:
        return self.array.ndim == 1 or re.search(r"(^|[._])b_?[qkvo]$", self.name.lower()) is not None


@dataclass(frozen=True)
class LayerProjections:
    """The readings of a layer's parameters, likeliest first, what each takes a wide one to hold where that is not the
    usual, and the parameters that have no place in the formula."""

    readings: tuple[Own, ...] = ()
    unusual: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()


def projections(parameters: Sequence[Parameter], heads: int) -> LayerProjections:
    """What the parameters are to the formula, for so many heads."""
    roles = _roles(parameters)
    left_over = tuple(p.name for p in parameters if p.name not in roles)
    readings: list[Own] = []
    unusual: list[str] = []
    bare = any(not p.linear and not p.bias for p in parameters if p.name in roles)
    for turned in (False, True) if bare else (False,):
        for packing in _packings() if {"QKV", "KV"} & set(roles.values()) else (USUAL,):
            own = _read(parameters, roles, heads, turned, packing)
            if own is not None:
                readings.append(own)
                unusual.append("" if packing == USUAL else _held(packing, "QKV" in roles.values()))
    return LayerProjections(tuple(readings), tuple(unusual), left_over)


def _held(packing: tuple[Any, ...], queries: bool) -> str:
    """A packing in words.

    >>> _held((1, 0, 2, "KQV"), True)
    'keys, queries, values, numbered by head, part, column'
    """
    *axes, letters = packing
    words = {"Q": "queries", "K": "keys", "V": "values"}
    parts = ", ".join(words[letter] for letter in letters if queries or letter != "Q")
    return f"{parts}, numbered by {', '.join(('part', 'head', 'column')[axis] for axis in axes)}"


def _roles(parameters: Sequence[Parameter]) -> dict[str, str]:
    """By the name; else by its number in a list of three or four; the one matrix that is left over is W_O."""
    roles = {p.name: role for p in parameters if (role := role_of(p.name)) is not None}
    lists: dict[str, set[int]] = {}
    numbered = re.compile(r"(.*?)\.?(\d+)\.?(?:weight|bias)?$")
    for p in parameters:
        if p.name not in roles and (match := numbered.fullmatch(p.name)):
            lists.setdefault(match[1], set()).add(int(match[2]))
    for p in parameters:
        match = numbered.fullmatch(p.name)
        if p.name not in roles and match and lists[match[1]] in ({0, 1, 2}, {0, 1, 2, 3}):
            roles[p.name] = "QKVO"[int(match[2])]
    left = [p for p in parameters if p.name not in roles]
    matrices = [p for p in left if p.array.ndim >= 2]
    if "O" not in roles.values() and len(matrices) == 1:
        beside = re.sub("(?:weight|kernel)$", "bias", matrices[0].name)
        roles |= {p.name: "O" for p in left if p.name in (matrices[0].name, beside)}
    return roles


def _packings() -> Iterator[tuple[Any, ...]]:
    """Which axis of a wide parameter is the part, which the head, which the width; and the order of the parts."""
    for letters in permutations("QKV"):
        for axes in permutations(range(3)):
            yield (*axes, "".join(letters))


def _read(
    parameters: Sequence[Parameter], roles: Mapping[str, str], heads: int, turned: bool, packing: tuple[Any, ...]
) -> Own | None:
    """One reading; None where a parameter does not fit it."""
    pieces: dict[str, list[Array]] = {}
    try:
        for p in parameters:
            if p.name not in roles:
                continue
            role, letter = roles[p.name], "b" if p.bias else "W"
            rows = _by_output(p, role, turned)
            if role in ("QKV", "KV"):
                for part, piece in _unpacked(rows, role, heads, packing):
                    pieces.setdefault(f"{letter}_{part}", []).append(piece)
            else:
                pieces.setdefault(f"{letter}_{role}", []).append(rows)
        own = {role: np.concatenate(each).T for role, each in pieces.items()}
    except ValueError:
        return None
    return own if _fit(own, heads) else None


def _fit(own: Own, heads: int) -> bool:
    if not {"W_Q", "W_K", "W_V"} <= own.keys() or len({own[f"W_{part}"].shape[0] for part in "QKV"}) != 1:
        return False
    width = own["W_V"].shape[1]  # of all heads; or of one, where X was split first and the heads share a projection
    groups = own["W_Q"].shape[1] // width if width and own["W_Q"].shape[1] % width == 0 else 1
    return "W_O" not in own or own["W_O"].shape[0] in (width, heads * width, groups * width)


def _by_output(p: Parameter, role: str, turned: bool) -> Array:
    """A row for every output. Matrices of single heads, (heads, d_model, d_k) or (d_model, heads, d_k), lie one after
    the other."""
    array = p.array
    if p.bias:
        return array.reshape(-1, 1)
    if array.ndim == 3 and role == "O":
        return array.reshape(-1, array.shape[-1]).T
    if array.ndim == 3:
        return array.transpose(1, 2, 0).reshape(-1, array.shape[0]) if turned else np.concatenate(array, axis=1).T
    if array.ndim != 2:
        raise ValueError("no matrix")
    return array if p.linear or turned else array.T


def _unpacked(rows: Array, role: str, heads: int, packing: tuple[Any, ...]) -> Iterator[tuple[str, Array]]:
    """The parts of a wide parameter, each with its heads as blocks."""
    *axes, letters = packing
    parts = [letter for letter in letters if letter in role]
    if role == "KV" and rows.shape[0] % (2 * heads):
        heads = 1  # fewer keys and values than queries: all heads share them
    sizes = (len(parts), heads, rows.shape[0] // (len(parts) * heads))
    if rows.shape[0] != sizes[0] * sizes[1] * sizes[2]:
        raise ValueError("it cannot be shared by the heads")
    theirs = rows.reshape(*(sizes[axis] for axis in axes), rows.shape[1])
    ours = theirs.transpose(*np.argsort(axes), 3)
    for number, part in enumerate(parts):
        yield part, ours[number].reshape(-1, rows.shape[1])
