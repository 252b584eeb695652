"""A wall clock that a test steps under the tools that it starts; the machine's own stays."""

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


class NoCompilerError(Exception):
    """The clock cannot be built here."""


class SteppedClock:
    """`variables` are those of programs that see it. Time goes on by itself, and waits are real."""

    def __init__(self, home: Path) -> None:
        if shutil.which("cc") is None:
            raise NoCompilerError("a clock that can be stepped takes a C compiler")
        library, self._file = home / "stepped_clock.so", home / "stepped_clock"
        words = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"]
        subprocess.run(words, check=True)
        self.set(0)
        self.variables = {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """Set the clock to so many seconds after the true time."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))
