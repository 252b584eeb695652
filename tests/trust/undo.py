"""The promise of --undo, tried: dl-apply is killed at system calls, and all is as it was.

    python tests/trust/undo.py [KILLS] [SEED]

Needs root and Docker: it starts an engine of its own. Prints what was tried, and fails where a
container was not as before.
"""

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.daemon import Daemon
from helpers.forks import import_all
from helpers.undo_cases import Tally, UndoCases


def try_cases(kills: int, seed: int) -> Tally:
    """Try cases until dl-apply has been killed so often, or ten containers were not as before."""
    import_all()
    with Daemon() as daemon, UndoCases(daemon, seed) as cases:
        while cases.tally.kills.total() < kills and len(cases.tally.broken) < 10:
            cases.run()
        return cases.tally


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    begun = time.monotonic()
    tally = try_cases(kills, seed)
    print(
        f"{tally.kills.total()} kills in {tally.cases} cases, seed {seed}, "
        f"{time.monotonic() - begun:.0f} s; {tally.ended} runs ended by themselves"
    )
    print("killed at", ", ".join(f"{name} {count}" for name, count in tally.kills.most_common()))
    print("meanwhile", ", ".join(f"{name} {count}" for name, count in tally.events.most_common()))
    sys.exit("\n".join(tally.broken) or 0)


if __name__ == "__main__":
    main()
