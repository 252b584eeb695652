"""What a container is to us, and what shows it: a training, a server, interactive, or other.

Only trainings are ordered, and only servers have their response times kept. Whatever else uses CPU,
such as a notebook or a database, is never touched. Evidence, the strongest first (ours):

1. what somebody has said: the option --role, the label dltools.role, or a response-time target;
2. what it reports: response times and rates make a server, any other metric a training;
3. a notebook, an editor or an ssh server in it: interactive, although it publishes a port;
4. a published port, its own or that of its Swarm service: a server;
5. a deep-learning runtime in its processes, or a GPU in use: a training that is silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dltools import labels as known_labels
from dltools.errors import ConfigError
from dltools.labels import EPOCHS, FINAL, QOE, ROLE, STEPS, TARGET, Role, has_labels
from dltools.observations import metric_names
from dltools.text import suggestion

_OPTION, _LABEL = "--role", f"label {ROLE}"
"""How the reasons begin of what somebody has said."""

_OPT_IN = (TARGET, FINAL, QOE, EPOCHS, STEPS)
"""Labels by which an owner asks for what dltools does, beside those of a role."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A container's role, and what shows it, in a few words."""

    role: Role
    reason: str

    @property
    def is_said(self) -> bool:
        """Whether somebody has said so: its owner, or who runs dltools."""
        return self.reason.startswith((_OPTION, _LABEL))

    @property
    def text(self) -> str:
        """Both in one: "server: publishes port 5432"."""
        return f"{self.role}: {self.reason}" if self.reason else str(self.role)


NO_SIGN = Judgement(Role.OTHER, "no sign of a training")


@dataclass(frozen=True, slots=True)
class Signs:
    """What can be seen of a container that has reported nothing.

    `program`: the name of an interactive program in it, "" for none. `ports`: those that it
    publishes. `runtimes`: the deep-learning runtimes in its processes. `has_gpu`: whether a process
    of it is on a GPU. `is_readable`: whether this user may look at its processes.
    `has_service_port`: whether the Swarm service of which it is a task publishes a port.
    """

    program: str = ""
    ports: Sequence[int] = ()
    runtimes: Sequence[str] = ()
    has_gpu: bool = False
    is_readable: bool = True
    has_service_port: bool = False


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
    """What the user says of roles: the last rule for a container counts. With `only_labelled`
    nothing is touched but what its owner has labelled."""

    rules: Sequence[Rule] = ()
    only_labelled: bool = False

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


def by_reports(metrics: Iterable[str]) -> Judgement | None:
    """Return what the metrics that a container has reported show, None without any."""
    names = list(metrics)
    if not names:
        return None
    if metric_names.is_serving(names):
        return Judgement(Role.SERVER, f"reports {_first(names, metric_names.latencies(names))}")
    best = min(names, key=metric_names.evaluation_rank)
    return Judgement(Role.TRAINING, f"reports {best}")


def by_signs(signs: Signs) -> Judgement:
    """Return what can be seen of a container that has reported nothing."""
    if signs.program:
        return Judgement(Role.INTERACTIVE, signs.program)
    if signs.ports:
        noun = "port" if len(signs.ports) == 1 else "ports"
        return Judgement(Role.SERVER, f"publishes {noun} {', '.join(map(str, signs.ports))}")
    if signs.has_service_port:
        return Judgement(Role.SERVER, "its Swarm service publishes a port")
    if signs.runtimes:
        found = ", ".join(signs.runtimes)
        return Judgement(Role.TRAINING, f"{found} in its processes, silent")
    if signs.has_gpu:
        return Judgement(Role.TRAINING, "uses a GPU, silent")
    if not signs.is_readable:
        return Judgement(Role.OTHER, f"{NO_SIGN.reason}; this user may not read its processes")
    return NO_SIGN


def from_row(role: str | None, reason: str | None) -> Judgement | None:
    """Return what a container row says, None where it says no role that is known."""
    if not role:
        return None
    word = role.strip().lower()
    return Judgement(Role(word), reason or "") if word in list(Role) else None


def _first(names: Sequence[str], latencies: Sequence[str]) -> str:
    return latencies[0] if latencies else sorted(names)[0]
