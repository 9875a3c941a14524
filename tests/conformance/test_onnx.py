"""ONNX's own cases for its `Attention` operator: all 93 of them."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper
from onnx.backend.test.runner import Runner

from headwork.engine.onnx import onnx_attention
from headwork.errors import HeadworkError

CASES = 93


@cache
def cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collecting runs the examples of every other operator too
        import onnx.backend.test.case.node as nodes

        found = nodes.collect_testcases("Attention")
    # The others have the operator expanded into smaller ones: they test those.
    return {case.name: case for case in found if case.model and case.model.graph.node[0].op_type == "Attention"}


def names() -> list[str]:
    return sorted(cases())


def run(node: NodeProto, inputs: list[Any]) -> list[Any]:
    given = iter(inputs)
    arrays: list[Any] = [next(given) if name else None for name in node.input]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if len(node.output) > 3 and node.output[3]:
        attributes.setdefault("qk_matmul_output_mode", 0)
    outputs = onnx_attention(*arrays, **attributes)
    return [out for name, out in zip(node.output, outputs, strict=False) if name]


def test_there_are_as_many_as_onnx_has() -> None:
    assert len(cases()) == CASES


@pytest.mark.parametrize("name", names())
def test_case(name: str) -> None:
    case = cases()[name]
    node = case.model.graph.node[0]
    for inputs, expected in case.data_sets:
        # Compared as ONNX compares: shapes, types, and its own tolerance (two last places for bfloat16).
        Runner.assert_similar_outputs(expected, run(node, inputs), rtol=case.rtol, atol=case.atol)


def test_what_onnx_does_not_allow_is_refused() -> None:
    x = np.ones((1, 1, 2, 4), np.float32)
    with pytest.raises(HeadworkError, match="come together"):
        onnx_attention(x, x, x, past_key=x)
    with pytest.raises(HeadworkError, match="two kinds of cache"):
        onnx_attention(x, x, x, past_key=x, past_value=x, nonpad_kv_seqlen=np.array([2]))
    with pytest.raises(HeadworkError, match="divide the last axis"):
        onnx_attention(x[0], x[0], x[0], q_num_heads=3, kv_num_heads=3)


def test_double_softmax_precision_is_double() -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 40, 8)).astype(np.float32)
    exact = onnx_attention(*(a.astype(np.float64) for a in (q, k, v))).Y.astype(np.float32)
    assert (exact == onnx_attention(q, k, v, softmax_precision=11).Y).all()
