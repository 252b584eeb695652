"""Hooks: commands without a shell, with a limit of time."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import pytest
from helpers.containers import eventually

from dltools.apply.deliver.hook import Hook


def script(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def run(command: tuple[str, ...], limit_s: float = 60, path: Path = Path("/x")) -> str | None:
    """Run a hook to its end, and return why it failed."""
    hook = Hook(command, limit_s).begin(path)
    assert hook.is_over(math.inf)
    return hook.failure


def test_the_path_is_the_last_argument_and_no_shell_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "$HOME; x"
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    assert run((*script(code), str(tmp_path / "said")), path=path) is None
    assert (tmp_path / "said").read_text() == str(path)


def test_what_it_prints_is_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    run(script("print('sent')"))
    assert capfd.readouterr() == ("", "sent\n")


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (script("exit(3)"), f"the hook {sys.executable} failed with exit status 3"),
        (script("import os; os.kill(os.getpid(), 9)"),
         f"the hook {sys.executable} was killed by signal 9"),
        (("/no/such/hook",), "the hook /no/such/hook cannot be run: No such file or directory"),
        (("/etc/passwd",), "the hook /etc/passwd cannot be run: Permission denied"),
    ],
)  # fmt: skip
def test_a_failure_is_told(hook: tuple[str, ...], why: str) -> None:
    assert run(hook) == why


def test_a_hook_that_hangs_is_killed_with_all_that_it_has_started(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    code = (
        "import subprocess, time; p = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(said)!r}, 'w').write(str(p.pid)); time.sleep(600)"
    )
    begun = time.monotonic()
    assert run(script(code), 3) == f"the hook {sys.executable} was killed: it took more than 3 s"
    assert time.monotonic() - begun < 60
    child = int(said.read_text())
    eventually(lambda: not is_running(child), seconds=30)


def test_nobody_has_to_wait_for_a_hook(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    hook = Hook(("sh", "-c", f"read line < {go}; exit 4"), 60).begin(Path("/x"))
    assert not hook.is_over()
    assert not hook.is_over(0.05)
    go.write_text("go\n")
    assert hook.is_over(60)
    assert hook.is_over()
    assert hook.failure == "the hook sh failed with exit status 4"


def test_a_hook_is_killed_when_nobody_is_to_hear_of_it() -> None:
    hook = Hook(("sleep", "600"), 600).begin(Path("600"))
    hook.kill()
    assert (hook.is_over(), hook.failure) == (True, None)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return " Z " not in Path(f"/proc/{pid}/stat").read_text()
