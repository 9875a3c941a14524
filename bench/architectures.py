"""Small architectures with random weights, as their libraries make them: what `models.py` tries."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from without_torchvision import stand_in

TOKENS = 12
Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Subject:
    """A model to try: how to make it, what it is given, and which of its outputs counts."""

    make: Callable[[str], nn.Module]  # told an attn_implementation
    given: Callable[[str], Inputs]  # told the side of the padding
    read: Callable[[Any], Tensor]
    calls: int = 2  # of attention, in one run
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


def real(rows: int, keys: int) -> Tensor:
    """Padding on the right: of every row but the last."""
    mask = torch.ones(rows, keys, dtype=torch.int64)
    mask[:-1, -2:] = 0
    return mask


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
    "bloom": Subject(of_transformers("BloomForCausalLM", "BloomConfig", **BLOOM), text, logits, 0),
    "whisper": Subject(
        of_transformers("WhisperForConditionalGeneration", "WhisperConfig", **SPEECH), whisper, logits, 5
    ),
    "t5": Subject(of_transformers("T5ForConditionalGeneration", "T5Config", **T5), both_texts, logits, 6),
    "bart": Subject(of_transformers("BartForConditionalGeneration", "BartConfig", **BART), both_texts, logits, 5),
    "vit": Subject(of_transformers("ViTModel", "ViTConfig", **IMAGES, **NO_DROPOUT), pixels, logits),
    "clip vision": Subject(of_transformers("CLIPVisionModel", "CLIPVisionConfig", **IMAGES), pixels, logits),
    "clip text": Subject(of_transformers("CLIPTextModel", "CLIPTextConfig", **sizes(eos_token_id=2)), text, logits),
}


def of_timm(name: str, **given: Any) -> Callable[[str], nn.Module]:
    def make(implementation: str) -> nn.Module:
        with stand_in():
            library = importlib.import_module("timm")
        library.layers.set_fused_attn(True, experimental=True)  # without it Swin writes its matrices out
        torch.manual_seed(0)
        made: nn.Module = library.create_model(name, num_classes=5, **given)
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


SWIN: dict[str, Any] = {"depths": (1, 1, 1, 1), "drop_path_rate": 0.0}  # what is left out is drawn anew every time
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
    given = {"sample": drawn(2, 4, 8, 8), "timestep": torch.tensor(3), "encoder_hidden_states": drawn(2, 7, 32)}
    return given | {"encoder_attention_mask": real(2, 7).flip(-1) if side == "left" else real(2, 7)}


def sd3_inputs(side: str) -> Inputs:
    given = {"hidden_states": drawn(2, 4, 8, 8), "timestep": torch.tensor([3, 3])}
    return given | {"encoder_hidden_states": drawn(2, 7, 32), "pooled_projections": drawn(2, 32)}


def masked_text(side: str) -> Inputs:
    given = text(side)
    return {"x": given["input_ids"], "mask": given["attention_mask"].bool()}


def two_sequences(side: str) -> Inputs:
    hidden = real(2, 9) == 0
    hidden = hidden.flip(-1) if side == "left" else hidden
    padding = {"src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
    return {"src": drawn(2, 9, 64), "tgt": drawn(2, 5, 64)} | padding


def itself(out: Tensor) -> Tensor:
    return out


def sample(out: Any) -> Tensor:
    found: Tensor = out.sample
    return found


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
    "timm vit": Subject(of_timm("vit_tiny_patch16_224", img_size=64, depth=2), images(64), itself, 2, False),
    "timm swin": Subject(of_timm("swin_tiny_patch4_window7_224", **SWIN), images(224), itself, 4, False),
    "timm eva02": Subject(of_timm("eva02_tiny_patch14_224", depth=2), images(224), itself, 2, False),
    "diffusers unet": Subject(of_diffusers("UNet2DConditionModel", **UNET), unet_inputs, sample, 8, False),
    "diffusers sd3": Subject(of_diffusers("SD3Transformer2DModel", **SD3), sd3_inputs, sample, 2, False),
    "x-transformers": Subject(x_transformer, masked_text, itself, 2, False),
    "nn.Transformer": Subject(torch_transformer, two_sequences, itself, 6, False),
}
