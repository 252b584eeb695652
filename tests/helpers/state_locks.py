"""The lock of a state directory, held by another process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WATCHDOG = "dltools.apply.leases"

HOLDS_STATE = """
import sys, time
from pathlib import Path
from dltools.apply.locks import locked_state
with locked_state(Path(sys.argv[2])):
    print("ready", flush=True)
    time.sleep(float(sys.argv[3]))
"""


@contextmanager
def held(home: Path, module_name: str, seconds: float) -> Iterator[int]:
    """Hold the lock of a state for some seconds, as a process of a module; give its number."""
    words = [sys.executable, "-c", HOLDS_STATE, module_name, str(home), str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()
