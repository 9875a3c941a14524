"""The projections of a torch module, found by the names of its parameters."""

import re
from typing import Any

import numpy as np

from headwork.readings.values import Array

_FILLER = re.compile(
    "weight|bias|projection|proj|linear|layer|lin|attention|attn|self|heads|head|mha|matrix|dense|fc|to|w"
)
_ROLES = {
    **dict.fromkeys(("q", "query", "queries"), "Q"),
    **dict.fromkeys(("k", "key", "keys"), "K"),
    **dict.fromkeys(("v", "value", "values"), "V"),
    **dict.fromkeys(("o", "out", "output", "c", "final", "unify", "mix"), "O"),
}
PACKED = ("qkv", "inproj", "cattn", "kqv")


def role_of(name: str) -> str | None:
    """Which projection a parameter belongs to: "Q", "K", "V", "O", "QKV" for all three in one, or None.

    >>> names = ("q_proj.weight", "W_key", "heads.0.to_v.weight", "out_proj.bias", "in_proj_weight", "norm")
    >>> [role_of(name) for name in names]
    ['Q', 'K', 'V', 'O', 'QKV', None]
    """
    plain = re.sub("[^a-z]", "", name.lower())
    if any(packed in plain for packed in PACKED):
        return "QKV"
    return _ROLES.get(_FILLER.sub("", plain))


def projections(module: Any) -> dict[str, Array]:
    """W_Q, b_Q … as X·W + b has them. Parameters of single heads are put side by side in order."""
    found: dict[str, list[Array]] = {}
    for name, parameter in module.named_parameters():
        role = role_of(name)
        if role is None:
            continue
        array = parameter.detach().double().numpy()
        letter = "W" if array.ndim == 2 else "b"
        rows = array if array.ndim == 2 else array[:, None]  # a row for every output
        if role == "QKV":
            if array.ndim == 2 and rows.shape[1] == 3 * rows.shape[0]:
                rows = rows.T  # stored the other way round, inputs first
            for part, piece in zip("QKV", np.split(rows, 3), strict=True):
                found.setdefault(f"{letter}_{part}", []).append(piece)
        else:
            found.setdefault(f"{letter}_{role}", []).append(rows)
    return {role: np.concatenate(pieces).T for role, pieces in found.items()}
