"""What a container is to dltools: its role, and whether it may be touched and paused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dltools.labels import PROTECT, Role, is_true
from dltools.observations import roles
from dltools.observations.roles import Judgement, Reports

_REPORTING = (Role.TRAINING, Role.SERVER)
"""Roles that reports can show."""


@dataclass(slots=True)
class Standing:
    """A container's role, and what it follows from.

    `by_option`: what the user says of its role. `earlier`: the role that an earlier run of it has
    shown. `observed`: the role that its rows report. `is_left_alone`: the user wants it left alone
    because its owner has not labelled it. From these and from its labels and reports follow
    `protected`: its owner forbids any change; `judgement`: its role and the reason; `shown`: what
    it is where nobody has said it; `has_reported`: whether it has in this run.
    """

    by_option: Judgement | None = None
    earlier: Role | None = None
    observed: Judgement | None = None
    is_left_alone: bool = False
    protected: bool = field(init=False, default=False)
    judgement: Judgement = field(init=False, default=roles.NO_SIGN)
    shown: Judgement = field(init=False, default=roles.NO_SIGN)
    has_reported: bool = field(init=False, default=False)

    def judge(self, labels: Mapping[str, str], reports: Reports) -> None:
        """Compute what follows from a container's labels, and from its reports in this run."""
        self.protected = is_true(labels.get(PROTECT))
        self.has_reported = bool(reports.metrics)
        if self.earlier is not None and not self.has_reported:
            self.shown = Judgement(self.earlier, "has reported before it restarted")
        else:
            self.shown = roles.by_row(self.observed, reports)
        self.judgement = roles.by_word(self.by_option, labels) or self.shown

    @property
    def role(self) -> Role:
        """Its role: training, server, interactive or other."""
        return self.judgement.role

    @property
    def reported_role(self) -> Role | None:
        """The role that its reports show, in this run or an earlier one; None without reports, and
        where it only seems to be one."""
        if not self.has_reported:
            return self.earlier
        return (
            self.shown.role
            if self.shown.role in _REPORTING and not self.shown.is_doubtful
            else None
        )

    @property
    def is_surely_a_training(self) -> bool:
        """Whether it has reported as one, or a label or an option says so."""
        is_sure = self.judgement.is_said or self.reported_role is Role.TRAINING
        return self.role is Role.TRAINING and is_sure

    @property
    def may_be_touched(self) -> bool:
        """Whether dltools may change it: neither a label nor an option forbids that."""
        return not self.protected and not self.is_left_alone
