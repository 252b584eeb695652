"""Owners give random commands beside each policy and each realisation: all end as without them.

    python tests/trust/owners_hand.py [COMMANDS] [SEED] [ARM...]

Needs root and Docker: it starts an engine of its own, or uses that of DLTOOLS_HAND_ENGINE. Four
owners pause, unpause, stop, kill, restart, update, rename, commit, copy, exec, remove and start
again, at random times, first on Docker alone, then beside dl-probe | dl-plan | dl-apply --restore.
ARM is POLICY:MODE. Prints what was tried. Fails, and says what the owner did, where a command did
not end as on Docker alone, or a container was not left as its owner had left it.
"""

import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.daemon import Daemon
from helpers.owners_hand import Hand, Stages, try_hand

EACH = 8
"""How many commands an owner gives in an arm."""

ARMS = tuple(
    Stages(policy, realisation)
    for policy, realisation in (
        ("flowcon", "auto"), ("srtf", "rotate"), ("fair", "rotate"), ("flowcon", "quota"),
        ("slaq", "weight"), ("srtf", "priority"), ("fair", "weight"), ("tradl", "auto"),
        ("las", "rotate"), ("las", "priority"), ("dqoes", "quota"), ("specon", "auto"),
        ("slaq", "quota"), ("tradl", "rotate"), ("noop", "auto"), ("flowcon", "weight"),
    )
)  # fmt: skip


def try_arms(url: str, commands: int, seed: int, arms: Sequence[Stages] = ARMS) -> Hand:
    """Try arms, three with the same seed, until so many commands were given. Say on standard error
    what was not as on Docker alone."""
    total = Hand()
    while total.commands < commands:
        for start in range(0, len(arms), 3):
            hand = try_hand(url, seed, arms[start : start + 3], EACH)
            total.add(hand)
            for text in hand.broken:
                print(f"{text}\n", file=sys.stderr, flush=True)
            seed += 1
            if total.commands >= commands:
                break
    return total


def try_owners(commands: int, seed: int, arms: Sequence[Stages] = ARMS) -> Hand:
    """Try arms on an engine of their own."""
    if url := os.environ.get("DLTOOLS_HAND_ENGINE"):
        return try_arms(url, commands, seed, arms)
    with Daemon() as daemon:
        return try_arms(daemon.url, commands, seed, arms)


def main() -> None:
    commands = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    arms = [Stages(*word.split(":")) for word in sys.argv[3:]] or ARMS
    begun = time.monotonic()
    hand = try_owners(commands, seed, arms)
    print(
        f"{hand.commands} commands, seed {seed}, {time.monotonic() - begun:.0f} s; {hand.figures}"
    )
    sys.exit(len(hand.broken) > 0)


if __name__ == "__main__":
    main()
