"""A host as policies see it: what is remembered of its containers, its rounds, its last grants.

This is where a round is decided, the same for a recording, a live stream and a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dltools.plan import queue as lines
from dltools.plan import round_timer
from dltools.plan.policy import container_history
from dltools.plan.policy.base import Decision, Deed, Grant, Needs, Node, Order
from dltools.plan.policy.container_history import MICRO, Track
from dltools.plan.queue import Line
from dltools.plan.round_timer import Rounds


@dataclass(slots=True)
class Site:
    """One host. `cpuset` is the most CPUs that its containers were ever seen to have, `settled` the
    time of its newest sample (microseconds), `orders` those of that sample, `gain` the last
    round's, `line` who runs first and who waits.
    """

    name: str
    cpus: float = 0.0
    cpuset: str | None = None
    settled: int | None = None
    tracks: dict[str, Track] = field(default_factory=dict)
    rounds: Rounds = field(default_factory=lambda: Rounds(None))
    grants: dict[str, Grant] = field(default_factory=dict)
    orders: tuple[Order, ...] = ()
    gain: str = ""
    line: Line = field(default_factory=Line)

    def jobs(self) -> tuple[Track, ...]:
        """Return the running, unprotected containers that have reported progress, by name."""
        jobs = [t for t in self.tracks.values() if t.metrics and not t.protected and self.cpus > 0]
        return tuple(sorted(jobs, key=lambda job: (job.name, job.id)))

    def silent(self) -> tuple[Track, ...]:
        """Return the running, unprotected containers that have reported nothing yet, by name."""
        silent = [t for t in self.tracks.values() if not t.metrics and not t.protected]
        return tuple(sorted(silent, key=lambda job: (job.name, job.id)))

    def node(self, jobs: tuple[Track, ...] | None = None) -> Node:
        """Return the host for a policy."""
        return Node(self.name, self.cpus, self.jobs() if jobs is None else jobs, self.grants)

    def open_round(self, needs: Needs, *, met: bool) -> tuple[Track, ...]:
        """Return the jobs of a round that is due at the newest sample, () where none is.

        `met` tells that a job has just met a target.
        """
        jobs = self.jobs()
        before = self.rounds
        self.rounds = before.listen(jobs, needs)
        if met and needs.targets:
            self.rounds = self.rounds.interrupted()
        stayed = set(before.members)
        self.grants = {job.id: self.grants[job.id] for job in jobs
                       if job.id in self.grants and job.member in stayed}  # fmt: skip
        return jobs if self.rounds.due(self.settled or 0) else ()

    def close_round(self, decision: Decision, needs: Needs, jobs: Iterable[Track]) -> None:
        """Take on what has been decided, and forget what no later round needs."""
        self.grants = dict(decision.grants)
        for key, grant in self.grants.items():
            if grant.share is not None and key in self.tracks:
                self.tracks[key].held = True
        self.orders, self.gain = decision.orders, decision.gain
        self.rounds = self.rounds.ran(self.settled or 0, decision.pace, needs)
        self._forget(needs, jobs)

    # What is forgotten must not tell how a recording was cut up, or two halves would not make a
    # whole: jobs forget when a round has run; who is in no round, up to now.

    def forget_bystanders(self, needs: Needs) -> None:
        """Forget what is not needed of who is in no round."""
        members = set(self.rounds.members) if needs.windows else ()
        self._forget(needs, (t for t in self.tracks.values() if t.member not in members))

    def _forget(self, needs: Needs, tracks: Iterable[Track]) -> None:
        itval = self.rounds.itval_s or needs.itval_s or 0.0
        reach = (needs.windows + 1) * itval if needs.windows else 0.0
        for track in tracks:
            track.forget((self.settled or 0) - round(reach * MICRO))

    def wait_s(self, needs: Needs) -> float | None:
        """Return the seconds until the next round, None where time brings none."""
        return self.rounds.wait_s(self.settled or 0) if self.jobs() else needs.itval_s

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `load` restores the site."""
        return {
            "cpus": self.cpus,
            "cpuset": self.cpuset,
            "settled": self.settled,
            "tracks": {key: container_history.to_json(t) for key, t in sorted(self.tracks.items())},
            "rounds": self.rounds.to_json(),
            "grants": {
                key: [g.share, g.job_class, g.reason, g.signal, g.prediction, g.free, g.rank]
                for key, g in sorted(self.grants.items())
            },
            "orders": [[o.deed.value, o.job_id, o.reason, o.to] for o in self.orders],
            "gain": self.gain,
            "line": self.line.to_json(),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore what was saved. Raises KeyError, TypeError, ValueError or IndexError."""
        self.cpus = float(saved["cpus"])
        self.cpuset = saved["cpuset"]
        self.settled = saved["settled"]
        self.tracks = {
            key: container_history.from_json(key, data) for key, data in saved["tracks"].items()
        }
        self.rounds = round_timer.from_json(saved["rounds"])
        self.grants = {key: Grant(*data) for key, data in saved["grants"].items()}
        self.orders = tuple(Order(Deed(o[0]), o[1], o[2], o[3]) for o in saved["orders"])
        self.gain = saved["gain"]
        self.line = lines.from_json(saved["line"]) if "line" in saved else Line()
