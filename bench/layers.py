"""`headwork.torch.MultiheadAttention` beside torch's own, in turns in one run: python bench/layers.py

The machine's multiply-adds, with nothing else to do, take their turns among them. Both use torch's products for the
projections and one thread pool; what differs is the attention between them.
"""

from functools import partial

import torch

from headwork.engine import backend
from headwork.engine.backend import kernel
from headwork.engine.bench.turns import medians, turn
from headwork.torch import MultiheadAttention

ROUNDS = 41
SIZES = [(4, 256, 512, 8), (1, 1024, 512, 8), (8, 128, 768, 12)]  # batch, tokens, d_model, heads


def operations(batch: int, tokens: int, d_model: int) -> int:
    """Of the four projections and the two products between them."""
    return batch * tokens * (8 * d_model**2 + 4 * tokens * d_model)


def compare(batch: int, tokens: int, d_model: int, heads: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(batch, tokens, d_model)
    theirs = torch.nn.MultiheadAttention(d_model, heads, batch_first=True).eval()
    ours = MultiheadAttention(d_model, heads, batch_first=True).eval()
    finer = torch.nn.MultiheadAttention(d_model, heads, batch_first=True, dtype=torch.float64).eval()
    ours.load_state_dict(theirs.state_dict())
    finer.load_state_dict(theirs.state_dict())
    exact = finer(x.double(), x.double(), x.double(), need_weights=False)[0]
    for asked in (False, True):
        layers = {"headwork": ours, "torch": theirs}
        calls = {name: partial(layer, x, x, x, need_weights=asked) for name, layer in layers.items()}
        for name, call in calls.items():
            off = (call()[0].double() - exact).abs().max().item()
            assert off < 1e-5, f"{name} is off by {off:.1e}"
        if kernel is not None:
            calls["limit"] = partial(kernel.multiply_add, operations(batch, tokens, d_model), 0)
        took = medians({name: turn(call) for name, call in calls.items()}, ROUNDS, 20)
        ratio = took["torch"] / took["headwork"]
        share = f"{took['limit'] / took['headwork']:8.0%}" if "limit" in took else ""
        size = f"({batch}, {tokens}, {d_model}), {heads} heads, {'with' if asked else 'without'} weights"
        print(f"{size:48}{took['headwork'] * 1e3:8.2f} ms{took['torch'] * 1e3:8.2f} ms{ratio:8.2f}×{share}")


if __name__ == "__main__":
    print(
        f"evaluation, float32, {backend()}; headwork, torch {torch.__version__}, torch's time over ours, and the"
        " share of the machine's multiply-adds that ours reaches"
    )
    with torch.no_grad():
        for size in SIZES:
            compare(*size)
