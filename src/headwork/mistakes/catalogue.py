"""The catalogue of mistakes. Each is a rewrite of the graph with a stable tag and a line of advice.

The same catalogue marks a student's matrix and inspects a function: which rewrite predicts these numbers? Every mistake
has an example that is run as a test; `compare` puts the right matrix beside the mistaken one.
"""

from collections.abc import Mapping

from headwork.mistakes import around_attention, around_the_heads, on_the_way_back, with_positions, within_a_head
from headwork.mistakes.rewriting import ENTERED, Mistake

SUBJECTS = (within_a_head, around_the_heads, with_positions, around_attention, on_the_way_back)
CATALOGUE: Mapping[str, Mistake] = {
    tag: mistake for subject in SUBJECTS for tag, mistake in ENTERED[subject.__name__].items()
}
