"""A decoding step of a Llama with grouped heads and a left-padded batch: the whole model, sdpa against "headwork".

    taskset -c 1 python bench/decode_step.py                 # one thread; on an idle machine
    python bench/decode_step.py --profile                    # where the time of our entry goes

Both models have the same parameters and a cache of their own, filled by the same prompt; steps take turns, the cache is
cut back after each, and the logits are compared. Reported: the median time of either, the median ratio, and how much of
sdpa's step is attention: no entry can gain more than that.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.integrations import sdpa_attention

import headwork.transformers  # noqa: F401  # registers the name
from headwork.torch import report

PAIR = ("sdpa", "headwork")


def made(layers: int, hidden: int, implementation: str) -> Any:
    settings = transformers.LlamaConfig(
        hidden_size=hidden, num_attention_heads=16, num_key_value_heads=4, head_dim=64, num_hidden_layers=layers,
        intermediate_size=hidden, vocab_size=512, max_position_embeddings=2048, attn_implementation=implementation,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(settings).eval()


def stepping(model: Any, batch: int, keys: int) -> Callable[[], Tensor]:
    """A step: one token for every sequence, with `keys` keys in the end; each pads a few more than the last."""
    ids = torch.randint(512, (batch, keys), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    for row in range(batch):
        mask[row, : 7 * row] = 0
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    cache = transformers.DynamicCache(config=model.config)
    model(ids[:, :-1], attention_mask=mask[:, :-1], position_ids=places[:, :-1], past_key_values=cache)

    def step() -> Tensor:
        out = model(ids[:, -1:], attention_mask=mask, position_ids=places[:, -1:], past_key_values=cache)
        cache.crop(-1)
        logits: Tensor = out.logits
        return logits

    return step


def taken(step: Callable[[], Tensor]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def attention_share(step: Callable[[], Tensor], rounds: int) -> float:
    """How much of a step goes to transformers' own attention function."""
    register, own, within = transformers.AttentionInterface, sdpa_attention.sdpa_attention_forward, [0.0]

    def timed(*given: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        found = own(*given, **options)
        within[0] += time.perf_counter() - begin
        return found

    register.register("sdpa", timed)
    total = sum(taken(step) for _ in range(rounds))
    register.register("sdpa", own)
    return within[0] / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--keys", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--repeat", action="store_true", help="sdpa as in transformers before it packed grouped heads")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.repeat:
        sdpa_attention.is_torchdynamo_compiling = lambda: True  # compiled, it repeats keys and values still
    with torch.inference_mode():
        steps = [stepping(made(chosen.layers, chosen.hidden, name), chosen.batch, chosen.keys) for name in PAIR]
        with report() as ran:
            torch.testing.assert_close(*(step() for step in steps), rtol=1e-4, atol=1e-4)
        assert (ran.on_kernel(), ran.elsewhere()) == (chosen.layers, 0)
        if chosen.profile:
            with cProfile.Profile() as profile:
                for _ in range(chosen.rounds):
                    steps[1]()
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return
        share = attention_share(steps[0], chosen.rounds)
        times = [[taken(step) for step in steps] for _ in range(chosen.rounds)]
    theirs, ours = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    print(", ".join(f"{name} {value}" for name, value in vars(chosen).items() if name != "profile"))
    print(f"sdpa {theirs:.2f} ms, headwork {ours:.2f} ms a step: {ratio:.2f} times as fast")
    print(f"attention is {100 * share:.0f} % of sdpa's step")


if __name__ == "__main__":
    main()
