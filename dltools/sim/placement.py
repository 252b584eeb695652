"""Where jobs go that arrive: to their own host, else to the one with the fewest jobs, if it has
room."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.workload import Job


class Placement:
    """Finds the host for a job. Among equals the first host is chosen."""

    def __init__(self, hosts: Iterable[SimulatedHost]) -> None:
        """All hosts are empty."""
        self._hosts = list(hosts)
        self._numbers = {host.spec.name: number for number, host in enumerate(self._hosts)}
        self._emptiest = [(0, number) for number in range(len(self._hosts))]  # some out of date

    def note_change(self, host: SimulatedHost) -> None:
        """Note that a host has more or fewer jobs than before."""
        heapq.heappush(self._emptiest, (len(host.jobs), self._numbers[host.spec.name]))

    def host_for(self, job: Job) -> SimulatedHost | None:
        """Return the host, None where no host has room."""
        if job.node:
            own = self._hosts[self._numbers[job.node]]
            return own if own.has_room_for(job) else None
        if job.memory == 0 and job.gpus == 0:
            return self._emptiest_host()
        room = (host for host in self._hosts if host.has_room_for(job))
        return min(room, key=lambda host: len(host.jobs), default=None)

    def _emptiest_host(self) -> SimulatedHost:
        while True:
            count, number = self._emptiest[0]
            host = self._hosts[number]
            if count == len(host.jobs):
                return host
            heapq.heapreplace(self._emptiest, (len(host.jobs), number))
