"""How well learning curves are predicted, against the last slope and the last value.

    DLTOOLS_DATA=DIR python tests/bench/curves.py

On the shipped recording, and on the logs and curves under DIR/logs where it is given. Prints the
medians; tests/plan/signals/test_real_curves.py says what is measured.
"""

import statistics
import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose plan.py is another

from plan.signals.test_real_curves import errors  # noqa: E402

from dltools.plan.signals import curves  # noqa: E402


def main() -> None:
    many, predictions, found = errors()
    print(f"{many} curves, {predictions} predictions; median errors: time to target, last value")
    for kind, pairs in found.items():
        time_, value = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"  {kind:6s} {time_:7.1%} {value:7.1%}")
    works = [float(i) for i in range(128)]
    values = [1 / (1 + i) for i in range(128)]
    begun = time.perf_counter()
    for _ in range(1000):
        curves.fit(works, values)
    print(f"  a fit takes {(time.perf_counter() - begun) * 1e3:.0f} us")


if __name__ == "__main__":
    main()
