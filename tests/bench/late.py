"""A short training that comes late, beside two endless ones, under the pipe: completion times.

    python tests/bench/late.py [TIMES [POLICY ...]]

A CNN and a GRU train for ever, on two threads each; after 90 s a CNN of 30 epochs starts. Its
completion time is shown alone, under Docker alone and under each policy as the README types it
(by default flowcon, fair, srtf), and as a ratio to Docker alone in the same run.

Needs what tests/bench/live.py needs. Prints; nothing is asserted.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Sequence

from live import docker, lasted, piped

WARM_S = 90
EPOCHS = 30


def completion(policy: str | None, *, alone: bool = False) -> float:
    """Return the completion time (s) of the short job; no policy is Docker alone."""
    label = f"dltools-late={uuid.uuid4().hex[:8]}"
    names: list[str] = []

    def start(model: str, epochs: int) -> str:
        names.append(
            docker("run", "-d", "--label", label, "dltools-torch",
                   "--model", model, "--threads", "2", "--epochs", str(epochs))
        )  # fmt: skip
        return names[-1]

    with piped(None if policy is None else f"-p {policy}", label):
        try:
            if not alone:
                for model in ("cnn", "gru"):
                    start(model, 1_000_000)
                time.sleep(WARM_S)
            short = start("cnn", EPOCHS)
            docker("wait", short)
            return lasted(short)
        finally:
            docker("rm", "-f", *names)


def main(times: int, policies: Sequence[str]) -> None:
    print(f"{'':>10}" + "".join(f"{name:>16}" for name in ("alone", "Docker", *policies)))
    for number in range(1, times + 1):
        alone, base = completion(None, alone=True), completion(None)
        row = [f"{alone:.1f} s", f"{base:.1f} s"]
        for policy in policies:
            taken = completion(policy)
            row.append(f"{taken:.1f} s ({taken / base:.2f})")
        print(f"{f'run {number}':>10}" + "".join(f"{cell:>16}" for cell in row), flush=True)


if __name__ == "__main__":
    main(int(next(iter(sys.argv[1:]), "1")), sys.argv[2:] or ["flowcon", "fair", "srtf"])
