"""Sheets for `fuzz.py`: tables of pencil size with ordinary or extreme numbers in, or with junk, and their TOML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from fuzz_keys import seldom
from fuzz_numbers import EXTREME, junk, matrix, small

from headwork.formulas import FORMULAS
from headwork.notation import ROLES

Drawing = Callable[[int, int], list[list[Any]]]


def sheet_table(draw: Random, extreme: bool) -> dict[str, Any]:
    """A sheet of pencil size: up to 4 heads, 5 tokens, widths of 6."""
    formula = draw.choice(list(FORMULAS))
    several, projects = FORMULAS[formula].several, FORMULAS[formula].projects
    heads = draw.randint(1, 4) if several else 1
    kv_heads = draw.choice([g for g in range(1, heads + 1) if heads % g == 0])
    tokens, d_model, d_k, d_v = draw.randint(1, 5), draw.randint(1, 6), draw.randint(1, 3), draw.randint(1, 3)
    cross = draw.random() < 0.3
    keys = draw.randint(1, 5) if cross else tokens
    kinds = draw.sample(EXTREME, 2) if extreme else []

    def drawn(rows: int, columns: int) -> list[list[Any]]:
        return matrix(draw, rows, columns, draw.choice([small, *kinds, *kinds]))

    given: dict[str, Any] = {}
    if projects:
        given["X"] = drawn(tokens, d_model)
        if cross:
            given["context"] = drawn(keys, d_model)
        for letter, columns, number in (("Q", d_k, heads), ("K", d_k, kv_heads), ("V", d_v, kv_heads)):
            each = FORMULAS[formula].heads == "each"
            width = columns * number if several else columns
            given[f"W_{letter}"] = [drawn(d_model, columns) for _ in range(number)] if each else drawn(d_model, width)
            if draw.random() < 0.3:
                flat = [drawn(1, columns)[0] for _ in range(number)]
                given[f"b_{letter}"] = flat if each else drawn(1, width)[0]
        around = draw.choice(["none", "none", "residual", "post-norm", "pre-norm"])
        given["W_O"] = drawn(heads * d_v, draw.randint(1, 4) if around == "none" else d_model)
        given |= given_around(draw, around, d_model, drawn)
    else:
        given |= {"Q": drawn(tokens, d_k), "K": drawn(keys, d_k), "V": drawn(keys, d_v)}
    table: dict[str, Any] = {
        "title": draw.choice(["Drawn", "Drawn", *PROSE]),
        "formula": formula,
        "places": draw.choice([2, 2, 2, 0, 4, 50 if extreme else 3]),
        "first_index": draw.randint(0, 1),
        "mask": mask(draw, tokens, keys),
        "given": given,
        "part": parts(draw, projects, around if projects else "none"),
        "decimals": draw.choice(["short", "short", "always"]),
    }
    if draw.random() < 0.3:
        table["tokens"] = [draw.choice(["the", "cat", "<pad>", "$x$", "ä|b", "\\a"]) for _ in range(tokens)]
        if cross and draw.random() < 0.5:
            table["keys"] = [f"k{number}" for number in range(keys)]
    if projects:
        table |= {"around": around}
        if around.endswith("norm") and draw.random() < 0.5:
            table["eps"] = draw.choice(["0.00001", 0, "1/3", "1e-40" if extreme else 1])
    if several:
        table |= {"heads": heads, "kv_heads": kv_heads}
    if not cross and draw.random() < 0.4:
        counts = {"Q": heads, "K": kv_heads, "V": kv_heads}
        vary(draw, table, tokens, counts if FORMULAS[formula].heads == "each" else {}, drawn)
        keys = keys_of(table)
        by_certain_digits(draw, table)
    if draw.random() < 0.3:
        table["part"] += gradient_parts(draw, table, drawn)
    if projects and draw.random() < (0.3 if table["part"][-1].get("kind") == "gradient" else 0.1):
        given["X"] = [given["X"], drawn(tokens, d_model)]  # two items; a context or a cache is theirs in common
    if FORMULAS[formula].blocks:  # which never has all the weights
        for part in table["part"]:
            part["find"] = [name for name in part["find"] if name != "weights"] or ["output"]
        table["blocks"] = draw.choice([number for number in range(1, keys + 1) if keys % number == 0])
    if formula != "dot_product" and draw.random() < 0.4:
        table["scale"] = draw.choice(["none", "sqrt(d_k)", 2, "sqrt(3)", "1e-40" if extreme else 7])
    seldom(draw, table)
    return table


def vary(draw: Random, table: dict[str, Any], tokens: int, each: Mapping[str, int], drawn: Drawing) -> None:
    """What later models changed: a cache, positions, rotary positions, windows and biases."""
    given, heads = table["given"], table.get("heads", 1)
    projects, past = "X" in given, draw.choice([0, 0, 1, 2])
    d_model, d_k = len(given["X"][0]) if projects else 0, width(given["W_Q" if projects else "Q"], heads, bool(each))
    if past and projects and draw.random() < 0.5:
        given["X_past"] = drawn(past, d_model)
    elif past:
        for letter in "KV":
            columns = len((given[f"W_{letter}"][0] if each else given[f"W_{letter}"])[0]) if projects else 0
            if projects:
                matrices = [drawn(past, columns) for _ in range(each.get(letter, 1))]
            else:
                given[f"{letter}_new"] = given.pop(letter)
                matrices = [drawn(past, len(given[f"{letter}_new"][0]))]
            given[f"{letter}_past"] = matrices if each else matrices[0]
    keys = tokens + past
    table["mask"] = draw.choice([mask(draw, tokens, keys), "causal", ["causal"] * heads])
    if draw.random() < 0.4:
        table["window"] = draw.choice([[1, 0], [-1, 1], [0, 0], [3, 3]])
    if draw.random() < 0.6:
        slopes = [draw.choice(["1/2", 2, "0.1"]) for _ in range(heads)]
        relative = [[small(draw) for _ in range(draw.choice([1, 3, 5]))] for _ in range(heads)]
        table["bias"] = draw.choice(["alibi", {"alibi": slopes}, {"relative": relative}, drawn(tokens, keys)])
    if projects and "X_past" not in given and draw.random() < 0.3:
        given["positions"] = drawn(tokens, d_model)
    if d_k % 2 == 0 and draw.random() < 0.5:
        if draw.random() < 0.5:
            given |= {"cos": drawn(keys, d_k // 2), "sin": drawn(keys, d_k // 2)}
        else:
            degrees = [draw.choice([15, 30, 45, 90, 120]) for _ in range(d_k // 2)]
            table["rotary"] = {"degrees": degrees, "pairs": draw.choice(["neighbours", "halves"])}


def by_certain_digits(draw: Random, table: dict[str, Any]) -> None:
    """What leaves the closed forms: a softcap, other angles, sinusoids."""
    if draw.random() < 0.3:
        table["softcap"] = draw.choice([1, "2.5", "sqrt(2)"])
    if "rotary" in table and draw.random() < 0.5:
        angles = draw.choice([{"base": 100}, {"base": 100, "places": 3}])
        table["rotary"] = {"pairs": table["rotary"]["pairs"], **angles}
    if "positions" in table["given"] and len(table["given"]["X"][0]) % 2 == 0 and draw.random() < 0.5:
        del table["given"]["positions"]
        table["positions"] = draw.choice(["sinusoidal", {"base": 50, "places": 2}])


def width(matrices: Any, heads: int, each: bool) -> int:
    """Columns of one head."""
    return len(matrices[0][0]) if each else len(matrices[0]) // heads


def keys_of(table: Mapping[str, Any]) -> int:
    """How many keys the scores have: those of earlier tokens too."""
    given = table["given"]
    past = given.get("X_past") or given.get("K_past") or []
    past = past[0] if past and isinstance(past[0][0], list) else past
    return len(past) + len(given.get("X") or given["Q"])


def given_around(draw: Random, around: str, d_model: int, drawn: Callable[..., Any]) -> dict[str, Any]:
    """A feed-forward layer, gains and biases, each now and then."""
    given: dict[str, Any] = {}
    if around != "none" and draw.random() < 0.5:
        width = draw.randint(1, 4)
        given = {"W_1": drawn(d_model, width), "b_1": drawn(1, width)[0], "W_2": drawn(width, d_model)}
    if around.endswith("norm") and draw.random() < 0.5:
        given |= {"gamma_1": drawn(1, d_model)[0], "beta_1": drawn(1, d_model)[0]}
    return given


def mask(draw: Random, tokens: int, keys: int) -> Any:
    rows = [[draw.choice([True, False]) for _ in range(keys)] for _ in range(tokens)]
    added = [[draw.choice([0, "-inf", -1]) for _ in range(keys)] for _ in range(tokens)]
    return draw.choice(["none", "none", rows, added, "causal" if tokens == keys else "none"])


def parts(draw: Random, projects: bool, around: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for label in "abc"[: draw.randint(1, 3)]:
        kind = draw.choice(["value"] * 6 + ["shape", "count", "diagram", "explain"])
        find = draw.choice(
            [["output"], ["weights", "output"], ["scores"], ["weights"], ["Q", "K"] if projects else ["V"]]
            + [["residual_1"]] * (around != "none")
            + [["normed_1"], ["deviation_1", "normed_1[1,1]"]] * around.endswith("norm")
        )
        text = draw.choice(["Find Q_1 = [[1, 2]] and √2.", *PROSE])
        part = {"label": label, "kind": kind, "text": text, "find": find, "answer": draw.choice(["Yes.", *PROSE[:-1]])}
        found.append(part | draw.choice([{}, {"points": draw.choice([0, 2, "1/2", "7/3"])}]))
    return found


PROSE = (
    "With $\\alpha = \\mathrm{softmax}(\\frac{QK^T}{\\sqrt{d_k}})$:",
    "It costs \\$5, or $x_1^{2}$ and $ \\sum_{i=1}^n a_i $.",
    "$$, $ and $\\frac{1}$, $\\nothing{x}$",
    '#panic() #read("/etc/passwd") @here <there> ]; $#f(x)$',
    "\\end{document} \\input{x} % & ~ ^ {{x}} ${1}",
    "<script>alert(1)</script> &amp; ``` | a | b | # H * _ `",
    "\u202e\ufeff e\u0301 漢字 \U0001f600 - - -\n\n= h\n+ i",
    "",
)


def gradient_parts(draw: Random, table: Mapping[str, Any], drawn: Drawing) -> list[dict[str, Any]]:
    """One or two about gradients; the loss is one for both."""
    given = table["given"]
    projects = "X" in given
    learned = [role for role in given if role[:2] in ("W_", "b_", "ga", "be")]
    last = len(given["W_2"][0]) if "W_2" in given else 0
    outside = table.get("around", "none") != "none"
    rows = len(given["X"] if projects else given["Q"])
    values = given.get("W_O") or given.get("V") or given["V_new"]
    columns = last or len((given["X"] if outside else values)[0])
    other = drawn(rows, columns)
    losses: list[dict[str, Any]] = [{"loss": "sum"}, {"loss": "half-squares", "target": other}]
    loss = draw.choice([*losses, {"given": {"d_output": other}}])
    found = []
    for label in "gh"[: draw.randint(1, 2)]:
        find = draw.sample([*learned, "X", "weights"] if projects else ["Q", "V", "scores"], draw.randint(1, 2))
        rate = {"rate": draw.choice(["1/2", "0.1", 1])} if draw.random() < 0.5 else {}
        found.append({"label": label, "kind": "gradient", "find": draw.choice([find, find, []]), **loss, **rate})
    return found


def several(tables: Sequence[Mapping[str, Any]]) -> str:
    """A sheet of some problems."""
    return 'title = "Drawn"\n' + "".join(f"[[problem]]\n{toml(table, 'problem.')}" for table in tables)


def toml(table: Mapping[str, Any], under: str = "") -> str:
    """A table as TOML."""
    plain = {k: v for k, v in table.items() if k not in ("given", "part")}
    text = "".join(f"{k} = {toml_value(v)}\n" for k, v in plain.items())
    parts = table["part"] if isinstance(table.get("part"), list) else []
    for header, inner in ((f"[{under}given]", table.get("given")), *((f"[[{under}part]]", part) for part in parts)):
        rows = inner.items() if isinstance(inner, dict) else [("junk", inner)]
        text += f"{header}\n" + "".join(f"{json.dumps(k)} = {toml_value(v)}\n" for k, v in rows)
    return text


def toml_value(value: Any) -> str:
    """JSON's texts and numbers are TOML's."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return "{}" if value is None else json.dumps(value, ensure_ascii=False)  # TOML has no surrogates


def hostile_text(draw: Random, text: str) -> bytes:
    """A legal text, damaged in a few places."""
    for _ in range(draw.randint(1, 4)):
        at, length = draw.randrange(len(text) + 1), draw.choice([0, 1, 5, 40])
        piece = draw.choice(["", "[", "]", '"', "\n", "=", ",", "9" * draw.choice([3, 5000]), toml_value(junk(draw))])
        text = text[:at] + piece + text[at + length :]
    content = text.encode("utf-8", "surrogatepass")
    return content[: draw.randrange(len(content) + 1)] + b"\xff\xfe" if draw.random() < 0.05 else content


def hostile_table(draw: Random, table: dict[str, Any]) -> dict[str, Any]:
    """A legal table with something else at a few keys."""
    keys = [*table, "sizes", "notation", "marking", "vectors", "heds", "kv_heads"]
    keys += ["window", "bias", "rotary", "softcap", "positions"]
    for _ in range(draw.randint(1, 2)):
        where = draw.choice(["given", "part", "top", "entry"])
        if where == "top":
            table[draw.choice(keys)] = draw.choice([junk(draw), draw.randint(-3, 200), "causal", {"d_k": "n"}])
        elif where == "part" and isinstance(table.get("part"), list):
            part = draw.choice(table["part"])
            part[draw.choice(["label", "kind", "find", "text", "given", "mean", "x"])] = draw.choice(
                [junk(draw), [name(draw)], [name(draw), name(draw)], "prove", "moments", {name(draw): [[1]]}]
            )
        elif isinstance(table.get("given"), dict) and table["given"]:
            table["given"][draw.choice([*table["given"], name(draw)])] = draw.choice(
                [junk(draw), matrix(draw, draw.randint(1, 3), draw.randint(1, 3), draw.choice([small, junk]))]
            )
    return table


def name(draw: Random) -> str:
    """A step, a row or an entry, there or not."""
    role = draw.choice([*ROLES, "mean", "blocks", "rubbish", "", "Q" * 300])
    head = draw.choice(["", "", "_1", "_2", "_9", "_00000", "_" + "9" * 5000])
    return role + head + draw.choice(["", "", "[1]", "[1,1]", "[0,0]", "[9,9]", "[i,j]", "[", "[1,1,1]", "[-1]"])
