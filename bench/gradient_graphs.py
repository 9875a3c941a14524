"""300 drawn layers, three losses: every gradient in closed form against torch's autograd in float64, to 1e-9.

    python -m bench.gradient_graphs [300] [seed]

Where a layer is small enough, every entry of every gradient is also compared with SymPy's derivative of the symbolic
layer, the drawn numbers put in, in closed form: equal, not near.
"""

import sys
import time
from collections import Counter
from fractions import Fraction
from typing import Any

import sympy
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.strategies import Drawn, problems
from tests.test_gradients import agrees_with_autograd

from headwork.numbers.certain import AnyNumber, Certain
from headwork.numbers.functions import power_of_e, quotient, square_root
from headwork.readings.algebra import as_sympy
from headwork.readings.exact import Hidden
from headwork.readings.symbols import symbols
from headwork.sheets.fields import read_problem
from headwork.sheets.ready import Ready

SMALL = 12  # scores in all heads


def main(number: int, first: int) -> None:
    done: Counter[str] = Counter()
    different: set[str] = set()
    start = time.process_time()

    @seed(first)
    @given(problems(), st.sampled_from(["sum", "half-squares", "given"]))
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def agree(drawn: Drawn, loss: str) -> None:
        agrees_with_autograd(drawn, loss=loss)
        different.add(repr((drawn.table, loss)))
        done.update(["graphs", f"with loss {loss}", *kinds(drawn.table)])
        done.update(closed_forms(drawn, compare=is_small(drawn)))

    agree()
    spent = time.process_time() - start
    print(f"{done['graphs']} graphs agree, {len(different)} of them different, in {spent:.0f} s of CPU")
    print("\n".join(f"{count:>8,}  {what}" for what, count in sorted(done.items())))


def kinds(table: dict[str, Any]) -> list[str]:
    heads, mask = table.get("heads", 1), table["mask"]
    found = {
        "with several heads": heads > 1,
        "with heads that share keys and values": table.get("kv_heads", 1) < heads,
        "with a mask": mask != "none",
        "with a causal mask": mask == "causal",
        "with biases": any(role.startswith("b_") for role in table["given"]),
        "with cross-attention": "context" in table["given"],
    }
    return [kind for kind, here in found.items() if here]


def is_small(drawn: Drawn) -> bool:
    given, mask = drawn.table["given"], drawn.problem.mask
    scores = drawn.table.get("heads", 1) * len(given["X"]) * len(given.get("context", given["X"]))
    blind = not isinstance(mask, str) and any(all(isinstance(x, Hidden) for x in row) for row in mask)
    return scores <= SMALL and not blind  # a row in which nothing may be read is 0/0 in symbols


def closed_forms(drawn: Drawn, compare: bool) -> Counter[str]:
    """How many entries of the gradients of L = Σ output have a closed form, and SymPy's derivative for its number."""
    ready = Ready(read_problem({**drawn.table, "part": [{"label": "a", "kind": "gradient", "loss": "sum"}]}, "Drawn"))
    truth = ready.truth(ready.problem.parts[0])
    wanted = {step: truth[gradient] for step, gradient in gradients_of(ready).items()}
    tally = Counter(
        "entries by certain digits" if isinstance(x, Certain) else "entries in closed form"
        for matrix in wanted.values()
        for row in matrix
        for x in row
    )
    if compare:
        tally["graphs compared with SymPy"] += 1
        for ours, theirs in derivatives(ready, wanted):
            assert ours == theirs, (ours, theirs)
            tally["entries equal to SymPy's derivative"] += 1
    return tally


def gradients_of(ready: Ready) -> dict[Any, Any]:
    keys = [key for key in ready.steps if (f"d_{key[0]}", key[1]) in ready.steps and ready.steps[key] in ready.handed]
    return {ready.steps[key]: ready.steps[f"d_{key[0]}", key[1]] for key in keys}


def derivatives(ready: Ready, wanted: dict[Any, Any]) -> Any:
    """Our entry and SymPy's, for every entry of every matrix that is learned or given."""
    others = ((step, matrix) for step, matrix in ready.handed.items() if step not in wanted)
    known = {step: tuple(tuple(map(number, row)) for row in matrix) for step, matrix in others}
    named = symbols(ready.last, known)
    loss = sympy.Add(*(x for row in named[ready.last] for x in row))
    values = {
        symbol: number(x)
        for step in wanted
        for symbols_row, row in zip(named[step], ready.handed[step], strict=True)
        for symbol, x in zip(symbols_row, row, strict=True)
    }
    for step, matrix in wanted.items():
        for symbols_row, row in zip(named[step], matrix, strict=True):
            for symbol, ours in zip(symbols_row, row, strict=True):
                yield ours, back(sympy.diff(loss, symbol).xreplace(values))


def number(entry: Any) -> Any:
    return -sympy.oo if isinstance(entry, Hidden) else as_sympy(entry)


def back(expression: Any) -> AnyNumber:
    """SymPy's expression as one of our numbers, operation by operation."""
    if expression.is_Rational:
        return Fraction(int(expression.p), int(expression.q))
    inputs = [back(part) for part in expression.args]
    if isinstance(expression, sympy.exp):
        return power_of_e(inputs[0])
    total: AnyNumber = inputs[0]
    if isinstance(expression, sympy.Pow):
        return raised(total, inputs[1])
    for each in inputs[1:]:
        total = total + each if isinstance(expression, sympy.Add) else total * each
    return total


def raised(base: AnyNumber, power: AnyNumber) -> AnyNumber:
    assert isinstance(power, Fraction), power
    base = square_root(base) if power.denominator == 2 else base
    total: AnyNumber = Fraction(1)
    for _ in range(abs(power.numerator)):
        total = total * base
    return quotient(Fraction(1), total) if power < 0 else total


if __name__ == "__main__":
    main(*(int(given) for given in [*sys.argv[1:], *["300", "1"][len(sys.argv) - 1 :]]))
