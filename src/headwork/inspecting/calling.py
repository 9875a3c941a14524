"""How somebody's attention is called: (q, k, v), or x with projections, or a layer; NumPy or torch; and in
which layout. Every way is a `Caller`, which takes a case in our own terms and gives back an array in our own order."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headwork.errors import HeadworkError
from headwork.inspecting.building import HEADS_OF_FUNCTIONS, WIDTHS, WIDTHS_OF_A_HEAD, is_layer, parameters_of
from headwork.inspecting.layouts import LAYOUTS, LAYOUTS_OF_X, AxisOrder, CaseSizes, brought_back
from headwork.inspecting.masking import CAUSAL, MASKS, NO_MASK, OF_KEYS, MaskForm, mask_forms
from headwork.inspecting.projections import LayerProjections, projections, role_of
from headwork.readings.values import Array

Case = dict[str, Array]  # by role: Q, K, V, or X, W_Q …; "mask" holds True where a key may be read
Parameters = Mapping[str, inspect.Parameter]

FIRST = ("x", "inputs", "input", "hidden_states", "embeddings", "tokens", "xs", "inp", "src", "hidden", "seq")
CONTEXTS = ("context", "memory", "y", "x_kv", "x_q", "source", "encoder_hidden_states", "key_value_states", "x_2")
OFF: Mapping[str, Any] = {
    **dict.fromkeys(("dropout", "dropout_p", "dropout_rate", "attn_dropout"), 0.0),
    **dict.fromkeys(("training", "train"), False),
    **dict.fromkeys(("valid_lens", "valid_len"), None),
}
KINDS = {"qkv": "(q, k, v)", "wide": "(q, k, v, heads)", "projections": "(x, W_Q, W_K, W_V …)", "layer": "layer(x)"}
# How a projection that is handed over lies: as X·W has it, as a linear layer does, or a matrix for every head.
FORMS = ("d_model×width", "width×d_model", "heads×d_model×d_k", "d_model×heads×d_k")


@dataclass(frozen=True)
class Caller:
    """One way of calling the function."""

    function: Any
    kind: str  # of KINDS
    framework: str
    layout: AxisOrder
    roles: tuple[tuple[str, str], ...]  # of its arguments, by their names; "" is a place
    dtype: str = "float64"
    mask: MaskForm = NO_MASK
    opened: MaskForm = NO_MASK  # in which it wants to be told that every key may be read, where it cannot do without
    form: str = FORMS[0]
    found: LayerProjections = field(default_factory=LayerProjections)  # a layer's projections
    d_model: int = 0  # a layer's own
    handing: Callable[[Any], Any] = lambda array: array  # what is done to every array on its way to the function

    @property
    def text(self) -> str:
        called = KINDS[self.kind]
        if self.kind == "layer" and sum(role == "X" for _, role in self.roles) > 1:
            called = "layer(x, x, x)"
        if self.form != FORMS[0]:
            called += f" with projections {self.form}"
        return f"{called}, {self.framework}, {self.layout.text}"

    @property
    def masks(self) -> list[str]:
        """The names of the parameters that may take a mask, or a flag for one."""
        return [name for name, role in self.roles if role in ("mask", "causal")]

    def draw(self, sizes: CaseSizes, generator: np.random.Generator, whole: bool = False) -> Case:
        """Inputs of these sizes: without pattern, or small whole numbers for working by hand."""

        def drawn(*shape: int) -> Array:
            if whole:
                return generator.integers(-2, 3, shape).astype(np.float64)
            return generator.normal(0, 1, shape)

        lead, times = self.layout.lead(sizes), sizes.heads if self.kind == "wide" else 1
        if self.kind in ("qkv", "wide"):
            return {
                "Q": drawn(*lead, sizes.tokens, times * sizes.d_k),
                "K": drawn(*lead, sizes.keys, times * sizes.d_k),
                "V": drawn(*lead, sizes.keys, times * sizes.d_v),
            }
        width = sizes.heads * sizes.d_k
        if self.kind == "layer":
            return {"X": drawn(*lead, sizes.tokens, self.d_model or width), **self.found.readings[0]}
        shape = {"W": (width, width), "b": (1, width)}
        wanted = {part for _, role in self.roles for part in _parts(role)}
        weights = {role: drawn(*shape[role[0]]) / (1 if whole else width**0.5) for role in sorted(wanted)}
        return {"X": drawn(*lead, sizes.tokens, width), **weights}

    def readings(self, case: Case) -> Iterator[Case]:
        """The case as it is; and with a layer's parameters read in other ways."""
        yield case
        for own in self.found.readings[1:]:
            yield {**{role: array for role, array in case.items() if role in ("X", "mask")}, **own}

    def __call__(self, case: Case, heads: int = 2) -> Array:
        """The function's answer to a case, as a float64 array in our own order."""
        if "Q" in case:
            shape = (*case["Q"].shape[:-1], case["V"].shape[-1])
        else:
            d_out = case["W_O" if "W_O" in case else "W_V"].shape[1]
            shape = (*case["X"].shape[:-1], d_out)
        back = [brought_back(array, self.layout, shape) for array in arrays_of(self.raw(case, heads))]
        if not back:
            raise HeadworkError("it returned no array")
        return next((array for array in back if array.shape == shape), back[0])

    def raw(self, case: Case, heads: int = 2) -> Any:
        places: list[Any] = []
        named: dict[str, Any] = {}
        for name, role in self.roles:
            if role in ("mask", "causal"):
                if name == self.mask.name and "mask" in case:
                    named[name] = self._mask(case["mask"].astype(bool), case, self.mask)
                elif role == "mask" and (name, "needed") in self.roles:
                    named[name] = self._open_mask(case) if name == self.opened.name else None
            elif role == "needed":
                continue
            elif name:
                named[name] = self._argument(role, case, heads)
            else:
                places.append(self._argument(role, case, heads))
        return self.function(*places, **named)

    def _argument(self, role: str, case: Case, heads: int) -> Any:
        d_k = (case["Q"] if "Q" in case else case["X"]).shape[-1] // (1 if self.kind == "qkv" else heads)
        numbers: Mapping[str, Any] = {"heads": heads, "d_k": d_k, "d_model": d_k * heads, "scale": d_k**-0.5, **OFF}
        if role in numbers:
            return numbers[role]
        if role in case and (role in "QKV" or role == "X"):
            return self._own_kind(self.layout.laid(case[role]))
        return self._own_kind(self._formed(role, case, heads))

    def _formed(self, role: str, case: Case, heads: int) -> Array:
        """A projection as they have it."""
        array: Array = np.concatenate([case[part] for part in _parts(role)], axis=1)
        if role.startswith("b"):
            return array.reshape(-1)
        rows, columns = array.shape
        if self.form == FORMS[1]:
            return array.T
        if self.form == FORMS[0]:
            return array
        if role == "W_O":
            return array.reshape(heads, rows // heads, columns)
        each = array.reshape(rows, heads, columns // heads)
        return each if self.form == FORMS[3] else each.transpose(1, 0, 2)

    def _open_mask(self, case: Case) -> Any:
        tokens, keys = (case[role if "Q" in case else "X"].shape[-2] for role in "QK")
        return self._mask(np.ones((tokens, keys), bool), case, self.opened)

    def _mask(self, seen: Any, case: Case, form: MaskForm) -> Any:
        batch = (case["Q"] if "Q" in case else case["X"]).shape[:1] if self.layout.leading else (1,)
        made = form.made(seen, batch[0], self.dtype)
        return made if isinstance(made, bool) else self._own_kind(made, keep=True)

    def _own_kind(self, array: Any, keep: bool = False) -> Any:
        # A copy: it may be written to.
        typed = np.array(array) if keep else np.array(array, dtype=self.dtype, order="C")
        if self.framework == "torch":
            import torch

            return self.handing(torch.from_numpy(typed))
        return self.handing(typed)


def _parts(role: str) -> list[str]:
    """W_QKV is W_Q, W_K and W_V."""
    letter, _, parts = role.partition("_")
    return [f"{letter}_{part}" for part in parts] if letter in ("W", "b") else []


def arrays_of(returned: Any) -> list[Array]:
    """The arrays in what was returned, in order."""
    if hasattr(returned, "detach"):
        return [returned.detach().double().numpy()]
    if isinstance(returned, Mapping):
        return [array for each in returned.values() for array in arrays_of(each)]
    if isinstance(returned, tuple | list) and returned and not isinstance(returned[0], int | float):
        if isinstance(returned, list) and isinstance(returned[0], list | tuple):
            return [np.asarray(returned, dtype=np.float64)]
        return [array for each in returned for array in arrays_of(each)]
    return [] if returned is None else [np.asarray(returned, dtype=np.float64)]


def callers(function: Any, heads: int, d_model: int = 0) -> Iterator[Caller]:
    """Every way in which the function might be meant to be called, likeliest first: one that needs a mask without it
    (None), then with one that hides nothing."""
    layer = is_layer(function)
    yield from (ways := [*_callers(function, heads, d_model)])
    for caller in ways:
        for name in [name for name, role in caller.roles if role == "mask" and (name, "needed") in caller.roles]:
            yield from (replace(caller, opened=form) for form in mask_forms(name, layer))


def _callers(function: Any, heads: int, d_model: int) -> Iterator[Caller]:
    torch = sys.modules.get("torch")
    if is_layer(function):
        yield from _layer_callers(function, heads, d_model)
        return
    kind, roles = _function_roles(_signature(function))
    speaks = torch is not None and _speaks_torch(function)
    frameworks = ["torch", "numpy"] if speaks else ["numpy", "torch"]
    for framework in frameworks:
        if framework == "torch" and torch is None:
            continue
        # torch mixes no precisions: a function with constants of its own may want single.
        for dtype in ("float64", "float32") if framework == "torch" else ("float64",):
            for layout in LAYOUTS if kind == "qkv" else (LAYOUTS[0], *LAYOUTS[1:3]):
                for form in FORMS if kind == "projections" else FORMS[:1]:
                    yield Caller(function, kind, framework, layout, roles, dtype, form=form)


def _layer_callers(layer: Any, heads: int, d_model: int) -> Iterator[Caller]:
    torch: Any = sys.modules.get("torch")
    is_module = torch is not None and isinstance(layer, torch.nn.Module)
    if is_module:
        layer = layer.double().eval()
        _awaken(layer, d_model)
    found = projections([*parameters_of(layer)], heads)
    if not found.readings:
        names = ", ".join(p.name for p in parameters_of(layer))
        raise HeadworkError(f"W_Q, W_K and W_V were not found among its parameters {names or '(it has none)'}")
    called = layer if callable(layer) else next(getattr(layer, n) for n in ("forward", "call") if hasattr(layer, n))
    roles = _layer_roles(_signature(layer.forward if is_module else called))
    own = found.readings[0]
    width = d_model or own["W_O" if "W_O" in own else "W_Q"].shape[1 if "W_O" in own else 0]
    for layout in LAYOUTS_OF_X:
        yield Caller(called, "layer", "torch" if is_module else "numpy", layout, roles, found=found, d_model=width)


def _awaken(layer: Any, d_model: int) -> None:
    """Linears that take their width from the first call get one."""
    torch: Any = sys.modules["torch"]
    if not any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in layer.parameters()):
        return
    x = torch.zeros(1, 2, d_model, dtype=torch.float64)
    roles = dict(_layer_roles(_signature(layer.forward)))
    layer(**{name: x if role == "X" else OFF.get(name) for name, role in roles.items()})
    layer.double()


def _speaks_torch(function: Any) -> bool:
    return "torch" in getattr(function, "__globals__", {}) or "torch" in str(getattr(function, "__module__", "torch"))


def _signature(function: Any) -> Parameters | None:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None  # built in: nothing is known of its parameters
    return {n: p for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _function_roles(parameters: Parameters | None) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The kind of call, and what each parameter is given."""
    if parameters is None:
        return "qkv", (("", "Q"), ("", "K"), ("", "V"), *((name, "mask") for name in MASKS[:2]))
    names = [name for name in parameters if not _option(name)]
    roles: list[tuple[str, str]] = []
    if names and names[0].lower() in FIRST:
        kind = "projections"
        given = {n: f"{'b' if re.search('^b|bias', n.lower()) else 'W'}_{role}" for n in names if (role := role_of(n))}
        needed = [n for n in names[1:] if parameters[n].default is inspect.Parameter.empty]
        if not set(needed) <= given.keys():
            given = dict(zip(names[1:], ("W_Q", "W_K", "W_V", "W_O"), strict=False))
        given = {names[0]: "X", **given}
    else:
        kind = "wide" if any(name in HEADS_OF_FUNCTIONS for name in parameters) else "qkv"
        given = {n: role for n in names if (role := role_of(n)) in ("Q", "K", "V")}
        if sorted(given.values()) != ["K", "Q", "V"]:
            given = dict(zip(names, "QKV", strict=False))
    for name, parameter in parameters.items():
        needed_here = parameter.default is inspect.Parameter.empty
        place = "" if parameter.kind is parameter.POSITIONAL_ONLY else name
        if name in given:
            roles.append((place, given[name]))
        else:
            roles += _options(name, needed_here)
    return kind, tuple(roles)


def _layer_roles(parameters: Parameters | None) -> tuple[tuple[str, str], ...]:
    """A layer's inputs are all x: queries, keys and values, or a context."""
    roles: list[tuple[str, str]] = []
    for number, (name, parameter) in enumerate((parameters or {}).items()):
        needed = parameter.default is inspect.Parameter.empty
        if needed and number and not _option(name) and role_of(name) is None and name not in CONTEXTS:
            raise HeadworkError(f"it asks for '{name}', and what that is to be is not known")
        if number == 0 or (needed and not _option(name)):
            roles.append(("" if parameter.kind is parameter.POSITIONAL_ONLY else name, "X"))
        else:
            roles += _options(name, needed)
    return tuple(roles)


def _option(name: str) -> str:
    """What a parameter is that is no array of numbers: the role, or nothing."""
    if name in HEADS_OF_FUNCTIONS:
        return "heads"
    if name in WIDTHS_OF_A_HEAD:
        return "d_k"
    if name in WIDTHS:
        return "d_model"
    if name in OFF or name == "scale":
        return name
    return "mask" if name in (*MASKS, *OF_KEYS) else "causal" if name in CAUSAL else ""


def _options(name: str, needed: bool) -> list[tuple[str, str]]:
    role = _option(name)
    if role == "mask":
        return [(name, role), (name, "needed")] if needed else [(name, role)]
    if role == "causal" or not role:
        return [(name, role)] if role else []
    return [(name, role)] if needed or role == "heads" or role in OFF else []
