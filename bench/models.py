"""Real architectures with random weights, ours against torch's own: outputs and all gradients, both against float64.

    python bench/models.py                  # all that can be imported; --only llama for one
    pip install torch==2.13.0 timm diffusers x-transformers    # in a venv of its own, for all of them

transformers' models run with attn_implementation="headwork", the others under `headwork.torch.use()`; in evaluation
and in training mode, padded on the left and on the right. A model is wrong where its error is more than twice torch's
own and more than rounding. Every attention call is counted: how many ran on the kernel, how many elsewhere and why.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwork.torch import report, use

TOKENS = 12
Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Subject:
    """A model to try: how to make it, what it is given, and which of its outputs counts."""

    make: Callable[[str], nn.Module]  # told an attn_implementation
    given: Callable[[str], Inputs]  # told the side of the padding
    read: Callable[[Any], Tensor]
    by_name: bool = True  # through attn_implementation, not use()


def sizes(**more: Any) -> dict[str, Any]:
    usual = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
    return usual | {"intermediate_size": 96, "max_position_embeddings": 64} | more


def of_transformers(model: str, config: str, **given: Any) -> Callable[[str], nn.Module]:
    def make(implementation: str) -> nn.Module:
        library = importlib.import_module("transformers")
        settings = getattr(library, config)(**given, attn_implementation=implementation)
        torch.manual_seed(0)
        made: nn.Module = getattr(library, model)(settings)
        return made

    return make


def text(side: str) -> Inputs:
    ids = torch.randint(5, 99, (3, TOKENS), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    for row, padding in ((0, 3), (1, 5)):
        mask[row, :padding] = 0
    return {"input_ids": ids, "attention_mask": mask if side == "left" else mask.flip(-1)}


def both_texts(side: str) -> Inputs:
    return text(side) | {"decoder_input_ids": text(side)["input_ids"][:, :7]}


def pixels(side: str) -> Inputs:
    return {"pixel_values": drawn(2, 3, 16, 16)}


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def logits(out: Any) -> Tensor:
    found: Tensor = out.logits if "logits" in out else out.last_hidden_state
    return found


def decoder(name: str, kv_heads: int = 2, **more: Any) -> Subject:
    given = sizes(num_key_value_heads=kv_heads, **more)
    return Subject(of_transformers(f"{name}ForCausalLM", f"{name}Config", **given), text, logits)


def whisper(side: str) -> Inputs:
    return {"input_features": drawn(2, 8, 32), "decoder_input_ids": text(side)["input_ids"][:2]}


def sliding(**more: Any) -> dict[str, Any]:
    return {"sliding_window": 5, "head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]} | more


EXPERTS: dict[str, Any] = {
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "experts_implementation": "eager",
}  # float64 has no other
DEEP: dict[str, Any] = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
}
DEEP |= {"n_routed_experts": 2, "num_experts_per_tok": 1, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 2}
SPEECH: dict[str, Any] = {
    "d_model": 64,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "num_mel_bins": 8,
}
SPEECH |= {
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "vocab_size": 99,
    "pad_token_id": 0,
}
SPEECH |= {
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "max_source_positions": 16,
    "dropout": 0.0,
}
T5: dict[str, Any] = {
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 99,
    "dropout_rate": 0.0,
}
BART: dict[str, Any] = {name: SPEECH[name] for name in SPEECH if name not in ("num_mel_bins", "max_source_positions")}
IMAGES: dict[str, Any] = {
    "image_size": 16,
    "patch_size": 4,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
IMAGES |= {"intermediate_size": 96}
NO_DROPOUT: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT2: dict[str, Any] = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64}
GPT2 |= {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
DISTIL: dict[str, Any] = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 96,
    "vocab_size": 99,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
MODERN: dict[str, Any] = sizes(
    local_attention=6,
    global_attn_every_n_layers=2,
    pad_token_id=0,
    cls_token_id=1,
    sep_token_id=2,
    bos_token_id=1,
    eos_token_id=2,
)
BLOOM: dict[str, Any] = {
    "hidden_size": 64,
    "n_layer": 2,
    "n_head": 4,
    "vocab_size": 99,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
}
GEMMA: dict[str, Any] = sliding(query_pre_attn_scalar=16)

SUBJECTS: dict[str, Subject] = {
    "llama": decoder("Llama"),
    "mistral": decoder("Mistral", sliding_window=5, head_dim=16),
    "qwen3": decoder("Qwen3", head_dim=16),
    "gemma2": decoder("Gemma2", **GEMMA, attn_logit_softcapping=5.0),
    "gemma3": Subject(
        of_transformers("Gemma3ForCausalLM", "Gemma3TextConfig", **sizes(num_key_value_heads=2, **GEMMA)), text, logits
    ),
    "gpt-oss": decoder("GptOss", **sliding(), **EXPERTS),
    "deepseek-v3": decoder("DeepseekV3", 4, moe_intermediate_size=32, **DEEP),
    "bert": Subject(of_transformers("BertModel", "BertConfig", **sizes(), **NO_DROPOUT), text, logits),
    "distilbert": Subject(of_transformers("DistilBertModel", "DistilBertConfig", **DISTIL), text, logits),
    "modernbert": Subject(of_transformers("ModernBertModel", "ModernBertConfig", **MODERN), text, logits),
    "gpt2": Subject(of_transformers("GPT2LMHeadModel", "GPT2Config", **GPT2), text, logits),
    "bloom": Subject(of_transformers("BloomForCausalLM", "BloomConfig", **BLOOM), text, logits),
    "whisper": Subject(of_transformers("WhisperForConditionalGeneration", "WhisperConfig", **SPEECH), whisper, logits),
    "t5": Subject(of_transformers("T5ForConditionalGeneration", "T5Config", **T5), both_texts, logits),
    "bart": Subject(of_transformers("BartForConditionalGeneration", "BartConfig", **BART), both_texts, logits),
    "vit": Subject(of_transformers("ViTModel", "ViTConfig", **IMAGES, **NO_DROPOUT), pixels, logits),
    "clip": Subject(of_transformers("CLIPVisionModel", "CLIPVisionConfig", **IMAGES), pixels, logits),
}


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


def of_timm(name: str, **given: Any) -> Callable[[str], nn.Module]:
    def make(implementation: str) -> nn.Module:
        torch.manual_seed(0)
        made: nn.Module = importlib.import_module("timm").create_model(name, num_classes=5, **given)
        return made

    return make


def images(size: int) -> Callable[[str], Inputs]:
    return lambda side: {"x": drawn(2, 3, size, size)}


def of_diffusers(model: str, **given: Any) -> Callable[[str], nn.Module]:
    def make(implementation: str) -> nn.Module:
        torch.manual_seed(0)
        made: nn.Module = getattr(importlib.import_module("diffusers"), model)(**given)
        return made

    return make


UNET: dict[str, Any] = {
    "sample_size": 8,
    "block_out_channels": (32, 32),
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
}
UNET |= {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}
UNET |= {"norm_num_groups": 8, "layers_per_block": 1}
SD3: dict[str, Any] = {
    "sample_size": 8,
    "num_layers": 2,
    "attention_head_dim": 8,
    "num_attention_heads": 4,
    "joint_attention_dim": 32,
}
SD3 |= {"caption_projection_dim": 32, "pooled_projection_dim": 32, "in_channels": 4, "out_channels": 4}


def unet_inputs(side: str) -> Inputs:
    return {"sample": drawn(2, 4, 8, 8), "timestep": torch.tensor(3), "encoder_hidden_states": drawn(2, 7, 32)}


def sd3_inputs(side: str) -> Inputs:
    given = {"hidden_states": drawn(2, 4, 8, 8), "timestep": torch.tensor([3, 3])}
    return given | {"encoder_hidden_states": drawn(2, 7, 32), "pooled_projections": drawn(2, 32)}


def x_transformer(implementation: str) -> nn.Module:
    library = importlib.import_module("x_transformers")
    torch.manual_seed(0)
    inner = library.Decoder(dim=64, depth=2, heads=4, attn_dim_head=16, attn_flash=True, rotary_pos_emb=True)
    made: nn.Module = library.TransformerWrapper(num_tokens=99, max_seq_len=64, attn_layers=inner)
    return made


def torch_transformer(implementation: str) -> nn.Module:
    torch.manual_seed(0)
    return nn.Transformer(64, 4, 2, 2, 96, dropout=0.0, batch_first=True)


SUBJECTS |= {
    "timm vit": Subject(of_timm("vit_tiny_patch16_224", img_size=64, depth=2), images(64), lambda x: x, False),
    "timm swin": Subject(of_timm("swin_tiny_patch4_window7_224", depths=(1, 1, 1, 1)), images(224), lambda x: x, False),
    "timm eva02": Subject(of_timm("eva02_tiny_patch14_224", depth=2), images(224), lambda x: x, False),
    "diffusers unet": Subject(of_diffusers("UNet2DConditionModel", **UNET), unet_inputs, lambda x: x.sample, False),
    "diffusers sd3": Subject(of_diffusers("SD3Transformer2DModel", **SD3), sd3_inputs, lambda x: x.sample, False),
    "x-transformers": Subject(x_transformer, lambda side: {"x": text(side)["input_ids"]}, lambda x: x, False),
    "nn.Transformer": Subject(
        torch_transformer, lambda side: {"src": drawn(2, 9, 64), "tgt": drawn(2, 5, 64)}, lambda x: x, False
    ),
}


def worked(subject: Subject, model: nn.Module, given: Inputs, dtype: torch.dtype) -> dict[str, Tensor]:
    """The output where tokens are real, and the gradient of every parameter."""
    model = copy.deepcopy(model).to(dtype)
    inputs = {n: t.to(dtype) if t.is_floating_point() else t for n, t in given.items()}
    out = subject.read(model(**inputs))
    mask = given.get("attention_mask")
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


def tried(subject: Subject, side: str, training: bool, dtype: torch.dtype = torch.float32) -> tuple[str, Any]:
    """(what is wrong, or nothing; the report of what ran)."""
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
    return "; ".join(far), ran


def cases(only: str) -> Iterator[tuple[str, str, bool]]:
    for name in SUBJECTS:
        if only in ("", name):
            yield from ((name, side, training) for side in ("left", "right") for training in (False, True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    failed = 0
    for name, side, training in cases(parser.parse_args().only):
        try:
            wrong, ran = tried(SUBJECTS[name], side, training)
        except ModuleNotFoundError as missing:
            print(f"{name}: not tried, {missing}")
            continue
        failed += bool(wrong)
        mode = "training" if training else "evaluation"
        calls = f"{ran.on_kernel()} calls on the kernel, {ran.elsewhere()} elsewhere"
        print(f"{name}, {mode}, padded {side}: {wrong or 'as good'}; {calls}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
