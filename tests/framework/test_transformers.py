"""`attn_implementation="headwork"`: real architectures with random weights, caches, masks, weights on request."""

import copy
import pickle
import warnings
from typing import Any

import pytest
import torch
import transformers
from architectures import IMAGES, NO_DROPOUT, SUBJECTS, text
from models import generated, registered, trained_with_dropout, tried
from torch import nn

import headwork.transformers.entry as ours
import headwork.transformers.masks as masks
from headwork.errors import HeadworkError
from headwork.torch import report

# torch and transformers use what they deprecate, and tell of settings that tiny models do not have.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

NAMES = (
    "llama",
    "mistral",
    "qwen3",
    "gemma2",
    "gemma3",
    "gpt-oss",
    "bert",
    "modernbert",
    "gpt2",
    "whisper",
    "t5",
    "vit",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("side", "training"), [("left", False), ("right", True)])
def test_as_near_to_float64_as_torchs_own(name: str, side: str, training: bool) -> None:
    """Outputs and all gradients, padded; every call on the kernel."""
    wrong, ran, _ = tried(SUBJECTS[name], side, training)
    assert not wrong
    assert ran.on_kernel() > 1
    assert ran.elsewhere() == 0


def test_a_model_with_attention_of_its_own_keeps_its_masks() -> None:
    assert tried(SUBJECTS["bloom"], "left", False)[0] == ""


def made(name: str, implementation: str, **more: Any) -> nn.Module:
    registered()
    model = SUBJECTS[name].make(implementation).eval()
    for key, value in more.items():
        setattr(model.config, key, value)
    return model


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gemma3", "qwen3", "whisper", "t5"])
def test_generate_gives_the_same_tokens(name: str, cache: str) -> None:
    """Left-padded, past the window of the sliding layers."""
    (theirs, mine), ran = generated(name, cache)
    assert torch.equal(theirs, mine)
    assert ran.elsewhere() == 0
    assert ran.on_kernel() >= 18


@pytest.mark.parametrize("name", ["llama", "gemma2", "t5"])
def test_a_compiled_model_is_the_same_model(name: str) -> None:
    """With masks that the compiler reads for itself; one of them has a window."""
    torch._dynamo.reset()
    model, given = made(name, "headwork"), SUBJECTS[name].given("left")
    compiled = torch.compile(model, backend="aot_eager")
    with torch.no_grad(), report() as ran:
        found, expected = (SUBJECTS[name].read(one(**given)) for one in (compiled, model))
    seen = given["attention_mask"].bool() if name != "t5" else ...
    torch.testing.assert_close(found[seen], expected[seen])
    calls = SUBJECTS[name].calls
    assert {one.way: n for one, n in ran.calls.items()} == {"operator": calls, "kernel": calls}


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_layers_compiled_one_by_one(name: str) -> None:
    """Their masks are made outside, and come in as our rows."""
    torch._dynamo.reset()
    given, found = SUBJECTS[name].given("left"), []
    for compiled in (False, True):
        model: Any = made(name, "headwork")
        for layer in model.model.layers if compiled else ():
            layer.compile(backend="aot_eager", fullgraph=True)
        with torch.no_grad(), report() as ran:
            found.append(SUBJECTS[name].read(model(**given))[given["attention_mask"].bool()])
    torch.testing.assert_close(*found)
    assert {one.way: n for one, n in ran.calls.items()} == {"operator": 2}


@pytest.mark.parametrize(("name", "calls"), [("bert", 2), ("t5", 6)])
def test_training_with_dropout_runs_on_the_kernel(name: str, calls: int) -> None:
    assert transformers.BertConfig().attention_probs_dropout_prob == 0.1
    ran = trained_with_dropout(name)
    assert (ran.on_kernel(), ran.elsewhere()) == (calls, 0)


@pytest.mark.parametrize("gradients", [False, True])
def test_weights_on_request(gradients: bool) -> None:
    given, found = text("right"), []
    for implementation in ("eager", "headwork"):
        model = made("bert", implementation)
        with torch.set_grad_enabled(gradients):
            found.append(model(**given, output_attentions=True).attentions)
    real = given["attention_mask"].bool()[:, None, :, None]
    for theirs, mine in zip(*found, strict=True):
        torch.testing.assert_close(mine * real, theirs * real)
        assert mine.requires_grad == gradients


def test_packed_sequences_by_position_ids() -> None:
    """Two texts in one row read nothing of each other."""
    model = made("llama", "headwork")
    ids = text("left")["input_ids"][:1]
    with torch.no_grad(), report() as ran:
        places = torch.tensor([[*range(5), *range(7)]])
        both = model(ids, position_ids=places, use_cache=False).logits
        alone = torch.cat((model(ids[:, :5]).logits, model(ids[:, 5:]).logits), 1)
    torch.testing.assert_close(both, alone)
    assert ran.elsewhere() == 0


@pytest.mark.parametrize("kind", ["Boolean", "added", "with holes"])
def test_masks_handed_in(kind: str) -> None:
    ids = text("left")["input_ids"]
    seen = torch.rand(3, 1, 12, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    seen |= torch.eye(12, dtype=torch.bool)
    mask = {
        "Boolean": seen,
        "added": torch.zeros(seen.shape).masked_fill(~seen, -torch.inf),
        "with holes": seen[:, 0, 0].long(),
    }
    given = mask[kind].clone()
    if kind == "with holes":
        given[:, 0] = 1
    found = []
    for implementation in ("sdpa", "headwork"):
        with torch.no_grad(), report() as ran:
            found.append(made("llama", implementation)(ids, attention_mask=given).logits)
    torch.testing.assert_close(*found)
    assert (ran.on_kernel(), ran.elsewhere()) == (2, 0)


def test_bfloat16_is_as_near_as_torchs() -> None:
    given = text("left")
    real = given["attention_mask"].bool()
    with torch.no_grad():
        exact = made("llama", "formula").double()(**given).logits[real]
        mine, theirs = (made("llama", name).bfloat16()(**given).logits[real].double() for name in ("headwork", "sdpa"))
    assert (mine - exact).square().mean() <= 4 * (theirs - exact).square().mean()


def test_no_mask_of_tokens_by_keys_is_made() -> None:
    """Padding and windows travel as one row of numbers for every sequence."""
    registered()
    window = transformers.masking_utils.sliding_window_causal_mask_function(5)
    padding = torch.tensor([[False, False, True, True], [True, True, True, True]])
    rows = masks.mask(2, 4, 4, mask_function=window, attention_mask=padding)
    assert rows is not None
    assert isinstance(rows, masks.MaskRows)
    assert rows.spans.tolist() == [[0, 4, 0, 4, 0, 2], [0, 4, 0, 4, 0, 0]]
    assert rows.window == (4, 0)
    assert (rows.shape, rows.dtype, rows.ndim, rows.dim(), rows.size(-1)) == ((2, 1, 4, 4), torch.bool, 4, 4, 4)
    assert rows.whole is None  # so far
    holes = masks.mask(2, 4, 4, attention_mask=torch.tensor([[True, False, True, True]] * 2))
    assert holes is not None
    assert type(holes) is torch.Tensor
    assert holes.dtype == torch.bool
    chunks = transformers.masking_utils.chunked_causal_mask_function(3, torch.zeros(1, dtype=torch.int64))
    assert masks.pattern(chunks) is None
    assert masks.pattern(lambda b, h, q, k: q >= k) is None


def test_what_the_kernel_cannot_read_goes_to_sdpa_and_is_said_once() -> None:
    x = torch.empty(2, 4, 5, 8, device="meta")
    ours.said.clear()
    module = nn.Module()
    with warnings.catch_warnings(record=True) as said, report() as ran:
        warnings.simplefilter("always")
        for _ in range(3):
            out, weights = ours.attention(module, x, x[:, :4], x[:, :4], None)
    assert out.shape == (2, 5, 4, 8)
    assert weights is None
    assert [str(w.message) for w in said if "headwork" in str(w.message)] == [
        'attn_implementation="headwork" hands calls on to sdpa: a tensor is on meta.'
    ]
    assert ran.elsewhere() == 3


@pytest.mark.parametrize("padding", [None, [[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]]])
def test_whoever_reads_our_rows_reads_a_mask(padding: Any) -> None:
    """A model may do with its mask what it does with sdpa's: index, add, combine, copy, write into it."""
    function = transformers.masking_utils.sliding_window_causal_mask_function(2)
    real = None if padding is None else torch.tensor(padding).bool()
    given: dict[str, Any] = {"mask_function": function, "attention_mask": real}
    theirs = transformers.masking_utils.sdpa_mask(2, 5, 5, allow_is_causal_skip=False, **given)
    x, bias = torch.randn(2, 4, 5, 8), torch.randn(1, 4, 5, 5)

    def rows() -> Any:
        made = masks.mask(2, 5, 5, **given)
        assert isinstance(made, masks.MaskRows)
        return made

    assert torch.equal(rows()[:, :, 1:, :4], theirs[:, :, 1:, :4])
    assert torch.equal(bias + rows(), bias + theirs)
    assert torch.equal(torch.where(rows(), bias, 0), torch.where(theirs, bias, 0))
    assert torch.equal(~rows() & theirs, theirs & ~theirs)
    assert torch.equal(torch.cat((rows(), rows())), torch.cat((theirs, theirs)))
    assert torch.equal(copy.deepcopy(rows()), theirs)
    assert torch.equal(pickle.loads(pickle.dumps(rows())), theirs)
    assert str(rows()) == str(theirs)
    expected, _ = ours.attention(nn.Module(), x, x, x, theirs)
    for copied in (rows(), rows().clone(), rows().to(torch.bool), rows().expand(2, 4, 5, 5)):
        torch.testing.assert_close(ours.attention(nn.Module(), x, x, x, copied)[0], expected)
    read = rows()
    assert read.any()  # written out by now, and as it was
    assert read.as_made()
    torch.testing.assert_close(ours.attention(nn.Module(), x, x, x, read)[0], expected)
    written = rows()
    written[..., 3] = False
    theirs = theirs.clone()
    theirs[..., 3] = False
    expected, _ = ours.attention(nn.Module(), x, x, x, theirs)
    torch.testing.assert_close(ours.attention(nn.Module(), x, x, x, written)[0], expected)


def test_nothing_to_hide_is_no_mask() -> None:
    """Where sdpa has none, models add to what they get: BEiT's biases by distance, here."""
    both = transformers.masking_utils.bidirectional_mask_function
    ones = torch.ones(2, 5, dtype=torch.bool)
    for padding in (None, ones):
        given: dict[str, Any] = {"mask_function": both, "attention_mask": padding, "allow_is_bidirectional_skip": True}
        assert masks.mask(2, 5, 5, **given) is None
        assert masks.mask(2, 5, 5, **given | {"allow_is_bidirectional_skip": False}) is not None
    config = transformers.BeitConfig(**IMAGES, **NO_DROPOUT, use_relative_position_bias=True)
    found = []
    for name in ("sdpa", "headwork"):
        torch.manual_seed(0)
        config._attn_implementation = name
        model = transformers.BeitModel(config).eval()
        with torch.no_grad(), report() as ran:
            found.append(model(SUBJECTS["vit"].given("left")["pixel_values"]).last_hidden_state)
    torch.testing.assert_close(*found)
    assert (ran.on_kernel(), ran.elsewhere()) == (2, 0)


def test_a_mask_that_is_none_is_refused() -> None:
    x = torch.randn(2, 4, 5, 8)
    rows = masks.mask(2, 5, 5)
    with pytest.raises(HeadworkError, match=r"the attention mask is torch.int64 \(2, 1, 5, 5\): give Booleans"):
        ours.attention(nn.Module(), x, x, x, torch.ones(2, 1, 5, 5, dtype=torch.int64))
    with pytest.raises(HeadworkError, match="made for 5 tokens"):
        ours.attention(nn.Module(), x[:, :, :3], x, x, rows)


def test_explain_asks_what_decides() -> None:
    """The same path as is counted when the call is made; nothing is drawn from torch's generator."""
    x = torch.randn(2, 4, 5, 8)
    rows, made_of = masks.mask(2, 5, 5, mask_function=transformers.masking_utils.causal_mask_function), nn.Module()
    calls: list[tuple[Any, dict[str, Any]]] = [
        ((x, x, x, None), {}),
        ((x, x[:, :2], x[:, :2], rows), {"dropout": 0.1, "softcap": 3.0}),
        ((x.clone().requires_grad_(), x, x, rows), {}),
        ((x.clone().requires_grad_(), x, x, rows), {"output_attentions": True}),
        ((x, x, x, rows), {"output_attentions": True}),
        ((x.to("meta"), x.to("meta"), x.to("meta"), None), {}),
    ]
    found = []
    for given, options in calls:
        torch.manual_seed(0)
        told = ours.explain(made_of, *given, **options)
        assert torch.initial_seed() == 0
        assert torch.equal(torch.randint(9, (4,)), torch.randint(9, (4,), generator=torch.Generator().manual_seed(0)))
        with report() as ran:
            ours.attention(made_of, *given, **options)
        assert [(one.way, one.reason) for one in ran.calls] == [(told.way, told.reason)]
        found.append(str(told))
    assert found == [
        "kernel: without gradients",
        "kernel: without gradients",
        "kernel: with gradients",
        "torch: weights with gradients",
        "kernel: without gradients",
        "torch: a tensor is on meta",
    ]


def test_a_step_of_decoding_asks_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of ours and no gradient: the same output as the long way gives, counted, and nothing else is asked."""
    q, k, v = torch.randn(2, 4, 1, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    real = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    rows = masks.mask(2, 1, 6, q_offset=5, attention_mask=real)
    expected, _ = ours.attention(nn.Module(), q, k, v, rows, scaling=0.3, softcap=None, position_bias=None)
    monkeypatch.setattr(ours, "asked", None)
    with report() as ran:
        found, weights = ours.attention(nn.Module(), q, k, v, rows, scaling=0.3, dropout=0.0)
    assert torch.equal(found, expected)
    assert weights is None
    assert [str(one) for one in ran.calls] == ["headwork, kernel: without gradients"]


@pytest.mark.parametrize(
    ("real", "found"),
    [
        ([[0, 0, 1, 1], [1, 1, 0, 0]], ([2, 0], [4, 2])),
        ([[0, 0, 0, 0], [1, 1, 1, 1]], ([0, 0], [0, 4])),
        ([[0, 1, 1, 0]], ([1], [3])),
        ([[1, 0, 1, 1]], None),
        ([[0, 1, 0, 1], [1, 1, 1, 1]], None),
    ],
)
def test_real_keys_that_lie_together(real: list[list[int]], found: tuple[list[int], list[int]] | None) -> None:
    for dtype in (torch.int64, torch.bool, torch.float32):
        assert masks.run_of_keys(torch.tensor(real).to(dtype), len(real), 4, 0) == found
