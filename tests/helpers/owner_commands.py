"""What owners do with their containers: docker's commands, at random, from a seed.

The commands of an owner depend on the seed alone, and not on what becomes of them. So the same
commands can be given with the tools and without them, and compared.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from helpers.containers import IMAGE

WORK = "awk 'BEGIN { for (i = 0; i < %d; i++) x += i }'"
"""Shell that takes CPU time: a million rounds are 0.1 to 0.2 s."""

_JOB = f"""\
trap '{WORK.replace("'", '"') % 600_000}; echo saved >> /out/saved; exit 3' TERM
trap 'echo told >> /out/told' USR1
awk 'BEGIN {{ for (n = 1; ; n++) {{
    for (i = 0; i < 300000; i++) x += i
    printf "step %d loss: %.6f\\n", n, 1 + 9 / n; fflush() }} }}' &
{{second}}
while :; do wait; done"""
"""A training of one thread or two. On SIGTERM it computes for a while, saves, and ends with 3."""

ENDS = ("TERM", "KILL")
"""Signals that end a job."""

CPU_SETTINGS = ("--cpu-shares", "--cpus", "--cpuset-cpus")


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that an owner does: `steps` are docker's arguments, in order. `after_s`: the pause
    before it. `name`: what the container is called then."""

    kind: str
    after_s: float
    steps: tuple[tuple[str, ...], ...]
    name: str

    @property
    def ends_the_job(self) -> bool:
        """Whether the job is told to end, and the command does not wait for it."""
        return self.kind == "kill" and self.steps[0][2] in ENDS

    @property
    def sets_cpus(self) -> bool:
        return self.kind == "update" and self.steps[0][1] in CPU_SETTINGS

    def __str__(self) -> str:
        return "; ".join(f"docker {' '.join(words[:6])}" for words in self.steps)


NEXT = {
    "running": {"pause": 4, "stop": 3, "kill": 4, "restart": 2, "update": 5, "rename": 1,
                "commit": 1, "cp": 1, "exec": 4, "again": 1, "unpause": 2, "top": 1},
    "paused": {"unpause": 6, "stop": 2, "kill": 2, "restart": 1, "update": 1, "rename": 1,
               "commit": 1, "cp": 1, "exec": 1, "again": 1, "pause": 1},
    "ended": {"start": 6, "restart": 2, "update": 1, "rename": 1, "commit": 1, "again": 2,
              "stop": 1, "exec": 1},
}  # fmt: skip
"""How likely each kind of command is, by the state that its owner takes the container to be in."""


@dataclass
class Owner:
    """An owner with one container, whose commands are drawn at random."""

    chance: random.Random
    name: str
    label: str
    out: str
    kinds: Sequence[str] = ()
    """The kinds of commands to draw from; all where none is named. Who names some tries commands
    beside other tests, which hold up health checks."""

    created: tuple[str, ...] = field(init=False)
    _state: str = field(default="running", init=False)
    _names: int = field(default=0, init=False)
    _is_stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Draw how the container is started: `created` are the arguments of docker."""
        chance = self.chance
        options = [
            ["--cpu-shares", str(chance.choice((100, 700, 3000)))] if chance.random() < 0.3 else [],
            ["--cpus", "1.5"] if chance.random() < 0.2 else [],
            ["--restart", chance.choice(("always", "on-failure:3", "unless-stopped"))]
            if chance.random() < 0.4
            else [],
            ["--log-driver", chance.choice(("local", "none"))] if chance.random() < 0.3 else [],
            self._health() if chance.random() < 0.25 else [],
        ]
        second = chance.choice(("", "awk 'BEGIN { for (;;) x += 1 }' &"))
        fixed = ["--network", "none", "--label", self.label, "--label", "dltools.role=training"]
        self.created = (
            *fixed, "-v", f"{self.out}:/out", *(word for option in options for word in option),
            "--entrypoint", "/bin/sh", IMAGE, "-c", _JOB.replace("{second}", second),
        )  # fmt: skip

    def _health(self) -> list[str]:
        check, timeout = WORK % 100_000, "20s" if self.kinds else "5s"
        return ["--health-cmd", check, "--health-interval", "2s", "--health-timeout", timeout]

    @property
    def start(self) -> tuple[str, ...]:
        return ("run", "-d", "--name", self.name, *self.created)

    def commands(self, count: int) -> Iterator[Command]:
        for _ in range(count):
            kind = self._draw()
            after_s = round(self.chance.uniform(0.1, 2.5), 2)
            steps = self._steps(kind)
            yield Command(kind, after_s, steps, self.name)

    def _draw(self) -> str:
        if self._is_stopped:
            return "kill"
        likely = {
            kind: weight
            for kind, weight in NEXT[self._state].items()
            if not self.kinds or kind in self.kinds
        }
        if not likely:
            return "start" if self._state == "ended" else "unpause"
        return self.chance.choices([*likely], [*likely.values()])[0]

    def _steps(self, kind: str) -> tuple[tuple[str, ...], ...]:
        """Return docker's arguments for a command, and expect what it does."""
        chance, name = self.chance, self.name
        if kind in ("pause", "unpause", "start", "restart", "stop", "again"):
            self._expect(kind)
        match kind:
            case "kill":
                return (self._kill(),)
            case "update":
                return (("update", *self._settings(), name),)
            case "rename":
                self._names += 1
                self.name = f"{name.partition('.')[0]}.{self._names}"
                return (("rename", name, self.name),)
            case "commit":
                return (("commit", name, f"{IMAGE}-saved"),)
            case "cp":
                return (("cp", f"{name}:/bin/busybox", f"{self.out}/copy"),)
            case "exec":
                code = chance.choice((0, 5))
                return (("exec", name, "sh", "-c", f"{WORK % 400_000}; exit {code}"),)
            case "again":
                return (("rm", "-f", name), self.start)
            case _:
                return ((kind, name),)

    def _kill(self) -> tuple[str, ...]:
        if self._is_stopped:
            signal = "CONT"
        else:
            signal = self.chance.choice((*ENDS, *ENDS, "USR1", "USR1", "HUP", "WINCH", "STOP"))
        self._is_stopped = signal == "STOP" and self._state != "ended"
        if self._state != "ended":
            self._state = "ended" if signal in ENDS else "running"
        return ("kill", "--signal", signal, self.name)

    def _settings(self) -> tuple[str, ...]:
        chance = self.chance
        return chance.choice(
            (
                ("--cpu-shares", str(chance.choice((50, 500, 1500, 4096)))),
                ("--cpus", str(chance.choice((0.8, 1.2, 1.7)))),
                ("--cpuset-cpus", chance.choice(("0", "1", "0-1"))),
                ("--memory", "300m", "--memory-swap", "600m"),
                ("--restart", chance.choice(("no", "unless-stopped", "on-failure:2"))),
            )
        )

    def _expect(self, kind: str) -> None:
        if kind == "stop":
            self._state = "ended"
        elif kind in ("restart", "again", "start"):
            self._state = "running" if self._state != "paused" or kind != "start" else "paused"
        elif self._state != "ended":
            self._state = "paused" if kind == "pause" else "running"
