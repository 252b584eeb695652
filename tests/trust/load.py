"""The pipe under load and over time: `make load`.

    python tests/trust/load.py [SECONDS] [CONTAINERS] [SEED]

Needs root and Docker: it starts an engine of its own. Containers (200) start, end, are killed and
removed at random while dl-probe | dl-plan | dl-apply takes a sample a second, for so long (1800 s);
the engine restarts in the middle. Prints what was held, and fails where memory, descriptors or
threads grow, an end of a container was missed, seconds had no sample, or a container was touched
that is not to be touched.
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.held_load import hold


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1800.0
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    load = hold(seconds, most, seed)
    print(f"{seconds:.0f} s, seed {seed}:", *load.figures, sep="\n")
    sys.exit("\n".join(load.broken) or 0)


if __name__ == "__main__":
    main()
