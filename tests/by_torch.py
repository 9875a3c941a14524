"""The layer of a drawn problem and its gradients by torch's autograd, written again from the textbook."""

from typing import Any

import numpy as np
import torch

from headwork.numbers.digits import to_float
from headwork.numbers.parse import parse_number


def entry(value: Any) -> float:
    if isinstance(value, bool):
        return 0.0 if value else -np.inf
    return -np.inf if value == "-inf" else to_float(parse_number(value))


def tensor(rows: Any) -> torch.Tensor:
    return torch.tensor([[entry(x) for x in row] for row in rows], dtype=torch.float64)


def leaves(table: dict[str, Any]) -> dict[tuple[str, int | None], torch.Tensor]:
    """Every matrix that is given, by role and head, ready for a gradient."""
    found: dict[tuple[str, int | None], torch.Tensor] = {}
    for role, value in table["given"].items():
        if role.startswith("b_"):
            each = list(enumerate(value)) if isinstance(value[0], list) else [(None, value)]
            found |= {(role, head): tensor([row]) for head, row in each}
        elif isinstance(value[0][0], list):
            found |= {(role, head): tensor(matrix) for head, matrix in enumerate(value)}
        else:
            found[role, None] = tensor(value)
    return {key: matrix.requires_grad_() for key, matrix in found.items()}


def output(table: dict[str, Any], given: dict[tuple[str, int | None], torch.Tensor]) -> torch.Tensor:
    """The whole layer; a row in which nothing may be read gives zeros."""
    X = given["X", None]
    C = given.get(("context", None), X)
    heads, kv_heads = table.get("heads", 1), table.get("kv_heads", 1)

    def projected(letter: str, source: torch.Tensor, number: int) -> list[torch.Tensor]:
        if table["formula"] == "multi_head":
            each = [source @ given[f"W_{letter}", h] for h in range(number)]
            return [m + given[f"b_{letter}", h] if (f"b_{letter}", h) in given else m for h, m in enumerate(each)]
        wide = source @ given[f"W_{letter}", None]
        wide = wide + given[f"b_{letter}", None] if (f"b_{letter}", None) in given else wide
        return list(wide.chunk(number, dim=1))

    Q, K, V = projected("Q", X, heads), projected("K", C, kv_heads), projected("V", C, kv_heads)
    scale = {"none": 1.0, "sqrt(d_k)": Q[0].shape[1] ** 0.5, 2: 2.0, "sqrt(3)": 3**0.5}[table["scale"]]
    mask = torch.zeros(len(X), len(C), dtype=torch.float64)
    if table["mask"] == "causal":
        mask = torch.triu(torch.full_like(mask, -torch.inf), 1)
    elif table["mask"] != "none":
        mask = tensor(table["mask"])
    outputs = []
    for h, q in enumerate(Q):
        k, v = K[h * kv_heads // heads], V[h * kv_heads // heads]
        seen = torch.isfinite(mask)
        scores = torch.where(seen, q @ k.T / scale + torch.where(seen, mask, 0.0), -1e300)
        powers = torch.exp(scores - scores.amax(1, keepdim=True).detach()) * seen
        sums = powers.sum(1, keepdim=True)
        outputs.append(powers / torch.where(sums == 0, 1.0, sums) @ v)
    last = torch.cat(outputs, dim=1) @ given["W_O", None]
    return last + given["b_O", None] if ("b_O", None) in given else last
