"""Mistakes around attention: residuals, layer norms and the feed-forward layer."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial

from headwork.graph import Last, Step, in_order
from headwork.mistakes.example import compare as compare
from headwork.mistakes.operations import shapes
from headwork.mistakes.rewriting import Edit, all_or_each, mistake_with_ways, relabelled
from headwork.ops import Add, Divide, Multiply, Transpose

_X = {"X": [[1, 2, 6]], "W_Q": [[1], [0], [0]], "W_K": [[1], [0], [0]]}
_EYE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
_ZERO = [[0, 0, 0]] * 3


def _both_or_one(last: Last, role: str) -> list[list[str]]:
    """The names of all steps of such a role, and, where there are two, role_1 and role_2, of either."""
    return all_or_each(sorted({step.role for step in in_order(last) if step.role.rpartition("_")[0] == role}))


def _in_both_or_one(last: Last, role: str, edit: Edit) -> Iterable[Edit]:
    return (partial(_at, roles, edit) for roles in _both_or_one(last, role))


def _at(roles: list[str], edit: Edit, step: Step) -> Step | None:
    return edit(step) if step.role in roles else None


def _input(position: int) -> Edit:
    """The step left out: what it reads stands for it; not where another mistake has done so."""
    return lambda step: relabelled(step.inputs[position], step) if len(step.inputs) > position else None


# Residuals.


@mistake_with_ways("forgot-residual", "The residual looks left out: what the layer made of X is added to X.")
def forgot_residual(last: Last) -> Iterable[Edit]:
    """attention(X) instead of X + attention(X).

    >>> compare("forgot-residual", "residual_1", "single_head", around="residual", W_V=_EYE, **_X)
    right [[2, 4, 12]], mistaken [[1, 2, 6]]
    """
    return _in_both_or_one(last, "residual", _input(1))


@mistake_with_ways(
    "residual-from-normed", "The residual looks taken from the norm: before a layer, X itself goes around it."
)
def residual_from_normed(last: Last) -> Iterable[Edit]:
    """norm(X) + attention(norm(X)) instead of X + attention(norm(X)).

    >>> compare("residual-from-normed", "residual_1", "single_head", around="pre-norm", W_V=_ZERO, **_X)
    right [[1, 2, 6]], mistaken [[-0.9258, -0.4629, 1.389]]
    """
    return map(_around_from_normed, _both_or_one(last, "residual"))


def _around_from_normed(roles: list[str]) -> Edit:
    normed: dict[str, Step] = {}  # those that came before

    def edit(step: Step) -> Step | None:
        if step.role.startswith("normed_"):
            normed[f"residual_{step.role[-1]}"] = step
        elif step.role in roles and step.role in normed and len(step.inputs) == 2:
            return Step(Add(), (normed[step.role], step.inputs[1]), step.role, step.head)
        return None

    return edit


# Where the norm stands.


@mistake_with_ways("forgot-norm", "The layer norm looks left out: every row less its mean, over its deviation.")
def forgot_norm(last: Last) -> Iterable[Edit]:
    """X + attention(X) instead of norm(X + attention(X)).

    >>> compare("forgot-norm", "normed_1", "single_head", around="post-norm", W_V=_ZERO, **_X)
    right [[-0.9258, -0.4629, 1.389]], mistaken [[1, 2, 6]]
    """

    def edit(step: Step) -> Step | None:
        before = _normed(step)
        return None if before is None else relabelled(before, step)

    return _in_both_or_one(last, "normed", edit)


@mistake_with_ways("norm-before-residual", "The norm looks taken before the residual was added: add X first.")
def norm_before_residual(last: Last) -> Iterable[Edit]:
    """X + norm(attention(X)) instead of norm(X + attention(X)).

    >>> compare("norm-before-residual", "normed_1", "single_head", around="post-norm", W_V=_EYE, **_X)
    right [[-0.9258, -0.4629, 1.389]], mistaken [[0.07418, 1.537, 7.389]]
    """
    return map(_after_the_norm, _pairs_after(last))


def _pairs_after(last: Last) -> list[list[str]]:
    """The numbers of the norms that a residual goes into: all of them, and each."""
    norms = {s.role[-1]: s for s in in_order(last) if s.role.startswith("normed_")}
    read = {number: _normed(step) for number, step in norms.items()}
    return all_or_each([number for number, step in read.items() if step and step.role == f"residual_{number}"])


def _after_the_norm(numbers: list[str]) -> Edit:
    around: dict[str, Step] = {}  # what each residual added

    def edit(step: Step) -> Step | None:
        role, _, number = step.role.rpartition("_")
        if number not in numbers:
            return None
        if role in ("mean", "from_mean") and len(step.inputs[0].inputs) == 2:
            around[number], inside = step.inputs[0].inputs
            return Step(step.op, (inside, *step.inputs[1:]), step.role, step.head)
        if role == "normed" and number in around:
            alone = Step(step.op, step.inputs, f"{step.role}_alone", step.head)
            return Step(Add(), (around[number], alone), step.role, step.head)
        return None

    return edit


def _normed(step: Step) -> Step | None:
    """What a norm was taken of, the matrix that its mean is taken from; None where another mistake has left it out."""
    while step.inputs and not step.role.startswith("from_mean"):
        step = step.inputs[0]
    return step.inputs[0] if step.inputs else None


# Inside the norm.


def _inside(tag: str, advice: str, role: str) -> Callable[[Edit], Edit]:
    """Enter an edit of one step of a layer norm."""

    def enter(edit: Edit) -> Edit:
        def ways(last: Last) -> Iterable[Edit]:
            return _in_both_or_one(last, role, edit)

        ways.__module__ = edit.__module__
        mistake_with_ways(tag, advice)(ways)
        return edit

    return enter


@mistake_with_ways("norm-down-columns", "The norm looks taken down the columns: every token's row is normed by itself.")
def norm_down_columns(last: Last) -> Iterable[Edit]:
    """Every column less its mean, over its deviation, as a batch norm does.

    >>> two = {**_X, "X": [[1, 2, 6], [3, 2, 0]]}
    >>> compare("norm-down-columns", "normed_1", "single_head", around="post-norm", W_V=_ZERO, **two)
    right [[-0.9258, -0.4629, 1.389], [1.069, 0.2673, -1.336]], mistaken [[-1, 0, 1], [1, 0, -1]]
    """
    numbers = sorted({s.role[-1] for s in in_order(last) if s.role.startswith("from_mean_")})
    return (partial(_down_columns, chosen) for chosen in all_or_each(numbers))


def _down_columns(numbers: list[str], step: Step) -> Step | None:
    role, _, number = step.role.rpartition("_")
    if role not in ("mean", "variance", "with_eps") or number not in numbers:
        return None
    first, *others = step.inputs
    if role != "with_eps" and shapes(first)[first][-2] == 1:  # of one token nothing would be left
        return None
    if role == "with_eps" and not isinstance(first.op, Transpose):
        return None
    columns = Step(Transpose(), (first,), f"{step.role}_columns", step.head)
    down = Step(step.op, (columns, *others), f"{step.role}_down", step.head)
    return Step(Transpose(), (down,), step.role, step.head)


@_inside("mean-kept", "The mean looks left in: a layer norm takes it from every entry of its row first.", "from_mean")
def mean_kept(step: Step) -> Step | None:
    """x/√(mean of x²) instead of (x − mean)/√variance.

    >>> compare("mean-kept", "variance_1", "single_head", around="post-norm", W_V=_ZERO, **_X)
    right [[4.667]], mistaken [[13.67]]
    """
    return relabelled(step.inputs[0], step)


@_inside(
    "variance-over-n-1", "The variance looks divided by n − 1: a layer norm divides by n, all of the row.", "variance"
)
def variance_over_n_1(step: Step) -> Step | None:
    """Σ(x − mean)²/(n − 1).

    >>> compare("variance-over-n-1", "variance_1", "single_head", around="post-norm", W_V=_ZERO, **_X)
    right [[4.667]], mistaken [[7]]
    """
    (squares,) = step.inputs
    n = shapes(squares)[squares][-1]
    if not isinstance(n, int) or n < 2:
        return None
    mean = Step(step.op, step.inputs, f"mean_of_{step.role}", step.head)
    return Step(Divide(Fraction(n - 1, n)), (mean,), step.role, step.head)


@_inside("variance-without-root", "The rows look divided by their variance: divide by its square root.", "deviation")
def variance_without_root(step: Step) -> Step | None:
    """(x − mean)/variance.

    >>> compare("variance-without-root", "normed_1", "single_head", around="post-norm", W_V=_ZERO, **_X)
    right [[-0.9258, -0.4629, 1.389]], mistaken [[-0.4286, -0.2143, 0.6429]]
    """
    return relabelled(step.inputs[0], step)


@_inside("forgot-eps", "The ε looks left out: it is added to the variance before the root.", "with_eps")
def forgot_eps(step: Step) -> Step | None:
    """√variance instead of √(variance + ε).

    >>> compare("forgot-eps", "deviation_1", "single_head", around="post-norm", eps=1, W_V=_ZERO, **_X)
    right [[2.38]], mistaken [[2.16]]
    """
    return relabelled(step.inputs[0], step)


@_inside("eps-outside-root", "The ε looks added after the root: it is added to the variance.", "deviation")
def eps_outside_root(step: Step) -> Step | None:
    """√variance + ε instead of √(variance + ε).

    >>> compare("eps-outside-root", "deviation_1", "single_head", around="post-norm", eps=1, W_V=_ZERO, **_X)
    right [[2.38]], mistaken [[3.16]]
    """
    (inside,) = step.inputs
    if not inside.role.startswith("with_eps") or len(inside.inputs) != 2:
        return None
    variance, eps = inside.inputs
    return Step(Add(), (Step(step.op, (variance,), f"root_of_{inside.role}"), eps), step.role, step.head)


@mistake_with_ways("forgot-gain", "The gain γ looks left out: what was normed is multiplied by it, column by column.")
def forgot_gain(last: Last) -> Iterable[Edit]:
    """x without γ∘x.

    >>> compare("forgot-gain", "normed_1", "single_head", around="post-norm", gamma_1=[2, 2, 2], W_V=_ZERO, **_X)
    right [[-1.852, -0.9258, 2.777]], mistaken [[-0.9258, -0.4629, 1.389]]
    """
    return _without(last, "gamma")


@mistake_with_ways("forgot-shift", "The β of a layer norm looks left out: it is added last.")
def forgot_shift(last: Last) -> Iterable[Edit]:
    """γ∘x without + β.

    >>> compare("forgot-shift", "normed_1", "single_head", around="post-norm", beta_1=[1, 1, 1], W_V=_ZERO, **_X)
    right [[0.07418, 0.5371, 2.389]], mistaken [[-0.9258, -0.4629, 1.389]]
    """
    return _without(last, "beta")


def _without(last: Last, learned: str) -> Iterable[Edit]:
    """γ or β left out of both norms, or of either."""
    return (partial(_left_out, roles) for roles in _both_or_one(last, learned))


def _left_out(roles: list[str], step: Step) -> Step | None:
    reads = isinstance(step.op, Add | Multiply) and len(step.inputs) == 2 and step.inputs[1].role in roles
    return relabelled(step.inputs[0], step) if reads else None


# The feed-forward layer.


@mistake_with_ways("forgot-relu", "The ReLU looks left out: what is negative becomes 0 before W_2.")
def forgot_relu(last: Last) -> Iterable[Edit]:
    """X·W_1·W_2 instead of max(X·W_1, 0)·W_2.

    >>> fed = dict(around="residual", W_1=[[1], [-1], [0]], W_2=[[1, 0, 0]], W_V=_ZERO)
    >>> compare("forgot-relu", "active", "single_head", **fed, **_X)
    right [[0]], mistaken [[-1]]
    """
    yield lambda step: relabelled(step.inputs[0], step) if step.role == "active" else None
