"""Processes in a made-up /proc: what they have mapped, their command lines and environments."""

from collections.abc import Mapping
from pathlib import Path

TORCH = "/usr/lib/python3/dist-packages/torch/lib/libgomp.so.1"
BUNDLED = "/opt/venv/lib/scikit_learn.libs/libgomp-a34b3233.so.1.0.0"
MKL = "/opt/conda/lib/libiomp5.so"
LLVM = "/usr/lib/llvm-19/lib/libomp.so.5"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


def maps(*paths: str) -> str:
    return "".join(
        f"7f30{n:04x}0000-7f30{n:04x}8000 r-xp 00000000 00:2a 1234{n}    {path}\n"
        for n, path in enumerate(paths)
    )


def process(
    root: Path,
    pid: int,
    *paths: str,
    threads: int = 1,
    environ: Mapping[str, str] | None = None,
    command: str = "python3 train.py",
) -> int:
    """Make a process; blanks separate the words of its command line."""
    directory = root / "proc" / str(pid)
    for number in range(threads):
        (directory / "task" / str(pid + number)).mkdir(parents=True)
    (directory / "maps").write_text(maps(*paths))
    (directory / "cmdline").write_text(command.replace(" ", "\0") + "\0")
    variables = {"SECRET": "hunter2", "PATH": "/bin"} | dict(environ or {})
    text = "".join(f"{name}={value}\0" for name, value in variables.items())
    (directory / "environ").write_text(text)
    return pid
