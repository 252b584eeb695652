"""--help and --version answer at once: nothing heavy is imported for them."""

import subprocess
import sys

import pytest
from helpers.tools import TOOLS, environment

HEAVY = ("docker", "grpc", "google", "pyarrow", "pynvml", "rich", "requests", "numpy")

LOOK = """
import sys
sys.argv = ["{tool}", "{option}"]
from dltools.cli.{module} import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(" ".join(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("option", ["--help", "--version"])
@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_heavy_is_imported(tool, option) -> None:
    module = tool.removeprefix("dl-")
    code = LOOK.format(tool=tool, option=option, module=module, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert tool in done.stdout
    assert done.stderr.split() == []
