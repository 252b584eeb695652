"""What each container is, from all that the probe knows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dltools.engine.interface import Container
from dltools.engine.process_search import Processes, interactive_program
from dltools.observations import roles
from dltools.observations.roles import Judgement, Rules, Signs


@dataclass(slots=True)
class RoleWatch:
    """One container: `metrics` are the names of those that it has reported in this run of the
    probe, in earlier runs of the container too."""

    metrics: set[str] = field(default_factory=set)
    _judged_on: Any = None
    _judgement: Judgement = roles.NO_SIGN

    @property
    def has_reported(self) -> bool:
        """Whether reports tell what it is, which is stronger than what its processes are."""
        return bool(self.metrics)

    def look(
        self, container: Container, rules: Rules, processes: Processes | None, *, has_gpu: bool
    ) -> Judgement:
        """Return what the container is; `processes` is None where they are not on this machine."""
        basis = (container.name, len(self.metrics), processes, has_gpu)
        if basis != self._judged_on:
            self._judged_on = basis
            self._judgement = self._judge(container, rules, processes or Processes(), has_gpu)
        return self._judgement

    def _judge(
        self, container: Container, rules: Rules, processes: Processes, has_gpu: bool
    ) -> Judgement:
        labels = container.labels
        word = roles.by_word(rules.said(container.name, labels), labels)
        if known := word or roles.by_reports(self.metrics):
            return known
        program = interactive_program(container.command) or processes.program
        return roles.by_signs(
            Signs(
                program,
                container.network.ports,
                processes.runtimes,
                has_gpu,
                processes.is_readable,
                container.network.serves_nodes,
            )
        )
