"""Mistakes on the way back, planted in drawn sheets: how many are named, and how often random answers are accused.

python bench/planting_gradients.py [2000] [seed]
"""

import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import count
from random import Random

import numpy as np
from planting import PLACES, Desk, random_wrong

from headwork.mistakes import on_the_way_back
from headwork.mistakes.make import Plan, new_sheet
from headwork.mistakes.rewriting import ENTERED
from headwork.mistakes.slips import ADVICE
from headwork.sheets.sheet import Part, Sheet

PLANS = (
    Plan("multi_head", 3, 2, 6, biases=True),
    Plan("multi_head", 3, 2, 6, mask="causal"),
    Plan("multi_head_blocks", 3, 2, 6, biases=True),
    Plan("single_head", 3, 1, 3),
)


def sheet_with_gradients(seed: int, number: int) -> Sheet:
    """A drawn sheet that asks for the way back alone, from a drawn d_output."""
    plan = PLANS[number % len(PLANS)]
    sheet = new_sheet(plan, seed, number)
    (problem,) = sheet.problems
    generator = Random(f"gradients {seed} {number}")
    entries = [Fraction(generator.choice((-2, -1, 1, 2))) for _ in range(plan.tokens * plan.d_model)]
    d = tuple(tuple(entries[i * plan.d_model :][: plan.d_model]) for i in range(plan.tokens))
    learned = tuple(dict.fromkeys(role for role, _ in problem.given if role != "X"))
    parts = (
        Part("a", kind="gradient", find=("head_output", "weights", "scores")),
        Part("b", kind="gradient", find=("Q", "K", "V")),
        Part("c", kind="gradient", find=(*learned, "X")),
    )
    return replace(sheet, problems=(replace(problem, given={**problem.given, ("d_output", None): d}, parts=parts),))


def main(cases: int, seed: int) -> None:
    tags = set(ENTERED[on_the_way_back.__name__])
    planted: Counter[str] = Counter()
    named: Counter[str] = Counter()
    random = accused = 0
    drawn = np.random.default_rng(seed)
    for number in count():
        if planted.total() >= cases:
            break
        desk = Desk(sheet_with_gradients(seed, number))
        for tag, graph in desk.diagnosis.single:
            if tag not in tags:
                continue
            for places in PLACES:
                marks = desk.mark(desk.with_graph(graph), places)
                wrong = [a for part in marks.parts for a in part.answers if a.verdict in ("wrong", "malformed")]
                if wrong:
                    planted[tag] += 1
                    named[tag] += any(len(a.tags) <= 2 and tag in a.tags for a in wrong)
        for key, matrix in desk.right().items():
            marks = desk.mark({key: random_wrong(matrix, drawn)[0]}, PLACES[0])
            answers = [a for part in marks.parts for a in part.answers if a.verdict == "wrong"]
            random += len(answers)
            accused += sum(any(tag not in ADVICE for tag in a.tags) for a in answers)
    for tag in planted:
        print(f"{tag:<28}{named[tag]:>6} of {planted[tag]:>5}")
    print(f"named {named.total() / planted.total():.2%} of {planted.total()}; random accused {accused} of {random}")


if __name__ == "__main__":
    main(*(int(given) for given in [*sys.argv[1:], *["2000", "5"][len(sys.argv) - 1 :]]))
