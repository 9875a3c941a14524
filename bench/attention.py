"""The whole suite, kept for comparison across commits: python bench/attention.py results.json plot.svg"""

import sys
from pathlib import Path

from headwork.engine.bench import run

if __name__ == "__main__":
    places = [Path(name) for name in sys.argv[1:]]
    run(
        json_path=next((place for place in places if place.suffix == ".json"), None),
        plot=next((place for place in places if place.suffix in (".svg", ".png")), None),
    )
