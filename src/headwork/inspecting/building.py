"""Somebody's class made into something that can be called: sizes given by the names of the constructor's parameters."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from headwork.errors import HeadworkError
from headwork.inspecting.projections import Parameter

HEADS = (
    *("heads", "num_heads", "n_heads", "nhead", "n_head", "h", "nheads", "number_of_heads", "num_attention_heads"),
    *("num_head", "nb_heads", "nh", "n_attn_heads", "n_attention_heads", "attention_heads"),
)
HEADS_OF_FUNCTIONS = (*HEADS, "H")  # which of a layer may be another size
KV_HEADS = ("kv_heads", "num_kv_heads", "n_kv_heads", "num_key_value_heads", "n_kv_head", "num_kv_groups")
WIDTHS = (
    *("d_model", "embed_dim", "dim", "embed_size", "hidden_size", "hidden_dim", "d", "emb", "n_embd", "d_in", "d_out"),
    *("model_dim", "embedding_dim", "emb_dim", "emb_size", "in_dim", "out_dim", "hid_dim", "num_hiddens", "n_embed"),
    *("dim_in", "dim_out", "qkv_features", "in_features", "out_features", "query_dim", "input_dim", "n_state"),
    *("query_size", "n_feat", "E_q", "E_k", "E_v", "E_total"),
)
WIDTHS_OF_A_HEAD = ("d_k", "d_v", "dk", "dv", "head_dim", "dim_head", "d_head", "head_size", "key_size", "value_size")
LENGTHS = ("context_length", "block_size", "max_len", "max_seq_len", "seq_len", "n_ctx", "max_position_embeddings")
OTHERS: Mapping[str, Any] = {
    **dict.fromkeys(("dropout", "dropout_p", "attn_dropout", "attn_drop", "proj_drop", "drop", "p_dropout"), 0.0),
    **dict.fromkeys(("attn_pdrop", "resid_pdrop", "attention_dropout", "resid_dropout", "dropout_rate"), 0.0),
    **dict.fromkeys(("attention_probs_dropout_prob", "hidden_dropout_prob"), 0.0),
    **dict.fromkeys(("batch_first", "bias", "qkv_bias", "attention_bias", "use_bias"), True),
}
CONFIGS = ("config", "cfg", "conf", "args", "hparams", "hp", "params", "c")


class Config(SimpleNamespace):
    """Every size under every name that is known; a name that is not known is an AttributeError, or a KeyError."""

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def get(self, name: str, otherwise: Any = None) -> Any:
        return getattr(self, name, otherwise)


def sizes_by_name(d_model: int, heads: int, kv_heads: int) -> dict[str, Any]:
    """What a parameter of each name is given."""
    return {
        **dict.fromkeys(HEADS, heads),
        **dict.fromkeys(KV_HEADS, kv_heads),
        **dict.fromkeys(WIDTHS, d_model),
        **dict.fromkeys(WIDTHS_OF_A_HEAD, d_model // heads),
        **dict.fromkeys(LENGTHS, 16),
        **OTHERS,
    }


def built(target: Any, d_model: int, heads: int) -> Any:
    """A function or an instance as it is; a class, or a factory of layers, called with the sizes that it asks for."""
    if not _to_be_built(target):
        return _without_parameters(target)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)
    np.random.seed(0)  # theirs, not ours: their parameters are to be the same every time
    known = sizes_by_name(d_model, heads, max(1, heads // 2))
    asked = parameters_asked(target)
    if "query_size" in asked:  # then all three are sizes of what comes in
        known |= dict.fromkeys(("key_size", "value_size"), d_model)
    given: dict[str, Any] = {}
    for name, parameter in asked.items():
        needed = parameter.default is inspect.Parameter.empty
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in CONFIGS and needed:
            given[name] = Config(**known)
        elif name in known and (needed or name in (*WIDTHS, *HEADS, *WIDTHS_OF_A_HEAD, *OTHERS)):
            given[name] = known[name]
        elif needed:
            raise HeadworkError(f"its constructor asks for '{name}', and what that is to be is not known")
    return _without_parameters(target(**given))


def _without_parameters(made: Any) -> Any:
    """A torch module that has none is as good as a function."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(made, torch.nn.Module) or any(True for _ in made.parameters()):
        return made
    return made.eval().forward


def _to_be_built(target: Any) -> bool:
    if isinstance(target, type):
        return True
    if sys.modules.get("torch") is None or is_layer(target):
        return False
    names = list(parameters_asked(target))
    return bool(names) and all(name in (*WIDTHS, *HEADS) for name in names)


def parameters_asked(target: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}


def is_layer(target: Any) -> bool:
    """Whether it holds parameters of its own: a torch module, or an object with arrays for attributes."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(target, torch.nn.Module):
        return True
    return not inspect.isroutine(target) and not isinstance(target, type) and any(parameters_of(target))


def parameters_of(layer: Any) -> Iterator[Parameter]:
    """Its parameters, by name: of a torch module, or the arrays among an object's attributes, lists and tables."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(layer, torch.nn.Module):
        linear = {
            id(module.weight)
            for module in layer.modules()
            if isinstance(module, torch.nn.Linear) or type(module).__name__ == "NonDynamicallyQuantizableLinear"
        }
        for name, parameter in layer.named_parameters():
            yield Parameter(name, parameter.detach().double().numpy(), id(parameter) in linear)
        return
    for name, value in vars(layer).items() if hasattr(layer, "__dict__") else ():
        yield from _arrays(name, value)


def _arrays(name: str, value: Any) -> Iterator[Parameter]:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield Parameter(name, np.asarray(value, np.float64))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _arrays(f"{name}.{key}", inner)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _arrays(f"{name}.{number}", inner)
    elif type(value).__module__ not in ("builtins", "numpy") and hasattr(value, "__dict__"):
        for key, inner in vars(value).items():
            if isinstance(inner, np.ndarray):
                yield from _arrays(f"{name}.{key}", inner)


def heads_of(layer: Any, otherwise: int | None) -> list[int]:
    """How many heads a layer has: as it says, as its list of heads does, as it was built; else every number that
    divides its width."""
    parts = [layer, *(layer.modules() if hasattr(layer, "modules") else ())]
    for part in parts:
        for name in HEADS:
            number = getattr(part, name, None)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                return [number]
            if name == "heads" and number is not None and hasattr(number, "__len__"):
                return [len(number)]
    if otherwise is not None:
        return [otherwise]
    width = max((p.array.shape[-1] for p in parameters_of(layer)), default=1)
    return [number for number in range(1, min(width, 64) + 1) if width % number == 0]
