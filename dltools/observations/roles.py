"""What a container is to us, and what shows it: a training, a server, interactive, or other.

Only trainings are ordered, and only servers have their response times kept. Whatever else uses CPU,
such as a notebook or a database, is never touched. Evidence, the strongest first (ours):

1. what somebody has said: the option --role, the label dltools.role, or a response-time target;
2. what it reports, where that is certain: response times and rates make a server; two of these make
   a training: a loss, a step or an epoch beside a metric, a deep-learning runtime or a device; and
   so does a metric that its owner's labels are about;
3. a notebook, an editor or an ssh server in it: interactive, although it publishes a port;
4. a published port, its own or that of its Swarm service: a server;
5. a metric with a step or an epoch: a training; not a reward or score, which games and chains have;
6. a deep-learning runtime in its processes, or a device in use: a training, silent or not;
7. a loss, or a reward with a step, where nobody may look for a runtime: it seems to be a training.

A metric alone shows nothing: servers print error rates, mail filters scores, networks their loss.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from dltools import labels as known_labels
from dltools.errors import ConfigError
from dltools.labels import (
    EPOCHS,
    FILES,
    FINAL,
    METRIC,
    OBJECTIVE,
    PATTERN,
    QOE,
    ROLE,
    STEPS,
    TARGET,
    Role,
    has_labels,
)
from dltools.observations import judging_metric
from dltools.text import suggestion

_OPTION, _LABEL = "--role", f"label {ROLE}"
"""How the reasons begin of what somebody has said."""

_OPT_IN = (TARGET, FINAL, QOE, EPOCHS, STEPS)
"""Labels by which an owner asks for what dltools does, beside those of a role."""

_OF_TRAININGS = (METRIC, PATTERN, FILES, OBJECTIVE, TARGET, FINAL, EPOCHS, STEPS)
"""Labels by which an owner says what its training reports."""

_UNCOUNTED, _UNSEEN = "without a step or an epoch", "without a runtime in sight"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A container's role, and what shows it."""

    role: Role
    """The role."""

    reason: str
    """What shows it, in a few words; "" where nothing does."""

    @property
    def is_said(self) -> bool:
        """Whether somebody has said so: its owner, or who runs dltools."""
        return self.reason.startswith((_OPTION, _LABEL))

    @property
    def is_doubtful(self) -> bool:
        """Whether it only seems to be one."""
        return self.reason.endswith((_UNCOUNTED, _UNSEEN))

    @property
    def text(self) -> str:
        """Both in one: "server: publishes port 5432"."""
        return f"{self.role}: {self.reason}" if self.reason else str(self.role)


NO_SIGN = Judgement(Role.OTHER, "no sign of a training")
UNREADABLE = Judgement(Role.OTHER, f"{NO_SIGN.reason}; its processes cannot be read")


@dataclass(frozen=True, slots=True)
class Reports:
    """What a container has reported."""

    metrics: Collection[str] = ()
    """The names of its metrics."""

    is_counted: bool = False
    """Whether one of them came with a step or an epoch."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the container."""

    @property
    def has_loss(self) -> bool:
        """Whether one is the loss that a training minimises."""
        return any(map(judging_metric.is_whole_loss, self.metrics))

    @property
    def best(self) -> str:
        """The metric to judge by."""
        return min(self.metrics, key=judging_metric.evaluation_rank)


NO_REPORTS = Reports()


@dataclass(frozen=True, slots=True)
class Signs:
    """What can be seen of a container beside its reports."""

    program: str = ""
    """The name of an interactive program in it, "" for none."""

    ports: Sequence[int] = ()
    """Those that it publishes."""

    runtimes: Sequence[str] = ()
    """The deep-learning runtimes in its processes."""

    device: str = ""
    """The kind of device that a process of it is on, "" for none."""

    is_readable: bool = True
    """Whether its processes are here, and this user may look at them."""

    has_service_port: bool = False
    """Whether the Swarm service of which it is a task publishes a port."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A role that --role gives to containers: those whose name matches a pattern, as in a shell, or
    that have the label `label`, KEY or KEY=VALUE."""

    role: Role
    pattern: str = ""
    label: str = ""

    def is_for(self, name: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a container is meant."""
        return has_labels(labels, [self.label]) if self.label else fnmatchcase(name, self.pattern)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the user says of roles."""

    rules: Sequence[Rule] = ()
    """The last one for a container counts."""

    only_labelled: bool = False
    """Whether nothing is touched but what its owner has labelled."""

    def said(self, name: str, labels: Mapping[str, str]) -> Judgement | None:
        """Return what the rules say of a container, None where no rule is for it."""
        for rule in reversed(self.rules):
            if rule.is_for(name, labels):
                whom = f"label:{rule.label}" if rule.label else rule.pattern
                return Judgement(rule.role, f"{_OPTION} {whom}={rule.role}")
        return None

    def leave_out(self, own_labels: Mapping[str, str]) -> bool:
        """Tell whether a container with these labels of its owner must not be touched."""
        if not self.only_labelled:
            return False
        has_role = known_labels.role(own_labels) in (Role.TRAINING, Role.SERVER)
        return not has_role and not any(name in own_labels for name in _OPT_IN)


NO_RULES = Rules()


def parse_rule(text: str) -> Rule:
    """Read a value of --role, PATTERN=ROLE or label:KEY[=VALUE]=ROLE. Raises `ConfigError`."""
    whom, equals, word = text.rpartition("=")
    if not equals or not whom.removeprefix("label:"):
        raise ConfigError(f"--role {text}: not PATTERN=ROLE or label:KEY[=VALUE]=ROLE")
    if word not in list(Role):
        raise ConfigError(f"--role {text}: unknown role {word!r}{suggestion(word, list(Role))}")
    if whom.startswith("label:"):
        return Rule(Role(word), label=whom.removeprefix("label:"))
    return Rule(Role(word), pattern=whom)


def by_word(said: Judgement | None, labels: Mapping[str, str]) -> Judgement | None:
    """Return what somebody has said of a container: the rules, its label, or its target."""
    if said is not None:
        return said
    if (role := known_labels.role(labels)) is not None:
        return Judgement(role, f"{_LABEL}={role}")
    if QOE in labels and known_labels.response_time_s(labels[QOE]) is not None:
        return Judgement(Role.SERVER, f"response-time target {labels[QOE].strip()}")
    return None


def by_reports(reports: Reports, *, has_runtime: bool = False) -> Judgement | None:
    """Return what reports show, whatever else is seen, None where they show nothing for certain.
    `has_runtime`: whether a deep-learning runtime or a device bears them out."""
    if not reports.metrics:
        return None
    if judging_metric.is_serving(reports.metrics):
        first = next(iter(judging_metric.latencies(reports.metrics)), min(reports.metrics))
        return Judgement(Role.SERVER, f"reports {first}")
    is_said = any(name in reports.labels for name in _OF_TRAININGS)
    if is_said or reports.has_loss + reports.is_counted + has_runtime > 1:
        return Judgement(Role.TRAINING, f"reports {reports.best}")
    return None


def by_evidence(signs: Signs, reports: Reports = NO_REPORTS) -> Judgement:
    """Return what a container's reports and what can be seen of it show together."""
    runtimes = ", ".join(signs.runtimes)
    device = signs.device and f"uses a {signs.device}"
    runtime = f"{runtimes} in its processes" if runtimes else device
    if judgement := by_reports(reports, has_runtime=bool(runtime)):
        return judgement
    if signs.program:
        return Judgement(Role.INTERACTIVE, signs.program)
    if signs.ports:
        noun = "port" if len(signs.ports) == 1 else "ports"
        return Judgement(Role.SERVER, f"publishes {noun} {', '.join(map(str, signs.ports))}")
    if signs.has_service_port:
        return Judgement(Role.SERVER, "its Swarm service publishes a port")
    best = f"reports {reports.best}" if reports.metrics else ""
    if reports.is_counted and not all(map(judging_metric.is_achieved, reports.metrics)):
        return Judgement(Role.TRAINING, best)
    if runtime:
        return Judgement(Role.TRAINING, f"{runtime}, {best or 'silent'}")
    if best:
        seems = (reports.has_loss or reports.is_counted) and not signs.is_readable
        what = _UNSEEN if reports.is_counted else _UNCOUNTED
        return Judgement(Role.TRAINING if seems else Role.OTHER, f"{best} {what}")
    return NO_SIGN if signs.is_readable else UNREADABLE


def by_row(row: Judgement | None, reports: Reports) -> Judgement:
    """Return what a container is by the role in its row, and by all that it has reported since it
    started, which may be more than the row's writer knew."""
    if row is None:  # written by a program that does not look for runtimes
        return by_reports(reports, has_runtime=True) or by_evidence(Signs(), reports)
    if row.is_said or not reports.metrics:
        return row
    if row.role is Role.OTHER:
        return by_evidence(Signs(is_readable=row != UNREADABLE), reports)
    return by_reports(reports) or row


def from_row(role: str | None, reason: str | None) -> Judgement | None:
    """Return what a container row says, None where it says no role that is known."""
    if not role:
        return None
    word = role.strip().lower()
    return Judgement(Role(word), reason or "") if word in list(Role) else None
