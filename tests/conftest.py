"""For every test: how fast the machine is today is no property of the code.

Where everything must be there, as in CI, drawn cases are the same every time, so that a change is judged by what it
changes; everywhere else each run draws new ones.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="HEADWORK_REQUIRE_ALL" in os.environ,
)
settings.load_profile("untimed")
