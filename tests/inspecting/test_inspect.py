"""Inspecting code: known mistakes by name, PyTorch's own functions in agreement, nothing suffered."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import headwork
from headwork.errors import HeadworkError
from headwork.inspecting import sandbox
from headwork.inspecting.inspect import Inspection, inspect
from headwork.testing import assert_attention
from tests.inspecting import implementations as made

HERE = Path(__file__).parent
FUNCTIONS = {
    "forgot_scale": "forgot-scale",
    "one_over_d": "scaled-by-d_k",
    "wrong_axis": "softmax-columns",
    "whole_softmax": "softmax-everything",
    "no_exponential": "no-exponential",
    "mask_after": "mask-after-softmax",
    "mask_rows_for_columns": "mask-flipped",
    "flag_upside_down": "mask-flipped",
    "keys_not_transposed": "k-not-transposed",
    "swapped": "q-k-swapped",
    "layer_reordered": "heads-reordered",
    "layer_strided": "heads-strided",
    "layer_without_output": "forgot-output-projection",
}
MODULES = {
    "RootOfWrongDimension": "scaled-by-sqrt-d_model",
    "MergedUntransposed": "merged-untransposed",
    "OutputUnused": "forgot-output-projection",
    "SoftmaxOverQueries": "softmax-columns",
    "MaskedTooLate": "mask-after-softmax",
    "CausalUpsideDown": "mask-flipped",
    "SplitBeforeProjection": "split-before-projection",
}


def corner(found: Inspection, name: str) -> bool:
    return next(c.holds for c in found.corners if c.name == name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mistake_in_a_function_is_named(name: str) -> None:
    found = inspect(getattr(made, name))
    assert (found.verdict, found.tags) == ("mistake", (FUNCTIONS[name],))
    assert "The code returned" in found.example
    assert "consistent with" in str(found)


@pytest.mark.parametrize("name", MODULES)
def test_a_mistake_in_a_module_is_named(name: str) -> None:
    pytest.importorskip("torch")
    found = inspect(f"{HERE / 'torch_modules.py'}:{name}")
    assert (found.verdict, found.tags) == ("mistake", (MODULES[name],))
    assert "The code returned" in found.example or name == "SplitBeforeProjection"


@pytest.mark.parametrize(
    "name", ["right", "right_with_a_flag", "layer", "overflows", "four_dimensions_only", "square_only"]
)
def test_what_is_right_agrees(name: str) -> None:
    assert inspect(getattr(made, name)).agrees


@pytest.mark.parametrize(
    ("target", "tag", "why"),
    [
        (made.mask_polarity, "mask-inverted", "it agrees if 'mask' is True where a key is hidden"),
        (f"{HERE / 'torch_modules.py'}:OutputMissing", "forgot-output-projection", "it agrees up to the joined heads"),
    ],
)
def test_what_may_be_meant_is_told_but_not_held_against_it(target: Any, tag: str, why: str) -> None:
    found = inspect(target)
    assert (found.verdict, found.tags) == ("uncallable", (tag,))
    assert found.why.startswith(why)
    assert "could not be inspected" in str(found)


def test_conventions_are_found() -> None:
    assert inspect(made.right).convention == "(q, k, v), numpy, (tokens, d)"
    assert inspect(made.four_dimensions_only).convention == "(q, k, v), numpy, (batch, heads, tokens, d)"
    assert inspect(made.layer).convention == "(x, W_Q, W_K, W_V …), numpy, (tokens, d)"
    assert inspect(made.right).mask == "True where a key may be read"


def test_pytorchs_own_functions_agree() -> None:
    torch = pytest.importorskip("torch")
    found = inspect(torch.nn.functional.scaled_dot_product_attention)
    assert found.agrees
    assert found.mask == "True where a key may be read"
    assert all(corner(found, name) for name in ("large scores", "more keys than tokens", "d_v is not d_k", "float16"))
    layer = inspect(torch.nn.MultiheadAttention)
    assert layer.agrees
    assert layer.mask == "True where a key is hidden"
    assert inspect(torch.nn.MultiheadAttention(12, 3, batch_first=True)).agrees


@pytest.mark.parametrize("name", ["Right", "Causal", "EmbeddingTimesHeads", "factory", "single_precision"])
def test_right_modules_agree(name: str) -> None:
    pytest.importorskip("torch")
    found = inspect(f"{HERE / 'torch_modules.py'}:{name}")
    assert found.agrees
    notes = {"Causal": "A causal mask is built in.", "EmbeddingTimesHeads": "times the heads, not shared by them"}
    assert notes.get(name, "") in " ".join(found.notes)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (made.overflows, "large scores"),
        (made.changes_its_input, "inputs left alone"),
        (made.square_only, "d_v is not d_k"),
    ],
)
def test_corners_that_do_not_hold(function: Any, name: str) -> None:
    found = inspect(function)
    assert found.agrees
    assert [c.name for c in found.corners if not c.holds] == [name]


def test_a_disagreement_without_a_name_says_where() -> None:
    found = inspect(made.something_else)
    assert (found.verdict, found.first_difference) == ("disagrees", "scaled")
    assert "in no way that the catalogue knows" in str(found)


def test_a_hanging_function_is_reported() -> None:
    start = time.monotonic()
    found = inspect(made.hangs, seconds=1)
    assert "did not come back within 1 s" in found.why
    assert time.monotonic() - start < 30


def test_what_a_function_has_started_ends_with_it() -> None:
    """Whoever is left of its processes holds the pipe open."""
    reading, writing = os.pipe()

    def work(emit: sandbox.Emit) -> None:
        os.fork()
        emit({"here": True})
        time.sleep(60)

    found = list(sandbox.in_own_process(work, seconds=1, megabytes=1024))
    os.close(writing)
    assert "did not come back" in found[-1]["ended"]
    assert select.select([reading], [], [], 30)[0]
    assert os.read(reading, 1) == b""
    os.close(reading)


@pytest.mark.parametrize(
    ("function", "why"),
    [(made.crashes, "SIGSEGV"), (made.leaves, "SystemExit"), (made.eats_memory, "Memory")],
)
def test_a_crashing_function_is_reported(function: Any, why: str) -> None:
    found = inspect(function)
    assert not found.agrees
    assert why in found.why


def test_a_function_that_ends_its_process_is_no_witness(tmp_path: Path) -> None:
    """Without a signal, and after it was seen to agree: what it was still to be asked is not taken for granted."""
    right = (
        "    w = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))\n    return w / w.sum(-1, keepdims=True) @ v\n"
    )
    for name, condition in (("at_once", "True"), ("late", "np.abs(q).max() > 50")):
        source = f"import os\nimport numpy as np\ndef f(q, k, v):\n    if {condition}: os._exit(0)\n{right}"
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
        found = inspect(f"{tmp_path / name}.py:f")
        assert "it ended the process that it ran in, while" in found.why
        with pytest.raises(AssertionError, match="it ended the process"):
            assert_attention(f"{tmp_path / name}.py:f")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nonsense", "names no function; write package.module:function"),
        ("/nowhere/file.py:f", "there is no file '/nowhere/file.py'"),
        (3, "int cannot be called"),
    ],
)
def test_targets_that_are_none(target: Any, message: str) -> None:
    with pytest.raises(HeadworkError, match=message):
        headwork.inspect(target)


def test_nan_is_no_other_answer_every_time() -> None:
    found = inspect(lambda q, k, v: 0 * v[..., : q.shape[-2], :] + float("nan") * q.sum())
    assert (found.verdict, found.why) == ("uncallable", "it returns nothing but NaN or infinity")


def test_a_module_that_cannot_be_imported_is_reported() -> None:
    found = inspect("headwork.no_such_module:f")
    assert found.verdict == "ended"
    assert "ModuleNotFoundError" in found.why


def test_assert_attention_passes_and_fails() -> None:
    assert assert_attention(made.right).agrees
    with pytest.raises(AssertionError, match="consistent with forgot-scale"):
        assert_attention(made.forgot_scale)
    with pytest.raises(AssertionError, match="it returns NaN or infinity"):
        assert_attention(made.overflows)


@pytest.mark.parametrize("corners", [["fp16"], "float16"])
def test_a_corner_that_is_none_is_refused(corners: Collection[str]) -> None:
    """It would hold nothing: the test of somebody who has mistyped it could not fail."""
    with pytest.raises(HeadworkError, match=r"no corner '(fp16|f)'; choose among: large scores, .*float16$"):
        assert_attention(made.right, corners=corners)


def test_a_parent_that_used_its_threads_does_not_hang_the_child() -> None:
    """A fork leaves the parent's pool of threads behind; torch in the child must not wait for it."""
    torch = pytest.importorskip("torch")
    large = torch.ones(8, 512, 512)
    assert (large @ large).sum() > 0
    assert inspect(torch.nn.functional.scaled_dot_product_attention, seconds=20).agrees
