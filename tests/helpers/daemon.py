"""A Docker engine of a test's own, which may be stopped and started again under its containers."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

from helpers.containers import IMAGE, Containers, ImageError, build_image, eventually

from dltools.engine.address import Address
from dltools.engine.docker.engine import DockerEngine, connect

START_S = 180


class DaemonError(Exception):
    """No engine can be started here; the message says why."""


class Daemon:
    """A dockerd with --live-restore: its containers run on while it is stopped. It has the image of
    the tests from when a block begins with it, and is gone with all of its own when that ends."""

    def __init__(self, hostname: str = "") -> None:
        if os.geteuid() != 0 or not all(map(shutil.which, ("dockerd", "unshare"))):
            raise DaemonError("a second dockerd takes root and dockerd itself")
        # Short: the path of a socket has 107 characters at most.
        self._home = Path(tempfile.mkdtemp(prefix="dl-"))
        self.url = f"unix://{self._home}/sock"
        self._hostname = hostname
        self._process: subprocess.Popen[bytes] | None = None
        self._api: Any = None

    @property
    def api(self) -> Any:
        from docker import APIClient

        self._api = self._api or APIClient(self.url, version="auto", timeout=30)
        return self._api

    def __enter__(self) -> Self:
        self.start()
        try:
            build_image(self.api)
        except ImageError:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.signal(signal.SIGCONT)
        self.remove()

    def containers(self) -> Containers:
        engine = DockerEngine(connect(Address(self.url, "the test")))
        return Containers(engine, IMAGE, self.api)

    def start(self) -> None:
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                # In a network of its own: with --bridge=none it would remove the host's docker0.
                [
                    *self._surroundings(),
                    "dockerd",
                    "--live-restore",
                    "--bridge=none",
                    "--iptables=false",
                    "--storage-driver=vfs",
                    f"--data-root={self._home}/root",
                    f"--exec-root={self._home}/exec",
                    f"--pidfile={self._home}/pid",
                    "-H",
                    self.url,
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            eventually(self._answers, seconds=START_S)
        except AssertionError as error:
            self.stop(signal.SIGKILL)
            raise DaemonError(f"dockerd does not come up: see {self._home}/log") from error

    def _surroundings(self) -> list[str]:
        """Return the command that starts it: as another host it has an id of its own, which the
        engine keeps in /etc/docker."""
        if not self._hostname:
            return ["unshare", "--net"]
        (self._home / "etc").mkdir(exist_ok=True)
        line = f"mount --bind {self._home}/etc /etc/docker; hostname {self._hostname}"
        return ["unshare", "--net", "--uts", "--mount", "sh", "-c", f'{line}; exec "$@"', "sh"]

    def _answers(self) -> bool:
        try:
            return bool(self.api.ping())
        except Exception:
            return False

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(180)
            self._process = None
            # A containerd that dies with it may stay a zombie, which the next one takes for alive.
            (self._home / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as one that makes it hang."""
        assert self._process is not None
        self._process.send_signal(number)

    def remove(self) -> None:
        if self._process is None:
            self.start()
        for found in self.api.containers(all=True):
            self.api.remove_container(found["Id"], force=True)
        self.stop()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if (place := line.split()[1]).startswith(f"{self._home}/"):
                subprocess.run(["umount", place], check=False)
        shutil.rmtree(self._home, ignore_errors=True)
