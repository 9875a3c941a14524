"""What a step is called on a page: roles are structure, names are notation, and a sheet chooses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from headwork import maths as m
from headwork.graph import Head, Step
from headwork.ops import Transpose

# What stands around attention, twice: the residual, its layer norm, the feed-forward layer's two products.
AROUND: Mapping[str, str] = {
    "residual": "R",
    "mean": "μ",
    "from_mean": "C",
    "squares": "squares",
    "variance": "v",
    "with_eps": "v′",
    "deviation": "σ",
    "standard": "S",
    "stretched": "T",
    "normed": "N",
    "gamma": "γ",
    "beta": "β",
    "W": "W",
    "b": "b",
    "product": "F′",
    "fed": "F",
}
# Roles that go by their own name unless a sheet says otherwise.
_PLAIN_ROLES = (
    *("X", "X_past", "W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O", "mask", "bias", "distance"),
    *("cos", "sin", "cos_Q", "sin_Q", "Q", "K", "V", "K_past", "V_past", "K_new", "V_new"),
    *("scores", "scaled", "capped", "biased", "masked", "maxima", "shifted", "exponentials", "sums", "drop"),
    *("correction", "running", "weights", "joined", "output", "target", "tanh", "lost", "weighted", "centred"),
)
# Every role, with the name it goes by.
ROLES: Mapping[str, str] = {
    **{role: role for role in _PLAIN_ROLES},
    "positions": "P",
    "positions_past": "P_past",
    "positions_new": "P_new",
    "X_positioned": "X_P",
    "X_past_positioned": "X_past,P",
    "context": "C",
    "Q_before_bias": "Q′",
    "K_before_bias": "K′",
    "V_before_bias": "V′",
    "output_before_bias": "output′",
    "K_past_before_bias": "K′_past",
    "V_past_before_bias": "V′_past",
    "Q_rotated": "Q_rot",
    "K_rotated": "K_rot",
    "K_transposed": "Kᵀ",
    "block_sums": "blocksums",
    "kept_sums": "keptsums",
    "block_output": "block",
    "kept_running": "kept",
    "head_output": "head",
    **{f"{role}_{i}": f"{name}_{i}" for i in (1, 2) for role, name in AROUND.items()},
    **{f"{role}_past_1": f"{name}_past,1" for role, name in AROUND.items()},  # before the keys of earlier tokens
    "active": "A",
    "tanh_squared": "tanhsquared",
    "row_term": "D",
}
# What may stand before a role, and before its name: a gradient, a step of learning, what it leads to.
MADE_OF_ROLES: Mapping[str, str] = {"d_": "d", "change_": "Δ", "next_": "new"}
GRADIENTS: Mapping[str, str] = {"dQ": "d", "∂L/∂Q": "∂", "Q\u0304": "bar"}  # how a sheet may write them


def is_vector(role: str) -> bool:
    """Whether it is a single row that a sheet writes flat: a bias or a gain, or the gradient of one."""
    return role.removeprefix("d_").startswith(("b_", "beta_", "gamma_"))


def is_role(role: str) -> bool:
    """Whether a step may go by this role: Q, d_Q, d_X_from_Q, next_W_Q."""
    bare = next((role.removeprefix(before) for before in MADE_OF_ROLES if role.startswith(before)), None)
    return role in ROLES or (bare is not None and set(bare.split("_from_")) <= ROLES.keys())


@dataclass(frozen=True)
class Name:
    """A name with its parts kept apart, so that every format can set it in its own way."""

    base: str
    subscripts: tuple[str, ...] = ()
    transposed: bool = False
    place: tuple[int, ...] = ()  # a row, or a row and a column: scores_1[3,1]
    mark: str = ""  # of a gradient or a change: "d", "∂", "bar" or "Δ"
    role: str = field(default="", compare=False)  # of what it names, where that is a step

    def __str__(self) -> str:
        below = "_" + ",".join(self.subscripts) if self.subscripts else ""
        place = f"[{','.join(map(str, self.place))}]" if self.place else ""
        named = f"{self.base}{below}"
        if self.mark == "∂":
            named = f"(∂L/∂{named})" if self.transposed else f"∂L/∂{named}"
        elif self.mark == "bar":
            named = f"{self.base[0]}\u0304{self.base[1:]}{below}"
        else:
            named = f"{self.mark}{named}"
        return f"{named}{'ᵀ' if self.transposed else ''}{place}"

    @property
    def maths(self) -> m.Maths:
        """The name as a formula has it."""
        return m.Named(self._bare, self.role) if self.role else self._bare

    @property
    def _bare(self) -> m.Maths:
        named: m.Maths = m.Barred(m.Letter(self.base)) if self.mark == "bar" else m.Letter(self.base)
        if self.subscripts:
            below = (m.Number(s) if s.isdecimal() else m.Letter(s) for s in self.subscripts)
            named = m.Below(named, m.between(below, ","))
        if self.mark == "∂":
            ratio = m.Ratio(m.row(m.Letter("∂"), m.Letter("L")), m.row(m.Letter("∂"), named))
            named = m.bracketed(ratio) if self.transposed else ratio
        elif self.mark in ("d", "Δ"):
            named = m.row(m.Letter(self.mark), named)
        if self.transposed:
            named = m.Above(named, m.TRANSPOSED)
        if self.place:
            return m.row(named, m.Sign("["), m.between((m.Number(str(i)) for i in self.place), ","), m.Sign("]"))
        return named

    def with_subscripts(self, *more: object) -> Name:
        # Field by field: `replace` takes four times as long, and every entry in symbols has a name.
        below = (*self.subscripts, *map(str, more))
        return Name(self.base, below, self.transposed, self.place, self.mark, self.role)

    def flipped(self) -> Name:
        return replace(self, transposed=not self.transposed)

    @staticmethod
    @lru_cache(maxsize=1024)
    def read(text: str, role: str = "") -> Name:
        """What a sheet or a caller has written: W_Q, Z_0, d_k, Kᵀ."""
        upright = text.removesuffix("ᵀ")
        base, _, below = upright.partition("_")
        return Name(base, tuple(below.split(",")) if below else (), upright != text, role=role)


@dataclass(frozen=True)
class Notation:
    """The names of one page. Keys are roles, "Q[i]" for a row and "scores[i,j]" for an entry."""

    names: Mapping[str, str] = field(default_factory=dict)
    first_index: int = 1

    def of(self, step: Step) -> Name:
        """The name of a whole step: Q_1, W_Q,1, Kᵀ."""
        if isinstance(step.op, Transpose):
            return self.of(step.inputs[0]).flipped()
        return self.of_role(step.role, step.head)

    def of_role(self, role: str, head: Head = None) -> Name:
        if role not in self.names:
            for before, mark in MADE_OF_ROLES.items():
                if role.startswith(before):
                    made = replace(self._made_of(role.removeprefix(before), mark), role=role)
                    return self._with_head(made, head)
        return self._with_head(Name.read(self.names.get(role, ROLES.get(role, role)), role), head)

    def _made_of(self, role: str, mark: str) -> Name:
        """dX, the part of dX that comes from Q as dX_Q, ΔW_Q, W_Q,new."""
        bare, _, via = role.partition("_from_")
        name = self.of_role(bare)
        if via:
            name = name.with_subscripts(self.of_role(via))
        if mark == "new":
            return name.with_subscripts(mark)
        return replace(name, mark=GRADIENTS[self.names.get("gradient", "dQ")] if mark == "d" else mark)

    def row(self, step: Step, row: int) -> Name:
        """The name of one row: q_2 where the page has a name for rows, else Q[2]."""
        if (name := self.names.get(f"{step.role}[i]")) is not None:
            return self._with_head(Name.read(name, step.role), step.head).with_subscripts(row + self.first_index)
        return replace(self.of(step), place=(row + self.first_index,))

    def entry(self, step: Step, row: int, column: int) -> Name:
        """The name of one entry: z_3,1 where the page has a name for entries, else scores_1[3,1]."""
        place = (row + self.first_index, column + self.first_index)
        if (name := self.names.get(f"{step.role}[i,j]")) is not None:
            return self._with_head(Name.read(name, step.role), step.head).with_subscripts(*place)
        return replace(self.of(step), place=place)

    def _with_head(self, name: Name, head: Head) -> Name:
        if head is None:
            return name
        return name.with_subscripts(head if isinstance(head, str) else head + self.first_index)


PLAIN = Notation()
