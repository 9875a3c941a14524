"""300 drawn layers, three losses: every gradient in closed form against torch's autograd in float64, to 1e-9.

python -m bench.gradient_graphs [300]
"""

import sys
import time
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.strategies import Drawn, problems
from tests.test_gradients import agrees_with_autograd


def main(number: int) -> None:
    done: list[str] = []

    @given(problems(), st.sampled_from(["sum", "half-squares", "given"]))
    @settings(max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def agree(drawn: Drawn, loss: str) -> None:
        agrees_with_autograd(drawn, loss=loss)
        done.append(loss)

    start = time.perf_counter()
    agree()
    losses = ", ".join(f"{number} with loss {loss}" for loss, number in Counter(done).items())
    print(f"{len(done)} graphs agree ({losses}), in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
