"""`MultiHead.load`: which layer is meant is asked for, and what is none, or broken, or hostile, is refused."""

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from headwork import MultiHead
from headwork.engine import Rotary
from tests.engine.refusing import refused

Array = NDArray[Any]

STATE = {"in_proj_weight": np.ones((24, 8), np.float32), "out_proj.weight": np.ones((8, 8), np.float32)}


def two_layers() -> dict[str, Array]:
    return {f"layers.{i}.self_attn.{name}": array * (i + 1) for i in range(2) for name, array in STATE.items()}


def test_a_layer_is_chosen_by_number_or_name() -> None:
    for layer in (1, "layers.1", "layers.1.", "layers.1.self_attn"):
        assert (MultiHead.load(two_layers(), layer=layer, heads=2).projections.W_O == 2).all()
    refused("has 2 attention layers, and no layer was chosen", two_layers(), heads=2)
    refused("layer=2 fits none of them", two_layers(), layer=2, heads=2)
    refused("There is layers.0.self_attn (nn.MultiheadAttention), layers.1", two_layers(), layer=2, heads=2)
    refused("layer='layers' fits 2 of them", two_layers(), layer="layers", heads=2)
    refused("layer='layer' fits none", two_layers(), layer="layer", heads=2)


def test_what_the_arrays_do_not_tell_is_asked_for(tmp_path: Path) -> None:
    refused("the arrays do not tell the number of heads", STATE)
    refused("5 heads cannot share the 8 columns of W_Q", STATE, heads=5)
    save_file(STATE, tmp_path / "a.safetensors")
    refused("Give heads=", tmp_path / "a.safetensors")
    (tmp_path / "config.json").write_text('{"num_attention_heads": 4}')
    assert MultiHead.load(tmp_path / "a.safetensors").heads == 4
    assert MultiHead.load(tmp_path / "a.safetensors", heads=2).heads == 2
    llama_like = {f"{x}_proj.weight": np.ones((8, 8), np.float32) for x in "qkvo"}
    refused("do not tell whether rotary positions are used", llama_like, heads=2)
    assert MultiHead.load(llama_like, heads=2, rotary=None).rotary is None
    assert MultiHead.load(llama_like, heads=2, rotary=Rotary.of(4)).rotary is not None


def test_a_source_that_fits_nothing_says_what_it_found_and_what_was_expected() -> None:
    odd = {f"encoder.{i}.weight": np.ones((2, 2)) for i in range(400)}
    refused("has no attention layer with names that are known", odd)
    refused("Expected are nn.MultiheadAttention: …in_proj_weight and …out_proj.weight; ", odd)
    refused("Found are 400 arrays: encoder.0.weight, encoder.1.weight", odd)
    refused("and 388 more", odd)
    refused("It holds no arrays at all", {})
    refused("holds no layer that can be read", 3)
    refused("Found are 1 arrays", {"x" * 100_000: np.ones(2)})


def test_what_would_change_the_result_is_refused(tmp_path: Path) -> None:
    """A layer with more in it than projections, or a configuration that scales otherwise, is not silently another."""
    refused("also holds q_norm.weight", STATE | {"q_norm.weight": np.ones(4)}, heads=2)
    refused("also holds bias_k, bias_v", torch.nn.MultiheadAttention(8, 2, add_bias_kv=True))
    refused("add_zero_attn", torch.nn.MultiheadAttention(8, 2, add_zero_attn=True))
    refused("one context, of one width", torch.nn.MultiheadAttention(8, 2, kdim=3, vdim=5))
    refused("lacks k_proj.weight", {f"{x}_proj.weight": np.ones((8, 8)) for x in "qvo"}, heads=2)
    refused("8 is no multiple of 3", STATE | {"in_proj_weight": np.ones((8, 8), np.float32)}, heads=2)
    refused("where a matrix belongs", STATE | {"in_proj_weight": np.ones(24, np.float32)}, heads=2)
    refused("holds int8", {name: array.astype(np.int8) for name, array in STATE.items()}, heads=2)
    save_file(STATE, tmp_path / "a.safetensors")
    config = tmp_path / "config.json"
    config.write_text('{"n_head": 2, "scale_attn_by_inverse_layer_idx": true}')
    refused("the configuration sets scale_attn_by_inverse_layer_idx", tmp_path / "a.safetensors")
    config.write_text('{"n_head": 2, "scale_attn_weights": false}')
    assert MultiHead.load(tmp_path / "a.safetensors").scale == 1.0


@pytest.mark.parametrize(
    ("rope", "message"),
    [
        ({"rope_type": "yarn", "rope_theta": 1e4}, "of type 'yarn'"),
        ({"rope_type": "linear", "rope_theta": 1e4}, "cannot be read, KeyError('factor')"),
        ({"rope_type": "default", "rope_theta": "far"}, "cannot be read"),
        ({"rope_type": "default", "rope_theta": -1}, "Give a positive number"),
        ({"rope_type": ["default"], "rope_theta": 1e4}, "cannot be read"),
        ({"rope_type": "linear", "rope_theta": 1e4, "factor": 0}, "finite"),
        ([1], "cannot be read"),
    ],
)
def test_rotary_positions_of_another_kind_are_refused(rope: Any, message: str, tmp_path: Path) -> None:
    save_file({f"{x}_proj.weight": np.ones((8, 8), np.float32) for x in "qkvo"}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": 2, "rope_parameters": rope}))
    refused(message, tmp_path)


class Attack:
    """A pickle that writes a file when it is loaded without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_hostile_files_are_refused_and_run_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "it-ran"
    torch.save({"in_proj_weight": Attack(mark)}, tmp_path / "zip.pt")
    (tmp_path / "raw.bin").write_bytes(pickle.dumps(Attack(mark)))
    for name in ("zip.pt", "raw.bin"):
        refused("is not a torch file of arrays alone", tmp_path / name)
    assert not mark.exists()
    pickle.loads((tmp_path / "raw.bin").read_bytes())
    assert mark.exists(), "the attack works where it is let in, so the test above can fail"


def broken_files(good: bytes) -> list[bytes]:
    """Empty; cut in the header and in the arrays; another format; a header too long, not JSON, or past the end."""
    header = struct.unpack("<Q", good[:8])[0]
    text, arrays = good[8 : 8 + header], good[8 + header :]
    return [
        b"",
        good[:20],
        good[:-5],
        b"PK\x03\x04" + good,
        struct.pack("<Q", 1 << 62) + text + arrays,
        good[:8] + b"x" * header + arrays,
        good[:8] + text.replace(b"[0,", b"[9,") + arrays,
    ]


def test_broken_files_are_refused(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "good.safetensors")
    for content in broken_files((tmp_path / "good.safetensors").read_bytes()):
        (tmp_path / "bad.safetensors").write_bytes(content)
        refused("is not a whole safetensors file", tmp_path / "bad.safetensors", heads=2)
        (tmp_path / "bad.pt").write_bytes(content)
        refused("is not a torch file of arrays alone", tmp_path / "bad.pt", heads=2)
    torch.save([1, 2], tmp_path / "list.pt")
    refused("holds a list, not a state dict", tmp_path / "list.pt")
    torch.save({"state_dict": {n: torch.from_numpy(a) for n, a in STATE.items()}, "epoch": 3}, tmp_path / "training.pt")
    assert MultiHead.load(tmp_path / "training.pt", heads=2).heads == 2


def test_paths_and_indices_that_lead_nowhere(tmp_path: Path) -> None:
    refused("there is no file", tmp_path / "none.safetensors")
    refused("is a directory without any of model.safetensors", tmp_path)
    (tmp_path / "a.onnx").write_bytes(b"")
    refused("ends in '.onnx'", tmp_path / "a.onnx")
    index = tmp_path / "model.safetensors.index.json"
    for content, message in [
        ("{", "is not JSON"),
        ("[]", "holds a list where a table belongs"),
        ("{}", "has no 'weight_map'"),
        ('{"weight_map": {"a": "../../secret.safetensors"}}', "points outside its directory"),
        ('{"weight_map": {"in_proj_weight": "b.safetensors", "out_proj.weight": "b.safetensors"}}', "is not a whole"),
    ]:
        index.write_text(content)
        refused(message, tmp_path, heads=2)
    save_file({"other": np.ones(2)}, tmp_path / "b.safetensors")
    refused("says that b.safetensors holds in_proj_weight, which it does not", tmp_path, heads=2)
    (tmp_path / "config.json").write_text("[" * 100_000)
    refused("is not JSON", tmp_path, heads=2)
