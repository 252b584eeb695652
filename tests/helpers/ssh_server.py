"""An SSH server of this machine's own, and an `ssh` that may log in to it."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin:/bin")


class SshServer:
    """sshd on a port of its own; `path` is a folder with an `ssh` that knows its keys."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bin"
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        engine = os.environ.get("DOCKER_HOST", "").removeprefix("unix://")
        self.url = f"ssh://127.0.0.1:{self.port}{engine}"

    def __enter__(self) -> Self:
        for name in ("host_key", "user_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / name)],
                check=True,
            )
        (self._folder / "authorized").write_text((self._folder / "user_key.pub").read_text())
        key = (self._folder / "host_key.pub").read_text()
        (self._folder / "known").write_text(f"[127.0.0.1]:{self.port} {key}")
        (self._folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self._folder}/host_key\n"
            f"AuthorizedKeysFile {self._folder}/authorized\nStrictModes no\nUsePAM no\n"
            f"PidFile none\nPasswordAuthentication no\n"
        )
        (self._folder / "ssh_config").write_text(
            f"IdentityFile {self._folder}/user_key\nUserKnownHostsFile {self._folder}/known\n"
            "IdentitiesOnly yes\n"
        )
        self.path.mkdir()
        ssh = self.path / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self._folder}/ssh_config "$@"\n')
        ssh.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        self._server = subprocess.Popen(
            [SSHD or "", "-D", "-e", "-f", str(self._folder / "sshd_config")],
            stderr=subprocess.DEVNULL,
        )
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait()
