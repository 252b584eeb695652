"""What everybody on random hosts does under each policy, against Docker alone: the worst, the least
five in a hundred, and the median.

    python tests/bench/strangers.py [--hosts 500] [--first 0] [--arms flowcon,fair:rotate,...]

An arm is a policy, and a realisation behind a colon; without one dl-plan chooses. By default all
policies with all realisations run. `slowed` is the median of the trainings that others slow under
Docker alone, `late` counts those that end later than who waits as long as it may
(dltools-modes(7)), `less` the others that do less than 0.9; the worst of these are named.
`hosts` compares the mean completion times of the hosts on which others slow some.
Nothing is asserted; tests/sim/test_strangers.py keeps the worst cases.
"""

import argparse
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.gauntlet import Lot, lots, random_host, seconds_alone, simulate

from dltools.plan.realisation.options import Mode

POLICIES = ("flowcon", "fair", "srtf", "las", "slaq", "tradl", "dqoes", "specon")
MODES = (None, Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE, Mode.QUOTA)
LEAST = 0.9
Arm = tuple[str, Mode | None]


def run(task: tuple[int, list[Arm]]) -> dict[Arm, list[Lot]]:
    seed, arms = task
    workload = random_host(seed)
    under_docker, alone = simulate(workload, "noop", None), seconds_alone(workload)
    return {arm: lots(workload, simulate(workload, *arm), under_docker, alone) for arm in arms}


def title(arm: Arm) -> str:
    return f"{arm[0]}:{arm[1].value}" if arm[1] else arm[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--arms", default="")
    options = parser.parse_args()
    arms: list[Arm] = [(policy, mode) for policy in POLICIES for mode in MODES]
    if options.arms:
        split = [text.partition(":") for text in options.arms.split(",")]
        arms = [(policy, Mode(mode) if mode else None) for policy, _, mode in split]
    seeds = range(options.first, options.first + options.hosts)
    begun = time.monotonic()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(run, [(seed, arms) for seed in seeds]))
    print(f"{options.hosts} hosts, {len(arms)} arms, {time.monotonic() - begun:.0f} s")
    print(
        f"{'':17}trainings: {'worst':>6} {'5 %':>6} {'median':>6} {'slowed':>6} {'late':>5}"
        f"   others: {'worst':>6} {'5 %':>6} {'less':>5}"
        f"   hosts: {'worst':>6} {'5 %':>6} {'median':>6}"
    )
    for arm in arms:
        every = [
            (seed, lot)
            for seed, by_arm in zip(seeds, found, strict=True)
            for lot in by_arm[arm]
            if arm[0] != "dqoes" or not lot.name.startswith("server")
        ]
        _print(arm, every)


def _print(arm: Arm, every: list[tuple[int, Lot]]) -> None:
    ours = sorted(lot.ratio for _, lot in every if lot.is_training)
    others = sorted(lot.ratio for _, lot in every if not lot.is_training)
    late = [
        (seed, lot) for seed, lot in every if lot.is_training and lot.ratio < min(LEAST, lot.bound)
    ]
    slowed = statistics.median(lot.ratio for _, lot in every if lot.is_slowed)
    less = [(seed, lot) for seed, lot in every if not lot.is_training and lot.ratio < LEAST]
    hosts = _by_host(every)
    print(
        f"{title(arm):17}           {ours[0]:6.2f} {ours[len(ours) // 20]:6.2f} "
        f"{statistics.median(ours):6.2f} {slowed:6.2f} {len(late):5}           {others[0]:6.2f} "
        f"{others[len(others) // 20]:6.2f} {len(less):5}          {hosts[0]:6.2f} "
        f"{hosts[len(hosts) // 20]:6.2f} {statistics.median(hosts):6.2f}"
    )
    for seed, lot in sorted(late + less, key=lambda one: one[1].ratio)[:5]:
        print(
            f"    seed {seed}: {lot.name} {lot.ratio:.2f}"
            + (f", promised {lot.bound:.2f}" if lot.is_training else "")
        )


def _by_host(every: list[tuple[int, Lot]]) -> list[float]:
    """Return, sorted, the mean completion time of trainings under Docker alone over that under the
    arm, of each host on which others slow some."""
    found = []
    for seed in {seed for seed, lot in every if lot.is_slowed}:
        mine, docker = zip(
            *(lot.completions for one, lot in every if one == seed and lot.is_training), strict=True
        )
        found.append(sum(docker) / sum(mine))
    return sorted(found)


if __name__ == "__main__":
    main()
