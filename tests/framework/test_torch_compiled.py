"""Our functions in compiled code: sizes that are symbols, and what a report counts."""

from typing import Any

import pytest
import torch

from headwork.torch import attention, attention_decode, report

# torch's compiler uses what torch deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


DYNAMIC: dict[str, dict[str, Any]] = {
    "a number for each item": {"lengths": [3, 5], "starts": [1, 0], "causal": "top_left"},
    "places of each item": {"offset": [2, 1], "window": (2, 1)},
    "numbers for each head": {"sinks": torch.ones(2, 4), "alibi": torch.ones(4), "relative": torch.ones(2, 4, 3)},
    "a mask": {"mask": torch.ones(2, 1, 1, 1)},
    "dropout": {"dropout": 0.4, "seed": 3},
    "a scale": {"scale": 0.3, "softcap": 2.0},
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_sizes_that_are_symbols(name: str) -> None:
    """Compiled once for any size, to the end: torch's compiler has symbols for our numbers, too."""
    torch._dynamo.reset()

    def ours(q: torch.Tensor, k: torch.Tensor, **options: Any) -> torch.Tensor:
        return attention(q, k, k, **options)

    backend = "inductor" if name == "dropout" else "aot_eager"  # code that bears the seed is written by the former
    compiled = torch.compile(ours, fullgraph=True, dynamic=True, backend=backend)
    for tokens, keys in ((6, 9), (7, 11)):
        q, k = torch.randn(2, 4, tokens, 8), torch.randn(2, 2, keys, 8)
        torch.testing.assert_close(compiled(q, k, **DYNAMIC[name]), ours(q, k, **DYNAMIC[name]))


def test_a_scale_made_of_a_size() -> None:
    torch._dynamo.reset()
    x = torch.randn(2, 3, 5, 8)
    compiled = torch.compile(
        lambda x: attention(x, x, x, scale=x.shape[-1] ** -0.5), fullgraph=True, dynamic=True, backend="aot_eager"
    )
    torch.testing.assert_close(compiled(x), attention(x, x, x))


def test_compiled_calls_are_counted_when_they_run() -> None:
    """Compiled while somebody listens, whole, and counted every time; calls through the dispatcher once."""
    torch._dynamo.reset()
    x = torch.randn(1, 2, 5, 8)
    table = torch.tensor([[0]])

    def both(x: torch.Tensor) -> Any:
        return attention(x, x, x), attention_decode(x[:, :, :1], x, x, block_table=table, lengths=[3])

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    for times in (1, 3):
        with report() as ran:
            for _ in range(times):
                compiled(x)
        assert sorted(map(str, ran.calls)) == [
            "headwork::attention, operator: in compiled code",
            "headwork::attention_decode, operator: in compiled code",
        ]
        assert (ran.on_kernel(), ran.elsewhere()) == (2 * times, 0)
    with report() as ran:
        torch.func.vmap(lambda x: attention(x, x, x))(x[None])
        torch.func.vmap(lambda x: attention_decode(x[:, :, :1], x, x))(x[None])
    assert [str(one) for one in ran.calls] == [
        "attention, operator: it is called under a transform of torch.func",
        "attention_decode, operator: it is called under a transform of torch.func",
    ]
    assert ran.on_kernel() == 2
