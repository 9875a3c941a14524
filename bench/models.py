"""Real architectures with random weights, ours against torch's own: outputs and all gradients, both against float64.

    python bench/models.py                  # all that can be imported; --only llama for one
    pip install '.[models]'                 # in a venv of its own, for all of them

transformers' models run with attn_implementation="headwork", the others under `headwork.torch.use()`; in evaluation
and in training mode, padded on the left and on the right. A model is wrong where its error is more than twice torch's
own and more than rounding, or where an attention call ran elsewhere than on the kernel. Then what they generate, with
dynamic and static caches, token by token beside the model's own; and training with dropout, where calls are counted.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from architectures import GPT2, SUBJECTS, T5, Inputs, Subject, both_texts, of_transformers, sizes, text, whisper
from torch import Tensor, nn

from headwork.torch import Report, report, use

WITH_DROPOUT = {
    "bert": (of_transformers("BertModel", "BertConfig", **sizes()), text, 2),
    "gpt2": (of_transformers("GPT2LMHeadModel", "GPT2Config", **GPT2 | {"attn_pdrop": 0.1}), text, 2),
    "t5": (of_transformers("T5ForConditionalGeneration", "T5Config", **T5 | {"dropout_rate": 0.1}), both_texts, 6),
}
GENERATE = ("llama", "mistral", "qwen3", "gemma2", "gemma3", "gpt-oss", "deepseek-v3", "gpt2", "whisper", "t5", "bart")
NEW_TOKENS = 9


class Outcome(NamedTuple):
    """What is wrong, or nothing; what ran; the largest ratio of our error to torch's, of all that is above rounding."""

    wrong: str
    ran: Report
    ratio: float


def formula(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **given: Any
) -> tuple[Tensor, None]:
    """Attention as transformers calls it, every matrix written out: what float64 is worked with."""
    group = query.shape[1] // key.shape[1]
    key, value = (t.repeat_interleave(group, 1) for t in (key, value))
    scores = query @ key.mT * (given.get("scaling") or query.shape[-1] ** -0.5)
    if given.get("softcap"):
        scores = given["softcap"] * torch.tanh(scores / given["softcap"])
    if given.get("position_bias") is not None:
        scores = scores + given["position_bias"]
    causal = given["is_causal"] if given.get("is_causal") is not None else getattr(module, "is_causal", True)
    if attention_mask is None and causal and query.shape[2] > 1:
        attention_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, -torch.inf)
    if given.get("s_aux") is not None:
        scores = torch.cat((scores, given["s_aux"].view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)), -1)
    empty = (scores == -torch.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)[..., : key.shape[2]]
    return (weights @ value).transpose(1, 2).contiguous(), None


def registered() -> None:
    """Our entry, and the formula under a name of its own."""
    library = importlib.import_module("transformers")
    importlib.import_module("headwork.transformers")
    library.AttentionInterface.register("formula", formula)
    library.AttentionMaskInterface.register("formula", library.masking_utils.sdpa_mask)


def torchs_own(subject: Subject) -> nn.Module:
    """With sdpa, or what a model without it has."""
    try:
        return subject.make("sdpa")
    except ValueError:
        return subject.make("eager")


def worked(subject: Subject, model: nn.Module, given: Inputs, dtype: torch.dtype) -> dict[str, Tensor]:
    """The output where tokens are real, and the gradient of every parameter."""
    model = copy.deepcopy(model).to(dtype)
    inputs = {n: t.to(dtype) if t.is_floating_point() else t for n, t in given.items()}
    out = subject.read(model(**inputs))
    mask = given.get("attention_mask", given.get("mask"))
    if mask is not None and mask.shape == out.shape[:2]:
        out = out[mask.bool()]
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(dtype)
    (out * weights).sum().backward()
    grads = {n: p.grad.double() for n, p in model.named_parameters() if p.grad is not None}
    return {"output": out.detach().double()} | grads


def error(found: dict[str, Tensor], exact: dict[str, Tensor]) -> dict[str, float]:
    return {
        n: float((found[n] - x).square().mean().sqrt() / (x.square().mean().sqrt() + 1e-12)) for n, x in exact.items()
    }


def tried(subject: Subject, side: str, training: bool, dtype: torch.dtype = torch.float32) -> Outcome:
    given = subject.given(side)
    if subject.by_name:
        registered()
    theirs, ours, fine = torchs_own(subject), subject.make("headwork"), subject.make("formula")
    for model in (theirs, ours, fine):
        model.load_state_dict(theirs.state_dict())
        model.train(training)
    exact = worked(subject, fine, given, torch.float64)
    plain = error(worked(subject, theirs, given, dtype), exact)
    with report() as ran, nullcontext() if subject.by_name else use():
        mine = error(worked(subject, ours, given, dtype), exact)
    least = 16 * torch.finfo(dtype).eps
    far = [f"{n}: {mine[n]:.2g} against {plain[n]:.2g}" for n in exact if not mine[n] <= max(2 * plain[n], least)]
    if (ran.on_kernel(), ran.elsewhere()) != (subject.calls, 0):
        far.append(f"{ran.on_kernel()} of {subject.calls} calls on the kernel")
    ratios = [mine[n] / plain[n] for n in exact if mine[n] > least and plain[n]]
    return Outcome("; ".join(far), ran, max(ratios, default=0.0))


def generated(name: str, cache: str) -> tuple[list[Tensor], Report]:
    """(the tokens of the model's own attention and of ours, what ran of ours); padded on the left."""
    registered()
    given: dict[str, Any] = whisper("left") if name == "whisper" else dict(text("left"))
    given.pop("decoder_input_ids", None)
    given |= {"max_new_tokens": NEW_TOKENS, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    given |= {"decoder_start_token_id": 1} if name in ("t5", "bart", "whisper") else {}
    given |= {"cache_implementation": "static"} if cache == "static" else {}
    found = []
    for implementation in ("eager", "headwork"):
        model: Any = SUBJECTS[name].make(implementation).eval()
        model.generation_config.disable_compile = True
        with torch.no_grad(), report() as ran:
            found.append(model.generate(**given))
    return found, ran


def trained_with_dropout(name: str) -> Report:
    registered()
    make, given, _ = WITH_DROPOUT[name]
    model = make("headwork").train()
    with report() as ran:
        out = model(**given("right"))
        (out.logits if "logits" in out else out.last_hidden_state).sum().backward()
    return ran


def cases(only: str) -> Iterator[tuple[str, str, bool]]:
    for name in SUBJECTS:
        if only in ("", name):
            yield from ((name, side, training) for side in ("left", "right") for training in (False, True))


def lines(only: str) -> Iterator[tuple[str, bool]]:
    """(what was found, whether it is wrong), of everything."""
    for name, side, training in cases(only):
        mode = "training" if training else "evaluation"
        try:
            wrong, ran, ratio = tried(SUBJECTS[name], side, training)
        except ModuleNotFoundError as missing:
            yield f"{name}: not tried, {missing}", False
            continue
        calls = f"{ran.on_kernel()} calls on the kernel, {ran.elsewhere()} elsewhere"
        yield (
            f"{name}, {mode}, padded {side}: {wrong or 'as good'}, at most {ratio:.2f} of torch's; {calls}",
            bool(wrong),
        )
    for name in GENERATE:
        for cache in ("dynamic", "static") if only in ("", name) else ():
            (theirs, ours), ran = generated(name, cache)
            same = torch.equal(theirs, ours) and not ran.elsewhere()
            told = "the same tokens" if torch.equal(theirs, ours) else "OTHER tokens"
            yield (
                f"{name} generates with a {cache} cache: {told} {tuple(ours.shape)}; {ran.elsewhere()} elsewhere",
                not same,
            )
    for name, (_, _, expected) in WITH_DROPOUT.items():
        if only in ("", name):
            ran = trained_with_dropout(name)
            amiss = (ran.on_kernel(), ran.elsewhere()) != (expected, 0)
            yield f"{name}, training with dropout 0.1: {ran.on_kernel()} of {expected} calls on the kernel", amiss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    failed, told = 0, 0
    for line, wrong in lines(parser.parse_args().only):
        failed, told = failed + wrong, told + 1
        print(line, flush=True)
    print(f"{told} lines, {failed} wrong")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
