"""Plots for those who would rather look than read: what √D does, and what grows with the number of tokens."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from headwork.errors import HeadworkError
from headwork.extras import needs
from headwork.formulas import formula_named

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
TOKENS = tuple(2**k for k in range(4, 18))
ENDINGS = (".svg", ".png", ".pdf")
DRAWS = 4000  # rows of scores that a prediction averages over


def plot_moments(path: str | Path, mean: float = 0.0, variance: float = 1.0, *, seed: int = 0) -> None:
    """The variance of q·k, the softmax's largest weight and the size of its gradient against D.

    Dots are drawn queries and keys. Lines are predictions: the variance in closed form, the other two for scores
    that are normal with just that variance.
    """
    from headwork.why_scale import look, sample

    if variance <= 0:
        raise HeadworkError("with variance 0 every entry is the same and there is nothing to plot; give more than 0")
    figure, axes = _figure(path, 3)
    drawn = sample(mean, variance, seed=seed, widths=WIDTHS)
    spread, largest, gradient = axes
    spread.loglog(WIDTHS, [s.predicted for s in drawn], "-", color="C0", label="predicted")
    spread.loglog(WIDTHS, [s.sampled for s in drawn], "o", color="C0", label="sampled")
    spread.loglog(WIDTHS, [1.0] * len(WIDTHS), "-", color="C1", label="predicted, with √D")
    scaled = [s.sampled / s.predicted for s in drawn]
    spread.loglog(WIDTHS, scaled, "o", color="C1", label="sampled, with √D")
    generator = Random(seed + 1)
    normal = [[generator.gauss() for _ in range(16)] for _ in range(DRAWS)]
    scaled_look = look(normal)
    predicted = [(look([[x * s.predicted**0.5 for x in row] for row in normal]), scaled_look) for s in drawn]
    for axis, name, at in ((largest, "largest", 0), (gradient, "gradient", 1)):
        for i, label in ((0, "without √D"), (1, "with √D")):
            axis.semilogx(WIDTHS, [p[i][at] for p in predicted], "-", color=f"C{i}", label=f"predicted, {label}")
            values = [getattr(s, name)[i] for s in drawn]
            axis.semilogx(WIDTHS, values, "o", color=f"C{i}", label=f"sampled, {label}")
        axis.set_ylim(bottom=0)
    titles = ("variance of q·k", "largest of 16 weights", "size of the softmax's gradient")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel="D")
    spread.legend(fontsize=8)
    largest.legend(fontsize=8)
    _save(figure, path)


def plot_counts(path: str | Path, formula: str = "multi_head", **sizes: Any) -> None:
    """Operations and bytes of every step against the number of tokens, and where n² overtakes what grows with n."""
    from headwork.configure import counts

    sizes = {"d_model": 512, "heads": 8, **_numbers(sizes)} if formula_named(formula).several else _numbers(sizes)
    line = counts(formula, **{**sizes, "tokens": "n"})
    operations, moved = {}, {}
    for equation, count, times in line.rows:
        each = count.times(times)
        operations[str(equation.name)] = each.operations(line.convention)
        moved[str(equation.name)] = each.bytes
    _check_numbers(moved.values())
    figure, axes = _figure(path, 2)
    for axis, costs, title in ((axes[0], operations, "operations"), (axes[1], moved, "bytes")):
        _costs(axis, {name: cost for name, cost in costs.items() if cost != 0}, title)
    numbers = {k: v for k, v in sizes.items() if k != "item_bytes" and type(v) is int}
    described = ", ".join(f"{name} = {size}" for name, size in numbers.items())
    figure.suptitle(f"{formula}, all heads together" + (f": {described}" if described else ""), fontsize=11)
    _save(figure, path)


def _numbers(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes without the tokens, which run along the axis; every other one must be a number."""
    kept = {k: v for k, v in sizes.items() if k != "tokens" and v not in ("d", None)}
    for name, size in kept.items():
        if name != "convention" and not isinstance(size, int):
            raise HeadworkError(
                f"a plot needs numbers: {name} = {size} is a symbol; give --{name.replace('_', '-')} 64"
            )
    return kept


def _check_numbers(costs: Iterable[Any]) -> None:
    """A size that was not given is a symbol, and no point of a plot."""
    symbols = {symbol for cost in costs for symbol in getattr(cost, "free_symbols", ())}  # a plain number has none
    left = sorted({str(symbol) for symbol in symbols} - {"n"})
    if left:
        options = " ".join(f"--{'d-model' if name == 'd' else name.replace('_', '-')} 64" for name in left)
        raise HeadworkError(f"a plot needs numbers for {' and '.join(left)}: give {options}")


def _costs(axis: Any, costs: Mapping[str, Any], title: str) -> None:
    import sympy

    n = sympy.Symbol("n", positive=True, integer=True)
    straight, squared = sympy.Integer(0), sympy.Integer(0)
    for cost, names in _alike(costs).items():
        degree = int(sympy.degree(cost, n))
        square = degree > 1
        total = cost * len(names)
        straight, squared = (straight, squared + total) if square else (straight + total, squared)
        label = f"{', '.join(names)}{' each' if len(names) > 1 else ''} ({('fixed', 'n', 'n²')[degree]})"
        axis.loglog(TOKENS, _along(cost, n), "-" if square else "--", label=label)
    axis.loglog(TOKENS, _along(straight + squared, n), color="black", linewidth=2, label="all steps")
    crossing = _crossing(straight, squared, n)
    if crossing is not None:
        axis.axvline(crossing, color="grey", linestyle=":")
        axis.annotate(f" n² overtakes\n at n = {crossing:,}", (crossing, axis.get_ylim()[0] * 2), fontsize=8)
    axis.set(title=title, xlabel="tokens n")
    axis.legend(fontsize=7)


def _alike(costs: Mapping[str, Any]) -> dict[Any, list[str]]:
    """Steps of equal cost share a line."""
    import sympy

    groups: dict[Any, list[str]] = {}
    for name, cost in costs.items():
        groups.setdefault(sympy.expand(cost), []).append(name)
    return groups


def _along(cost: Any, n: Any) -> list[float]:
    return [float(cost.subs(n, tokens)) for tokens in TOKENS]


def _crossing(straight: Any, squared: Any, n: Any) -> int | None:
    """The first number of tokens at which the steps with n² cost more than all the others."""
    if straight == 0 or squared == 0 or (squared - straight).subs(n, TOKENS[-1]) <= 0:
        return None
    low, high = 0, int(TOKENS[-1])
    while high - low > 1:
        middle = (low + high) // 2
        over = bool((squared - straight).subs(n, middle) > 0)
        low, high = (low, middle) if over else (middle, high)
    return high


def _figure(path: str | Path, panels: int) -> tuple[Any, Sequence[Any]]:
    if Path(path).suffix.lower() not in ENDINGS:
        raise HeadworkError(f"{path}: a plot is written as {', '.join(ENDINGS)}")
    needs("matplotlib")
    from matplotlib.figure import Figure  # never pyplot: no window, no state

    figure = Figure(figsize=(4.4 * panels, 3.8), layout="constrained")
    axes = figure.subplots(1, panels)
    for axis in axes:
        axis.grid(visible=True, which="major", alpha=0.3)
    return figure, axes


def _save(figure: Any, path: str | Path) -> None:
    """Without the date, so that the same plot is the same file."""
    try:
        ending = Path(path).suffix.lower()
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
        figure.savefig(path, dpi=150, metadata=dated)
    except OSError as error:
        raise HeadworkError(f"cannot write {path}: {error.strerror}; choose another --plot") from None
