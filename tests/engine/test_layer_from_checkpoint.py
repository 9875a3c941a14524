"""`MultiHead.load`: other people's layers by their names, against the modules that they come from."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from safetensors.numpy import save_file

from headwork import MultiHead
from headwork.engine import HeadNorm
from headwork.errors import HeadworkError
from tests.engine.refusing import refused

Array = NDArray[Any]

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 8}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3["original_max_position_embeddings"] = 64
LINEAR = {"rope_type": "linear", "rope_theta": 100.0, "factor": 4.0}


def llama(**options: Any) -> Any:
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, vocab_size=9, pad_token_id=0, **options)
    return transformers.LlamaModel(config)


def gpt2() -> Any:
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 4, "vocab_size": 9, "bos_token_id": 1, "eos_token_id": 2}
    return transformers.GPT2Model(transformers.GPT2Config(**sizes))


def vit() -> Any:
    return transformers.ViTModel(transformers.ViTConfig(**SMALL, image_size=8, patch_size=4), add_pooling_layer=False)


def bert() -> Any:
    return transformers.BertModel(transformers.BertConfig(**SMALL, vocab_size=9), add_pooling_layer=False)


LAYERS = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 2}
GROUPED = {**SMALL, "num_key_value_heads": 2, "vocab_size": 9, "pad_token_id": 0, "head_dim": 6}
CAUSAL: dict[str, Any] = {"causal": True}


def distilbert() -> Any:
    return transformers.DistilBertModel(transformers.DistilBertConfig(dim=16, n_layers=2, n_heads=4, vocab_size=9))


def modernbert(**options: Any) -> Any:
    """Its second layer reads a window, with angles of its own."""
    bases = {"full_attention": {"rope_theta": 100.0}, "sliding_attention": {"rope_theta": 5.0}}
    named = {kind: {"rope_type": "default", **told} for kind, told in bases.items()}
    ids = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
    told = {"local_attention": 4, "rope_parameters": named, "vocab_size": 9, "attention_bias": True, **ids}
    return transformers.ModernBertModel(transformers.ModernBertConfig(**SMALL, **told, **options))


def qwen3() -> Any:
    return transformers.Qwen3Model(transformers.Qwen3Config(**GROUPED, rope_parameters={**LINEAR}))


def gemma2() -> Any:
    told = {"query_pre_attn_scalar": 9, "attn_logit_softcapping": 0.7, "sliding_window": 4}
    return transformers.Gemma2Model(transformers.Gemma2Config(**GROUPED, **told, attn_implementation="eager"))


def gemma3() -> Any:
    """Its first layer reads a window, its second everything."""
    kinds = ["sliding_attention", "full_attention"]
    ropes = {kind: {"rope_type": "default", "rope_theta": base} for kind, base in zip(kinds, (7.0, 300.0), strict=True)}
    told = {"query_pre_attn_scalar": 9, "sliding_window": 4, "layer_types": kinds, "rope_parameters": ropes}
    return transformers.Gemma3TextModel(transformers.Gemma3TextConfig(**GROUPED, **told))


def whisper() -> Any:
    sizes = {"d_model": 16, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "num_mel_bins": 4, "max_source_positions": 10}
    ids = {"pad_token_id": 0, "decoder_start_token_id": 1, "eos_token_id": 2, "bos_token_id": 1, "vocab_size": 9}
    return transformers.WhisperModel(transformers.WhisperConfig(**LAYERS, **sizes, **ids, encoder_layerdrop=0.0))


def clip() -> Any:
    text = {**SMALL, "vocab_size": 9, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0, "num_attention_heads": 2}
    vision = {**SMALL, "image_size": 8, "patch_size": 4}
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision))


def t5() -> Any:
    """Distances up to 6 in buckets of their own and shared ones; 11 tokens go beyond."""
    told = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 7, "vocab_size": 9}
    sizes = {"d_model": 16, "d_kv": 6, "d_ff": 8, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
    return transformers.T5Model(transformers.T5Config(**sizes, **told, dropout_rate=0.0))


# The model, the second layer's attention and its W_O within it, and how it reads.
FAMILIES: dict[str, tuple[Callable[[], Any], str, str, dict[str, Any]]] = {
    "BERT": (bert, "encoder.layer.1.attention", "output.dense", {}),
    "ViT": (vit, "layers.1.attention", "o_proj", {}),
    "GPT-2": (gpt2, "h.1.attn", "c_proj", CAUSAL),
    "Llama": (llama, "layers.1.self_attn", "o_proj", CAUSAL),
    "Llama, biases, wide heads": (
        lambda: llama(attention_bias=True, head_dim=6),
        "layers.1.self_attn",
        "o_proj",
        CAUSAL,
    ),
    "Llama 3": (lambda: llama(rope_parameters=LLAMA3), "layers.1.self_attn", "o_proj", CAUSAL),
    "Llama, linear": (lambda: llama(rope_parameters=LINEAR), "layers.1.self_attn", "o_proj", CAUSAL),
    "DistilBERT": (distilbert, "transformer.layer.1.attention", "out_lin", {}),
    "ModernBERT": (modernbert, "layers.1.attn", "Wo", {"window": (2, 2)}),
    "Qwen 3": (qwen3, "layers.1.self_attn", "o_proj", CAUSAL),
    "Gemma 2": (gemma2, "layers.1.self_attn", "o_proj", CAUSAL),
    "Gemma 2, window": (gemma2, "layers.0.self_attn", "o_proj", {**CAUSAL, "window": (3, 0)}),
    "Gemma 3": (gemma3, "layers.1.self_attn", "o_proj", CAUSAL),
    "Gemma 3, window": (gemma3, "layers.0.self_attn", "o_proj", {**CAUSAL, "window": (3, 0)}),
    "Whisper": (whisper, "encoder.layers.1.self_attn", "out_proj", {}),
    "Whisper, writing": (whisper, "decoder.layers.1.self_attn", "out_proj", CAUSAL),
    "CLIP, pictures": (clip, "vision_model.encoder.layers.1.self_attn", "out_proj", {}),
    "T5": (t5, "encoder.block.1.layer.0.SelfAttention", "o", {}),
    "T5, writing": (t5, "decoder.block.1.layer.0.SelfAttention", "o", CAUSAL),
    "CLIP, texts": (clip, "text_model.encoder.layers.1.self_attn", "out_proj", CAUSAL),
}


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    torch.manual_seed(0)
    made = {name: make().eval() for name, (make, *_) in FAMILIES.items()}
    for model in made.values():
        for name, parameter in model.named_parameters():
            if "norm" not in name.lower():  # the usual 0.02 leaves every softmax flat, and every bias 0
                torch.nn.init.normal_(parameter, std=0.3)
    return made


def seen_by(model: Any, attention: str, output: str) -> tuple[Array, Array]:
    """What goes into the layer, and what its W_O gives, while the model itself runs on 11 tokens."""
    held: dict[str, Array] = {}
    inner = model.get_submodule(attention)

    def before(_: Any, arguments: Any, named: Any) -> None:
        held["x"] = (arguments[0] if arguments else named["hidden_states"]).numpy().copy()

    def after(_: Any, arguments: Any, result: Any) -> None:
        held["out"] = result.numpy().copy()

    hooks = [
        inner.register_forward_pre_hook(before, with_kwargs=True),
        inner.get_submodule(output).register_forward_hook(after),
    ]
    with torch.no_grad():
        pictures, words = {"pixel_values": torch.randn(2, 3, 8, 8)}, {"input_ids": torch.randint(1, 9, (2, 11))}
        if isinstance(model, transformers.ViTModel):
            model(**pictures)
        elif isinstance(model, transformers.CLIPModel):
            model(**pictures, **words)
        elif isinstance(model, transformers.T5Model):
            model(**words, decoder_input_ids=words["input_ids"].flip(1))
        elif isinstance(model, transformers.WhisperModel):
            model(input_features=torch.randn(2, 4, 20), decoder_input_ids=words["input_ids"])
        else:
            model(**words)
    for hook in hooks:
        hook.remove()
    return held["x"], held["out"]


@pytest.mark.parametrize(
    "form", ["module", "layer's module", "safetensors", "directory", "shards", "torch", "old torch"]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_layer_gives_what_the_model_gives(models: dict[str, Any], family: str, form: str, tmp_path: Path) -> None:
    """From the module, and from every kind of file that transformers and torch write."""
    model = models[family]
    _, attention, output, reads = FAMILIES[family]
    if family.startswith("T5") and form == "layer's module":
        refused("no attention layer with names that are known", model.get_submodule(attention))
        return  # the biases by distance are in another layer's module
    x, expected = seen_by(model, attention, output)
    size = "1KB" if form == "shards" else "1GB"
    if form in ("safetensors", "directory", "shards"):
        model.save_pretrained(tmp_path, max_shard_size=size)
    if form == "shards":
        assert len(list(tmp_path.glob("*.safetensors"))) > 1
    if form.endswith("torch"):
        model.config.save_pretrained(tmp_path)
        torch.save(model.state_dict(), tmp_path / "model.pt", _use_new_zipfile_serialization=form == "torch")
    source = {
        "module": model,
        "layer's module": model.get_submodule(attention),
        "safetensors": tmp_path / "model.safetensors",
        "directory": str(tmp_path),
        "shards": tmp_path / "model.safetensors.index.json",
        "torch": tmp_path / "model.pt",
        "old torch": tmp_path / "model.pt",
    }[form]
    several = family.startswith(("CLIP", "Whisper", "T5"))  # of the same number
    number = attention.removesuffix(".SelfAttention") if several else int(attention.split(".")[-2])
    layer = MultiHead.load(source, layer=None if form == "layer's module" else number)
    assert np.abs(layer(x, **reads) - expected).max() < 3e-6 * max(1, np.abs(expected).max())
    assert layer.heads == (2 if family in ("CLIP, texts", "Whisper, writing") else 4)
    assert layer.kv_heads == (2 if family.startswith(("Llama", "Qwen", "Gemma")) else layer.heads)


def test_what_older_configurations_say_of_windows(models: dict[str, Any], tmp_path: Path) -> None:
    """One base for layers that read a window and one for the others, and which are which by counting."""
    for family, told in {
        "Gemma 3": {"rope_theta": 300.0, "rope_local_base_freq": 7.0, "sliding_window_pattern": 2},
        "Gemma 3, window": {"rope_theta": 300.0, "rope_local_base_freq": 7.0, "sliding_window_pattern": 2},
        "ModernBERT": {"global_rope_theta": 100.0, "local_rope_theta": 5.0, "global_attn_every_n_layers": 3},
    }.items():
        model, (_, attention, output, reads) = models[family], FAMILIES[family]
        x, expected = seen_by(model, attention, output)
        model.save_pretrained(tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        config = {k: v for k, v in config.items() if k not in ("rope_parameters", "layer_types")} | told
        (tmp_path / "config.json").write_text(json.dumps(config))
        layer = MultiHead.load(tmp_path, layer=int(attention.split(".")[-2]))
        assert np.abs(layer(x, **reads) - expected).max() < 1e-5 * np.abs(expected).max()


def test_norms_of_another_kind_are_refused(models: dict[str, Any]) -> None:
    """Qwen's gains are what they say, Gemma's one less: without a configuration nobody can tell."""
    state = models["Qwen 3"].state_dict()
    refused("has norms for queries and keys", state, layer=1, heads=4, rotary=None)
    layer = MultiHead.load(models["Qwen 3"], layer=1)
    with pytest.raises(HeadworkError, match=r"the gain of q_norm is \(5,\), but a head has 6 columns"):
        MultiHead(*(np.ones((6, 6)) for _ in range(4)), heads=1, q_norm=HeadNorm(np.ones(5)))
    assert layer.q_norm is not None


@pytest.mark.parametrize(
    ("family", "name"),
    [("Qwen 3", 1), ("Gemma 2", 1), ("T5", "encoder.block.1.layer.0"), ("T5", "decoder.block.0.layer.0")],
)
def test_a_layer_decodes_and_goes_on_a_page(models: dict[str, Any], family: str, name: Any) -> None:
    """With norms of its heads, a softcap, biases by distance: step by step, at once, and by hand."""
    layer = MultiHead.load(models[family], layer=name).astype(np.float64)
    x = np.random.default_rng(0).integers(-2, 3, (4, 16)).astype(np.float64)
    cache = layer.cache()
    steps = [layer(x[i : i + 1], cache=cache, causal=True) for i in range(4)]
    assert np.abs(np.concatenate(steps) - layer(x, causal=True)).max() < 1e-12
    page = np.asarray(layer.work(x, causal=True)["output"])
    assert np.abs(page - layer(x, causal=True)).max() < 1e-12


@pytest.mark.parametrize("bias", [False, True])
def test_torchs_own_layer(bias: bool) -> None:
    """Fused, on its own and within a larger module."""
    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(12, 3, 8, batch_first=True, bias=bias).eval()
    x = torch.randn(2, 5, 12)
    with torch.no_grad():
        expected = block.self_attn(x, x, x)[0].numpy()
    state = {name: array.numpy() for name, array in block.state_dict().items()}
    for layer in (
        MultiHead.load(block),
        MultiHead.load(block.self_attn),
        MultiHead.load(state, heads=3),
        MultiHead.load(torch.nn.TransformerEncoder(block, 2, enable_nested_tensor=False), layer="layers.1"),
    ):
        assert np.abs(layer(x.numpy()) - expected).max() < 1e-6


def test_torchs_own_layer_with_a_context_of_another_width() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(8, 2, kdim=5, vdim=5, batch_first=True).eval()
    torch.nn.init.normal_(theirs.in_proj_bias)
    x, c = torch.randn(2, 3, 8), torch.randn(2, 4, 5)
    with torch.no_grad():
        expected = theirs(x, c, c)[0].numpy()
    assert np.abs(MultiHead.load(theirs)(x.numpy(), c.numpy()) - expected).max() < 1e-6


def timm_attention(x: Array, state: dict[str, Array], heads: int) -> Array:
    """timm's block as its definition has it: qkv, cut into (3, heads, d), softmax, proj."""
    wide = torch.nn.functional.linear(*(torch.from_numpy(a) for a in (x, state["qkv.weight"], state["qkv.bias"])))
    q, k, v = wide.reshape(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
    joined = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
    out = torch.nn.functional.linear(joined, *(torch.from_numpy(state[f"proj.{n}"]) for n in ("weight", "bias")))
    return np.asarray(out.numpy())


def test_timms_fused_names() -> None:
    rng = np.random.default_rng(0)
    shapes = {"qkv.weight": (36, 12), "qkv.bias": (36,), "proj.weight": (12, 12), "proj.bias": (12,)}
    state = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    x = rng.standard_normal((2, 5, 12)).astype(np.float32)
    layer = MultiHead.load({f"blocks.7.attn.{name}": array for name, array in state.items()}, layer=7, heads=3)
    assert np.abs(layer(x) - timm_attention(x, state, 3)).max() < 1e-4  # outputs of some tens
    assert layer.projections.wide is not None
    assert np.shares_memory(layer.projections.wide, state["qkv.weight"])


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
def test_every_float_type(dtype: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shapes = {"in_proj_weight": (24, 8), "out_proj.weight": (8, 8)}
    state = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    save_file(state, tmp_path / "a.safetensors")
    bits = {name: torch.from_numpy(array.astype(np.float64)) for name, array in state.items()}
    named = {ml_dtypes.bfloat16: torch.bfloat16, np.float16: torch.float16, np.float32: torch.float32}
    torch.save({name: t.to(named.get(dtype, torch.float64)) for name, t in bits.items()}, tmp_path / "a.pt")
    for path in (tmp_path / "a.safetensors", tmp_path / "a.pt"):
        layer = MultiHead.load(path, heads=2)
        assert layer.dtype == (np.float64 if dtype == np.float64 else np.float32)
        assert (layer.projections.W_O == state["out_proj.weight"].astype(layer.dtype).T).all()


def test_only_the_layers_own_arrays_are_read(tmp_path: Path) -> None:
    """A file of 40 MB, of which the layer is 1 kB."""
    state = {"in_proj_weight": np.ones((24, 8), np.float32), "out_proj.weight": np.ones((8, 8), np.float32)}
    big = np.zeros((10_000, 1000), np.float32)
    save_file({f"layers.0.attn.{n}": a for n, a in state.items()} | {"embedding": big}, tmp_path / "a.safetensors")
    tracemalloc.start()
    MultiHead.load(tmp_path / "a.safetensors", heads=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
