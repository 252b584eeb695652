"""The pipe as a service of systemd: dl-apply --install-service and --remove-service.

The unit is that of samples/systemd/dltools-stream.service: confined, with leases, and with an undo
whatever ends it. What is removed leaves nothing behind.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import typer

from dltools.apply.refusals import Rules
from dltools.cli.apply.request import Request, rules_of
from dltools.cli.exits import print_message
from dltools.cli.remarks import as_root, print_remark
from dltools.engine.state_folder import SYSTEM
from dltools.errors import AccessError, ConfigError, OutputError, UnavailableError
from dltools.whole_files import atomic_file

NAME = "dltools-stream"
_MARK = "# Written by dl-apply --install-service; dl-apply --remove-service removes it.\n"
_TOOLS = ("dl-probe", "dl-plan", "dl-apply")
_SAFE = re.compile(r"[\w./=:@,+-]+", re.ASCII)
"""What stands for itself in a unit and in a shell."""

_STARTS_S = 3.0
"""How long a service is watched that has just been started: one that cannot work ends by then."""

_WAITING = "/run/dltools/waiting"
"""The file that tells all users who waits."""

_BY_POLICY = {"flowcon": " --set itval=20"}
"""Parameters of policies that suit a sample every ten seconds."""

_UNITS = (Path(__file__).parent, Path(__file__).parents[3] / "samples/systemd")
"""Where the unit is that is written: beside this file in a package, else in the source."""


@dataclass(frozen=True, slots=True)
class PipeService:
    """The unit's file, its pipe, where systemd shows that it runs, and the state directory of the
    service. `labels`: only containers with all of these labels are seen and changed; `contact`:
    whom to ask."""

    policy: str = "flowcon"
    labels: Sequence[str] = ()
    file: Path = Path(f"/etc/systemd/system/{NAME}.service")
    running: Path = Path("/run/systemd/system")
    home: Path = SYSTEM
    contact: str = ""

    @property
    def pipe(self) -> str:
        """The command line that the service runs."""
        chosen = "".join(f" --label {label}" for label in self.labels)
        policy = f"--policy {self.policy}{_BY_POLICY.get(self.policy, '')}"
        told = f" --tell {_WAITING}" + (f" --contact {self.contact}" if self.contact else "")
        return f"dl-probe -i 10s{chosen} | dl-plan {policy} | dl-apply{chosen}{told}"

    def text(self, folder: str = "") -> str:
        """Return the unit, in which the tools are found in `folder` first. Raises `ConfigError` for
        what a unit cannot hold."""
        for word in (*self.labels, *filter(None, (folder, self.contact))):
            if not _SAFE.fullmatch(word):
                raise ConfigError(
                    f"{word!r} cannot be in a unit: edit samples/systemd/{NAME}.service by hand"
                )
        file = next(path for path in _UNITS if (path / f"{NAME}.service").exists())
        _, _, unit = (file / f"{NAME}.service").read_text().partition("\n")
        unit = unit.replace(PipeService().pipe, self.pipe)
        return unit.replace("=PATH=", f"=PATH={folder}:") if folder else unit

    def install(self) -> None:
        """Write, enable and start the unit, and say what was done. Raises `AccessError`,
        `ConfigError`, `OutputError` and `UnavailableError`."""
        text = _MARK + self.text(_folder_of_tools())
        self._check()
        try:
            with atomic_file(self.file) as out:
                out.write(text.encode())
            self.file.chmod(0o644)
        except OSError as error:
            raise OutputError(f"cannot create {self.file}: {error.strerror}") from error
        _systemctl("daemon-reload")
        _systemctl("enable", NAME)
        _systemctl("restart", NAME)
        self._watch()
        for line in (
            f"wrote {self.file} and started it, now and at each boot: {self.pipe}",
            "however it ends, it restores all settings",
            f"journalctl -u {NAME} -f      shows each change in a line",
            f"cat {_WAITING}              shows every user what waits, and until when",
            f"{as_root('dl-apply', '--status')}              shows what is changed now",
            f"{as_root('dl-apply', '--remove-service')}      stops it, restores everything, "
            "and removes it",
        ):
            print(line)

    def stop(self) -> bool:
        """Stop and disable the service, whose end puts everything back; tell whether there is one.
        Raises `AccessError`, `ConfigError` and `UnavailableError`."""
        self._check()
        if not self.file.exists():
            print_remark(f"no service to remove: {self.file} is not there")
            return False
        _systemctl("disable", "--now", NAME)
        return True

    def forget(self) -> None:
        """Remove the unit of the service that was stopped, and the state directory if nothing is on
        record there; say what was done."""
        self.file.unlink(missing_ok=True)
        _systemctl("daemon-reload")
        with suppress(UnavailableError):  # it has not failed
            _systemctl("reset-failed", NAME)
        print(f"removed {self.file}; every container is as it was")
        if kept := _remove_empty(self.home):
            print_message(f"{self.home} is kept: {', '.join(kept)} is there")

    def _check(self) -> None:
        if os.geteuid() != 0:
            raise AccessError(f"a service needs root: type {as_root('dl-apply')} for dl-apply")
        if not self.running.exists() or shutil.which("systemctl") is None:
            raise UnavailableError(
                "systemd does not run here: cron can run the tools, see samples/cron/dltools"
            )
        if self.file.exists() and not self.file.read_text(errors="replace").startswith(_MARK):
            raise ConfigError(
                f"{self.file} was not written by --install-service: disable and remove it first"
            )

    def _watch(self) -> None:
        """Raise `UnavailableError` if the service ends again at once."""
        until = time.monotonic() + _STARTS_S
        while time.monotonic() < until:
            time.sleep(0.5)
            state = _systemctl("show", "--property=ActiveState", "--value", NAME)
            restarts = _systemctl("show", "--property=NRestarts", "--value", NAME)
            if state not in ("active", "activating", "reloading") or restarts not in ("", "0"):
                raise UnavailableError(
                    f"{NAME} does not stay up: journalctl -u {NAME} -n 20 says why; "
                    "dl-apply --remove-service removes it"
                )


def _folder_of_tools() -> str:
    """Return the folder that all tools are in, as root's shell finds them. Raises `ConfigError`."""
    own = Path(sys.argv[0]).resolve().parent
    for folder in (own, *(Path(path).parent for path in (shutil.which("dl-apply"),) if path)):
        if all(os.access(folder / tool, os.X_OK) for tool in _TOOLS):
            return str(folder)
    raise ConfigError(f"{', '.join(_TOOLS)} are not in one folder: install dltools first")


def _systemctl(*words: str) -> str:
    """Run systemctl, and return what it prints. Raises `UnavailableError`."""
    try:
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, timeout=180)
    except (OSError, subprocess.SubprocessError) as error:
        raise UnavailableError(f"systemctl {' '.join(words)}: {error}") from error
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise UnavailableError(f"systemctl {' '.join(words)}: {why}")
    return done.stdout.strip()


def _remove_empty(home: Path) -> list[str]:
    """Remove a state directory in which nothing is on record; return what is there else."""
    if not home.is_dir():
        return []
    paths = (path for path in home.rglob("*") if not path.is_dir() and path.suffix != ".lock")
    kept = sorted(str(path.relative_to(home)) for path in paths)
    if not kept:
        shutil.rmtree(home)
    return kept


def service_asked(asked: Request) -> PipeService | None:
    """Return the service that a request is about, None for none. Raises `BadParameter` where
    options contradict each other, and `ConfigError` for an unknown policy."""
    if not asked.installs_service and not asked.removes_service:
        if asked.policy is not None:
            raise typer.BadParameter("--policy is for --install-service; else give it to dl-plan")
        return None
    if (
        (asked.installs_service and asked.removes_service)
        or any((asked.undoes, asked.stops, asked.tell, asked.shows_status, asked.shows_history))
        or any((asked.releases, asked.restores, asked.names_engines, asked.state_directory))
        or (asked.input, asked.lease_s, asked.hold_s) != ("-", None, None)
        or rules_of(asked) != Rules(tuple(asked.labels), [])
        or (asked.removes_service and (asked.policy or asked.labels or asked.contact))
    ):
        raise typer.BadParameter(
            "--install-service takes only --policy, --label, --contact and --dry-run, "
            "--remove-service none"
        )
    from dltools.plan.policy import registry

    name = asked.policy or "flowcon"
    registry.get(name, ())
    return PipeService(name, tuple(asked.labels), contact=asked.contact)
