"""Calls that make no sense, one or two arguments of each wrong: an error that says so, or the right number.

    python bench/nonsense_calls.py --count 1000 --seed 1
    python bench/nonsense_calls.py --count 1 --seed 1 --first 47      # one of them again

Entries: `headwork.attention`, `attention_varlen` and `attention_decode`, the same for tensors, torch's function under
`use()`, and JAX's. A call is wrong where it ends the process or takes more than a minute, raises anything but our own
errors (below torch and JAX: but theirs), or returns something else than the formula in float64 for what the arguments
say.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from nonsense_values import ARRAYS, OPTIONS, TENSORS, Blocks, expected, expected_of_cache, understood
from torch import Tensor

import headwork
import headwork.torch as in_torch
from headwork.engine import BlockMask
from headwork.errors import HeadworkError

SECONDS = 60
Given = dict[str, Any]


def arrays(rng: np.random.Generator) -> Given:
    heads, tokens, keys = 2, int(rng.integers(1, 5)), int(rng.integers(1, 6))
    shapes = {"q": (heads, tokens, 4), "k": (heads, keys, 4), "v": (heads, keys, 4)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def tensors(rng: np.random.Generator) -> Given:
    names = {"q": "query", "k": "key", "v": "value"}
    return {names[name]: torch.from_numpy(array) for name, array in arrays(rng).items()}


def packed(given: Given) -> Given:
    """Heads last, and offsets of one sequence."""
    q, k, v = (x.swapaxes(0, 1) for x in given.values())
    names = list(given)
    made: Callable[[list[int]], Any] = torch.tensor if isinstance(q, Tensor) else np.array
    ends = {"offsets_q": made([0, q.shape[0]]), "offsets_k": made([0, k.shape[0]])}
    return dict(zip(names, (q, k, v), strict=True)) | ends


def kept(rng: np.random.Generator, made: Callable[[Any], Any]) -> Given:
    """Newest tokens and what a cache has for two sequences: in one piece or in blocks, of 32 bits or of 8."""
    in_blocks, small, keys = rng.random() < 0.5, rng.random() < 0.4, int(rng.integers(1, 6))
    shape = (3, 2, 2, 4) if in_blocks else (2, 2, keys, 4)
    given: Given = {"q": rng.standard_normal((2, 4, int(rng.integers(1, 4)), 4)).astype(np.float32)}
    for name in "kv":
        bits: Any = rng.integers(-127, 128, shape).astype(np.int8)
        given[name] = bits if small else rng.standard_normal(shape).astype(np.float32)
    if in_blocks:
        given |= {"block_table": np.array([[0, 1], [1, 2]]), "lengths": rng.integers(0, 5, 2)}
    if small:
        given |= {f"{name}_scales": rng.random(shape[:-1]).astype(np.float32) / 127 for name in "kv"}
    names = {"q": "query", "k": "key", "v": "value"} if made is torch.from_numpy else {}
    return {names.get(name, name): made(array) for name, array in given.items()}


def in_blocks(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, its blocks made within it."""

    def called(**given: Any) -> Any:
        if isinstance(given.get("blocks"), Blocks):
            given |= {"blocks": BlockMask(*given["blocks"])}
        return call(**given)

    return called


def below(query: Any, key: Any, value: Any, **options: Any) -> Any:
    with in_torch.use():
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, **options)


def in_jax(query: Any, key: Any, value: Any, **options: Any) -> Any:
    from headwork.jax import dot_product_attention

    return dot_product_attention(query, key, value, **options)


def with_batch(given: Given) -> Given:
    return {name: x[None] for name, x in given.items()}


def tokens_first(given: Given) -> Given:
    return {name: x.swapaxes(0, 1)[None] for name, x in given.items()}


ENTRIES: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], Given], str]] = {
    "headwork.attention": (in_blocks(headwork.attention), arrays, "arrays"),
    "headwork.attention_varlen": (headwork.attention_varlen, lambda rng: packed(arrays(rng)), "packed arrays"),
    "headwork.torch.attention": (in_blocks(in_torch.attention), tensors, "tensors"),
    "headwork.torch.attention_varlen": (in_torch.attention_varlen, lambda rng: packed(tensors(rng)), "packed tensors"),
    "headwork.attention_decode": (headwork.attention_decode, lambda rng: kept(rng, np.asarray), "cached arrays"),
    "headwork.torch.attention_decode": (
        in_torch.attention_decode,
        lambda rng: kept(rng, torch.from_numpy),
        "cached tensors",
    ),
    "headwork.torch.scaled_dot_product_attention": (
        in_torch.scaled_dot_product_attention,
        lambda rng: with_batch(tensors(rng)),
        "torch's",
    ),
    "use": (below, lambda rng: with_batch(tensors(rng)), "torch's"),
    "headwork.jax": (
        in_jax,
        lambda rng: dict(zip(("query", "key", "value"), tokens_first(arrays(rng)).values(), strict=True)),
        "jax's",
    ),
}


def drawn(number: int, seed: int) -> tuple[str, Given, str]:
    """(an entry, its arguments, what was done to them)."""
    rng = np.random.default_rng((seed, number))
    entry = list(ENTRIES)[number % len(ENTRIES)]
    _, make, kind = ENTRIES[entry]
    given, done = make(rng), []
    main = list(given)
    for _ in range(int(rng.integers(1, 3))):
        name = str(rng.choice(list(dict.fromkeys([*main, *OPTIONS[kind]]))))
        table = OPTIONS[kind].get(name, ARRAYS if "arrays" in kind or kind == "jax's" else TENSORS)
        what = str(rng.choice(list(table)))
        base = given.get(name)
        given[name] = table[what](base, given)
        done.append(f"{name} {what}")
    return entry, given, ", ".join(done)


def judged(number: int, seed: int) -> str:
    """What is wrong with our answer; "" where nothing is, and what was raised or returned in brackets."""
    entry, given, done = drawn(number, seed)
    call, _, kind = ENTRIES[entry]
    told = f"{number}: {entry}({done})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(**given)
        except HeadworkError as error:
            return "" if len(str(error)) > 20 else f"{told}: unclear: {error}"
        except Exception as error:
            return "" if theirs(kind, given) else f"{told}: {type(error).__name__}: {str(error)[:200]}"
        return compared(told, kind, given, found)


def theirs(kind: str, given: Given) -> bool:
    """Does the function that ours stands for refuse this too?"""
    try:
        if kind == "torch's":
            torch.nn.functional.scaled_dot_product_attention(**given)
        elif kind == "jax's":
            import jax

            jax.nn.dot_product_attention(**given)
        else:
            return False
    except Exception:
        return True
    return False


def endless(slopes: Any) -> bool:
    return slopes is not None and bool(np.isinf(number_array(slopes)).any())


def compared(told: str, kind: str, given: Given, found: Any) -> str:
    found = found[0] if isinstance(found, tuple) else found
    if kind == "torch's":
        if given.get("dropout_p") or not math.isfinite(given.get("scale") or 0):
            return ""  # drawn; or what torch itself answers with zeros here and NaN there
        try:
            exact = torch.nn.functional.scaled_dot_product_attention(**given)
        except Exception as error:
            return f"{told}: accepted what torch refuses: {error}"
        if exact.device.type == "meta" or exact.is_nested or type(exact) is not Tensor:
            return "" if exact.shape == found.shape else f"{told}: shape {found.shape}"
        mine, fine = (np.asarray(x.detach().double().resolve_neg()) for x in (found, exact))
    else:
        why = understood(kind, given)
        if why:
            return f"{told}: accepted {why}"
        if given.get("dropout") or endless(given.get("alibi")):
            return ""  # drawn; or ∞·0 at a token's own position, which is no number
        exact = expected_of_cache(given) if "cached" in kind else expected(kind, given)
        mine, fine = number_array(found), exact
    if mine.shape != fine.shape:
        return f"{told}: shape {mine.shape}, not {fine.shape}"
    near = np.isclose(mine, fine, rtol=2e-2, atol=2e-2, equal_nan=True)
    return "" if near.all() else f"{told}: {mine[~near][:3]} in place of {fine[~near][:3]}"


def number_array(found: Any) -> Any:
    if isinstance(found, Tensor):
        found = found.detach().to(torch.float64).resolve_neg().numpy()
    return np.asarray(found).astype(np.float64)


def work(numbers: range, seed: int, to: Connection) -> None:
    for number in numbers:
        to.send((number, None))
        to.send((number, judged(number, seed)))
    to.send((numbers.stop, None))


def all_of(numbers: range, seed: int) -> list[str]:
    """In a process of its own, which is started again where a call ended it or did not come back."""
    context, wrong = multiprocessing.get_context("spawn"), []
    while len(numbers):
        mine, its = context.Pipe(duplex=False)
        worker = context.Process(target=work, args=(numbers, seed, its))
        worker.start()
        its.close()
        at, why = numbers.start, ""
        try:
            while at < numbers.stop:
                if not mine.poll(SECONDS + (SECONDS if at == numbers.start else 0)):
                    why = "did not come back"
                    break
                at, found = mine.recv()
                if found:
                    wrong.append(found)
                    print(found, flush=True)
        except EOFError:
            why = "ended the process"
        if worker.is_alive() and why:
            worker.kill()
        worker.join()
        if why:
            wrong.append(f"{at}: {drawn(at, seed)[0]}({drawn(at, seed)[2]}): {why} ({worker.exitcode})")
            print(wrong[-1], flush=True)
        numbers = range(at + 1, numbers.stop)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    wrong = all_of(range(chosen.first, chosen.first + chosen.count), chosen.seed)
    print(f"{chosen.count} calls, {len(wrong)} wrong")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
