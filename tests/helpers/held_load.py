"""A run of the pipe under load, and what it held."""

import tempfile
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median

from helpers.containers import eventually
from helpers.daemon import Daemon
from helpers.load import STAGES, Churn, Pipe, Size, seconds_of

from dltools.apply.refusals import FOREIGN

MOST_GROWTH_MIB = 32
"""What a process may hold more in the last third than in the middle one."""

LONGEST_GAP_S = 10.0
FEWEST_TICKS = 0.9
SPARE = 3
"""Descriptors and threads that may come and go with the moment, or stay from the first change on:
dl-apply follows the engine's events then, and hears of pauses."""


class Load:
    """One run of the pipe under load. `figures` say what was held, `broken` what was not."""

    def __init__(
        self,
        daemon: Daemon,
        home: Path,
        seconds: float,
        most: int,
        seed: int,
        *,
        judges_ticks: bool = True,
    ) -> None:
        self.figures: list[str] = []
        self.broken: list[str] = []
        self._daemon, self._seconds, self._judges_ticks = daemon, seconds, judges_ticks
        self._pipe = Pipe(daemon.url, home)
        self._churn = Churn(daemon, most, int(max(10, min(300, seconds / 2))), seed)
        self._sizes: list[dict[str, Size]] = []
        self._away: list[float] = []

    def run(self) -> None:
        """Hold the load for as long as was asked, and judge."""
        eventually(self._pipe.has_sampled)
        time.sleep(3)
        empty, begun = self._pipe.sizes(), time.time()
        while not self._pipe.dead and (passed := time.time() - begun) < self._seconds:
            self._churn.step()
            self._sizes.append(self._pipe.sizes())
            if not self._away and passed > self._seconds / 2:
                self._restart_engine()
            time.sleep(0.05)
        ended = time.time()
        if self._pipe.dead:
            self.broken.append(f"{self._pipe.dead} ended early: {self._pipe.said}")
            return
        self._judge_containers()
        self._judge_sizes(empty)
        self._end_pipe()
        self._judge_observations(begun, ended)

    def close(self) -> None:
        self._pipe.kill()

    def _restart_engine(self) -> None:
        self._away.append(time.time())
        self._daemon.stop()
        self._daemon.start()
        self._away.append(time.time())

    def _judge_containers(self) -> None:
        """Remove all containers, and compare those that were not to be touched."""
        churn = self._churn
        churn.end()
        self.figures.append(f"{churn.started} containers, {churn.peak} at once")

    def _judge_sizes(self, empty: dict[str, Size]) -> None:
        """Compare what the processes hold without containers with what they held before any, and
        their memory with that of earlier."""

        def leaks() -> list[str]:
            return [
                f"{name}: {before} without containers, then {after}"
                for (name, before), after in zip(
                    empty.items(), self._pipe.sizes().values(), strict=True
                )
                if after.descriptors > before.descriptors + SPARE
                or after.threads > before.threads + SPARE
            ]

        try:
            eventually(leaks, lambda found: not found, seconds=60)
        except AssertionError:
            self.broken += leaks()
        third = max(1, len(self._sizes) // 3)
        for name in STAGES:
            early, late = (
                max(size[name].memory for size in some)
                for some in (self._sizes[third : 2 * third], self._sizes[2 * third :])
            )
            most = max(size[name].descriptors for size in self._sizes)
            self.figures.append(f"{name} {early:.0f} MiB, then {late:.0f}; {most} descriptors")
            if late - early > MOST_GROWTH_MIB:
                self.broken.append(f"{name}: memory grows from {early:.0f} to {late:.0f} MiB")

    def _end_pipe(self) -> None:
        """End the pipe while a few containers run, undo, and see that they are as they were."""
        churn = self._churn
        churn.longest_s = 300
        for _ in range(5):
            churn.start()
        time.sleep(5)
        entries, codes = self._pipe.entries, self._pipe.end()
        # 75: a container of the last plan had ended before it was carried out.
        allowed = {0, 75} if "stale" in {one["status"] for one in self._pipe.results()} else {0}
        if (codes["dl-probe"], codes["dl-plan"]) != (143, 0) or codes["dl-apply"] not in allowed:
            self.broken.append(f"the pipe ended with {codes}: {self._pipe.said}")
        if self._pipe.undo() != 0 or self._pipe.entries:
            self.broken.append(f"--undo left {self._pipe.entries} entries in the journal")
        churn.check_all()
        self.broken += churn.touched
        results = self._pipe.results()
        count = Counter(one["status"] for one in results)
        said = ", ".join(f"{number} {status}" for status, number in sorted(count.items()))
        self.figures.append(f"results: {said}; {entries} entries in the journal")
        self.broken += [f"an action failed: {one}" for one in results if one["status"] == "failed"]
        self.broken += [f"nobody else has: {one}" for one in results if one["error"] == FOREIGN]

    def _judge_observations(self, begun: float, ended: float) -> None:
        rows = self._pipe.rows()
        exits = {row["container_id"] for row in rows if row["event"] == "exit"}
        ended_at = self._churn.ended
        self.figures.append(f"{len(exits & ended_at.keys())} ends seen")
        if missed := sorted(ended_at[id_] - begun for id_ in ended_at.keys() - exits):
            away = [round(at - begun, 1) for at in self._away]
            self.broken.append(
                f"{len(missed)} of {len(ended_at)} ends were missed, before the "
                f"seconds {missed}; the engine was away from {away}"
            )
        times = sorted(seconds_of(row["time"]) for row in rows if row["kind"] == "node")
        times = [at for at in times if begun <= at <= ended]
        gaps = [
            after - before
            for before, after in pairwise(times)
            if not any(before <= at <= after for at in self._away)
        ]
        away = self._away[1] - self._away[0] if self._away else 0.0
        ticks = len({int(at) for at in times}) / (ended - begun - away)
        self.figures.append(
            f"{len(times)} samples, one in {min(1, ticks):.1%} of the seconds, "
            f"{median(gaps):.2f} s apart (median), {max(gaps):.1f} s at most; "
            f"engine away for {away:.1f} s"
        )
        if self._judges_ticks and (ticks < FEWEST_TICKS or max(gaps) > LONGEST_GAP_S):
            self.broken.append(f"ticks were missed: {self.figures[-1]}")


def hold(seconds: float, most: int, seed: int, *, judges_ticks: bool = True) -> Load:
    """Hold a load on an engine of its own, and return what was held. `judges_ticks`: whether a
    sample that is late breaks it; not where other programs use the CPUs."""
    with Daemon() as daemon, tempfile.TemporaryDirectory(prefix="dl-load-") as home:
        load = Load(daemon, Path(home), seconds, most, seed, judges_ticks=judges_ticks)
        with closing(load):
            load.run()
        return load
