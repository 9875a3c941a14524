"""300 drawn layers: every gradient in closed form against torch's autograd in float64, to 1e-9.

python -m bench.gradient_graphs [300]
"""

import sys
import time

from hypothesis import HealthCheck, given, settings
from tests.strategies import Drawn, problems
from tests.test_gradients import agrees_with_autograd


def main(number: int) -> None:
    done = []

    @given(problems())
    @settings(max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def agree(drawn: Drawn) -> None:
        agrees_with_autograd(drawn)
        done.append(drawn)

    start = time.perf_counter()
    agree()
    print(f"{len(done)} graphs agree, in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
