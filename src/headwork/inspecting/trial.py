"""A trial: one way of calling somebody's attention, held against the formula and the catalogue."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headwork.build import Sizes, build
from headwork.graph import Step
from headwork.inspecting.arrays import PREDICTED
from headwork.inspecting.calling import Caller, Case
from headwork.inspecting.layouts import LAYOUTS, AxisOrder, CaseSizes
from headwork.inspecting.masking import OF_KEYS, mask_forms, upside_down
from headwork.mistakes.diagnose import Variants
from headwork.mistakes.predict import Variant
from headwork.readings.values import Array

CLOSE = 1e-5  # relative; a function may work in single precision inside
WEIGHTS = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")
RANKS = ("disagrees", "mistake", "agrees")
Fit = tuple[Step, dict[Step, Array], Case, bool]  # the formula, what is handed to it, of which case, whether causal


class Trial:
    """One way of calling, held against the formula and the catalogue."""

    def __init__(self, caller: Caller, heads: int, sizes: CaseSizes, masked: bool = False) -> None:
        self.caller, self.masked = caller, masked
        # Queries, keys and values that come head by head are one head with a batch of them.
        self.heads, self.sizes = (1, sizes) if caller.kind == "qkv" else (heads, replace(sizes, heads=heads))
        self.case = caller.draw(self.sizes, np.random.default_rng(1))
        if masked:
            self.case["mask"] = caller.mask.seen(self.sizes.tokens, self.sizes.keys)
        self.joined = False  # whether a layer without W_O agrees as far as the joined heads
        self.answer = caller(dict(self.case), self.heads)
        self.verdict, self.tags, self.causal = self._judge()

    @property
    def rank(self) -> int:
        return RANKS.index(self.verdict)

    def fits(self) -> list[Fit]:
        """The formula for every reading of the case, without and with a causal mask built in, where none for every
        token was handed over."""
        found = []
        for case in self.caller.readings(self.case):
            for causal in (False,) if self.masked and self.caller.mask.axes > 1 else (False, True):
                last, handed = graph_of(case, self.heads, causal)
                if last is not None:
                    found.append((last, handed, case, causal))
        return found

    def _judge(self) -> tuple[str, list[str], bool]:
        fits = self.fits()
        for last, handed, case, causal in fits:
            if same(self.answer, Variant(last, PREDICTED).value(last, handed)):
                if self.heads > 1 and self.caller.kind == "layer" and "W_O" not in self.case:
                    self.joined = True
                    return "mistake", ["forgot-output-projection"], causal
                self.case = case
                return "agrees", [], causal
        for last, handed, _, causal in fits[:4]:  # the likeliest readings; any other would be a guess on a guess
            tags = [
                tag
                for tag, graph in Variants(last, PREDICTED).single
                if same(self.answer, graph.predict(last, handed), enough=self.answer.size // 2)
            ]
            if tags:
                return "mistake", list(dict.fromkeys(tags)), causal
        if split_first(self.case, self.heads, self.answer):
            return "mistake", ["split-before-projection"], False
        return "disagrees", [], False

    def look_for_two(self) -> None:
        """Two mistakes at once: many, so only where nothing else was found."""
        open_to_all = self.masked or self._first_reads_last()  # then it is not causal
        for last, handed, _, causal in self.fits()[: 1 if open_to_all else 2]:
            pairs = Variants(last, PREDICTED).pairs()
            both = ["+".join(tags) for tags, graph in pairs if same(self.answer, graph.predict(last, handed))]
            if both:
                self.verdict, self.tags, self.causal = "mistake", list(dict.fromkeys(both)), causal
                return

    def _first_reads_last(self) -> bool:
        """Whether the last token, or key, makes a difference to the first token."""
        case = dict(self.case)
        for role in ("X", "K", "V"):
            if role in case:
                case[role] = case[role].copy()
                case[role][..., -1, :] += 1.0
        answer = self.caller(case, self.heads)
        return answer.shape != self.answer.shape or not same(answer[..., 0, :], self.answer[..., 0, :])

    def with_masks(self) -> "list[Trial]":
        """The same function with a mask for every token, and with one for the keys alone, where it takes such."""
        names = self.caller.masks
        kinds = ([n for n in names if n not in OF_KEYS], [n for n in names if n in OF_KEYS])
        return [trial for kind in kinds if (trial := self._with_mask(kind)) is not None]

    def _with_mask(self, names: Sequence[str]) -> "Trial | None":
        """In the first form in which it agrees, else in the first that has a name."""
        layer, best = self.caller.kind == "layer", None
        sizes = replace(self.sizes, keys=self.sizes.tokens)
        forms = [(form, layout) for name in names for form in mask_forms(name, layer) for layout in self._layouts(name)]
        for form, layout in forms:
            try:
                trial = Trial(replace(self.caller, mask=form, layout=layout), self.heads, sizes, masked=True)
            except Exception:  # a form of mask that it does not take
                continue
            if trial.verdict == "agrees" and upside_down(form, layer):
                trial.verdict, trial.tags = "mistake", ["mask-inverted"]
                return trial
            if trial.verdict == "agrees":
                return trial
            if best is None or trial.rank > best.rank:
                best = trial
        return best

    def _layouts(self, name: str) -> Sequence[AxisOrder]:
        """Which keys are there to fill up differs from item to item: such a mask is for batches."""
        own = self.caller.layout
        return (own, *(x for x in LAYOUTS if x.leading)) if name in OF_KEYS and not own.leading else (own,)

    def notes(self) -> list[str]:
        notes = ["A causal mask is built in."] if self.causal else []
        if self.caller.kind == "layer" and "W_O" not in self.case:
            notes.append("None of its parameters is an output projection.")
        if "W_Q" in self.case and self.case["W_Q"].shape[1] > self.case["X"].shape[-1]:
            width, d_model = self.case["W_Q"].shape[1] // self.heads, self.case["X"].shape[-1]
            notes.append(f"Every head is {width} wide: d_model = {d_model} times the heads, not shared by them.")
        found = self.caller.found
        held = zip(found.readings, found.unusual, strict=True)
        if packed := next((text for own, text in held if own["W_Q"] is self.case.get("W_Q")), ""):
            notes.append(f"It is right if its wide projection holds {packed}: not with weights in the usual order.")
        return notes


def graph_of(case: Case, heads: int, causal: bool = False) -> tuple[Step | None, dict[Step, Array]]:
    """The formula for a case, and what is handed to it; None where the projections do not fit it."""
    tokens = case["Q" if "Q" in case else "X"].shape[-2]
    keys = case["K"].shape[-2] if "K" in case else tokens
    mask = "mask" in case or causal
    if "Q" in case:
        last, roles = _from_qkv(case, heads, tokens, keys, mask)
    else:
        last, roles = _from_x(case, heads, tokens, mask)
    if last is None:
        return None, {}
    if mask:
        every = np.ones((tokens, keys), bool)
        seen = case.get("mask", every).astype(bool) & (np.tril(every) if causal else every)
        roles["mask"] = np.where(seen, 0.0, -np.inf)
    by_role = Variant(last, PREDICTED).by_key
    return last, {by_role[role, None]: array for role, array in roles.items()}


def _from_qkv(case: Case, heads: int, tokens: int, keys: int, mask: bool) -> tuple[Step | None, dict[str, Array]]:
    """Q, K and V as they are; wide ones, where the function splits them into heads itself, with nothing after them."""
    roles = {role: case[role] for role in "QKV"}
    d_k, d_v = case["Q"].shape[-1], case["V"].shape[-1]
    if heads == 1:
        return build("scaled_dot_product", Sizes(tokens, keys, 1, 1, 1, 1, d_k, d_v, 1), mask=mask), roles
    sizes = Sizes(tokens, keys, d_k, d_k, heads, heads, d_k // heads, d_v // heads, d_v)
    return build("multi_head_blocks", sizes, mask=mask, context=True), {**roles, "W_O": np.eye(d_v)}


def _from_x(case: Case, heads: int, tokens: int, mask: bool) -> tuple[Step | None, dict[str, Array]]:
    roles = {role: case[role] for role in ("X", *WEIGHTS) if role in case}
    if not {"W_Q", "W_K", "W_V"} <= roles.keys() or roles["W_Q"].shape[0] != roles["X"].shape[-1]:
        return None, {}
    d_model, (wide, narrow, values) = roles["X"].shape[-1], (roles[f"W_{part}"].shape[1] for part in "QKV")
    d_k = wide // heads
    if wide % heads or narrow % d_k or heads % (narrow // d_k) or values % (narrow // d_k):
        return None, {}
    kv_heads = narrow // d_k
    d_v = values // kv_heads
    roles.setdefault("W_O", np.eye(heads * d_v))
    if roles["W_O"].shape[0] != heads * d_v:
        return None, {}
    sizes = Sizes(tokens, tokens, d_model, d_model, heads, kv_heads, d_k, d_v, roles["W_O"].shape[1])
    biases = [role for role in roles if role.startswith("b_")]
    return build("multi_head_blocks", sizes, mask=mask, biases=biases), roles


def split_first(case: Case, heads: int, answer: Array) -> bool:
    """One small projection, shared by the heads, on each head's part of X."""
    if "W_Q" not in case or case["W_Q"].shape[0] * heads != case["X"].shape[-1]:
        return False
    wide = dict(case)
    for role in ("W_Q", "W_K", "W_V"):
        wide[role] = np.asarray(np.kron(np.eye(heads), case[role]), np.float64)
    for role in ("b_Q", "b_K", "b_V"):
        if role in case:
            wide[role] = np.tile(case[role], heads)
    return any(
        last is not None and same(answer, Variant(last, PREDICTED).value(last, handed))
        for last, handed in (graph_of(wide, heads, causal) for causal in (False, True))
    )


def same(answer: Array, predicted: Array | None, close: float = CLOSE, enough: int | None = None) -> bool:
    """Whether an answer is what is predicted. What a token gives that may read nothing is not predicted (NaN): code
    says zeros, NaN, or the mean; `enough` says how many entries must be."""
    if predicted is None or answer.shape != predicted.shape:
        return False
    told = ~np.isnan(predicted)
    if told.sum() < (predicted.size if enough is None else enough) or not np.isfinite(predicted[told]).all():
        return False
    apart = np.abs(answer[told] - predicted[told])
    return bool(np.all(apart <= close * (1 + np.abs(predicted[told]).max())))
