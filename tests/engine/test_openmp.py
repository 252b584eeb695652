"""What is found in the maps and the environment of processes, and what is left there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.openmp import VARIABLES, OpenMP, openmp_of, runtimes_in, settings_in

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
    root: Path, pid: int, *paths: str, threads: int = 1, environ: Mapping[str, str] | None = None
) -> int:
    """A process in a made-up /proc."""
    directory = root / "proc" / str(pid)
    for number in range(threads):
        (directory / "task" / str(pid + number)).mkdir(parents=True)
    (directory / "maps").write_text(maps(*paths))
    variables = {"SECRET": "hunter2", "PATH": "/bin"} | dict(environ or {})
    text = "".join(f"{name}={value}\0" for name, value in variables.items())
    (directory / "environ").write_text(text)
    return pid


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (TORCH, {"libgomp"}),
        (BUNDLED, {"libgomp"}),
        (f"{TORCH} (deleted)", {"libgomp"}),
        (MKL, {"libiomp5"}),
        (LLVM, {"libomp"}),
        ("/usr/lib/libomp-14.so", {"libomp"}),
        (LIBC, set()),
        ("/usr/lib/libompitrace.so.40", set()),  # of Open MPI
        ("/usr/lib/libompl.so", set()),  # plans motions
        ("/data/libgomp.so/weights.bin", set()),
        ("/data/notlibgomp.so", set()),
        ("[heap]", set()),
    ],
)
def test_runtimes_are_known_by_the_names_of_their_files(path: str, expected: set[str]) -> None:
    assert runtimes_in(maps(LIBC, path, LIBC).encode()) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (b"", ""),
        (b"HOME=/root\0", ""),
        (b"OMP_WAIT_POLICY=passive\0", "OMP_WAIT_POLICY=passive"),
        (b"OMP_WAIT_POLICY= PASSIVE \0", "OMP_WAIT_POLICY=PASSIVE"),
        (b"OMP_NUM_THREADS=4,2\0A=\xff\0", "OMP_NUM_THREADS=4,2"),
        (b"OMP_NUM_THREADS=2\0KMP_BLOCKTIME=200 ms", "KMP_BLOCKTIME=200ms OMP_NUM_THREADS=2"),
        (b"GOMP_SPINCOUNT=infinity\0GOMP_SPINCOUNT=0\0", "GOMP_SPINCOUNT=infinity"),  # as getenv
        (b"KMP_BLOCKTIME=infinite\0", "KMP_BLOCKTIME=infinite"),
        (b"OMP_NUM_THREADS=s3cr3t-t0ken\0", "OMP_NUM_THREADS=?"),
        (b"OMP_NUM_THREADS=\0", "OMP_NUM_THREADS=?"),
        (b"OMP_NUM_THREADS\0", "OMP_NUM_THREADS=?"),
        (b"OMP_NUM_THREADS=\x1b[2J\0", "OMP_NUM_THREADS=?"),
        (b"MY_OMP_NUM_THREADS=2\0OMP_NUM_THREADS_X=2\0omp_num_threads=2\0", ""),
        (b"SECRET=OMP_NUM_THREADS=2\0", ""),
    ],
)  # fmt: skip
def test_settings_are_the_variables_of_openmp(environ: bytes, expected: str) -> None:
    assert settings_in(environ) == expected


@given(st.dictionaries(st.sampled_from((*VARIABLES, "SECRET", "TOKEN")), st.text()))
def test_no_other_name_and_no_strange_value_is_shown(variables: dict[str, str]) -> None:
    environ = "".join(f"{name}={value}\0" for name, value in variables.items())
    for entry in settings_in(environ.encode(errors="replace")).split():
        name, _, value = entry.partition("=")
        assert name in VARIABLES
        assert value == "?" or (value.replace(",", "").isalnum() and len(value) < 40)


def test_processes_without_a_runtime_have_none(tmp_path: Path) -> None:
    pid = process(tmp_path, 7, LIBC, threads=9, environ={"OMP_NUM_THREADS": "2"})
    assert openmp_of([pid], tmp_path) == OpenMP()


def test_the_settings_are_those_of_the_widest_process_with_a_runtime(tmp_path: Path) -> None:
    pids = [
        process(tmp_path, 7, LIBC, threads=9, environ={"OMP_NUM_THREADS": "9"}),
        process(tmp_path, 20, LIBC, TORCH, threads=4, environ={"OMP_WAIT_POLICY": "passive"}),
        process(tmp_path, 30, BUNDLED, MKL, environ={"OMP_NUM_THREADS": "1"}),
    ]
    assert openmp_of(pids, tmp_path) == OpenMP("libgomp+libiomp5", "OMP_WAIT_POLICY=passive")


def test_a_process_that_has_ended_is_left_out(tmp_path: Path) -> None:
    assert openmp_of([6, process(tmp_path, 7, TORCH)], tmp_path) == OpenMP("libgomp")


def test_processes_that_may_not_be_read_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_arguments: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    pid = process(tmp_path, 7, TORCH)
    monkeypatch.setattr(Path, "open", refuse)
    assert openmp_of([pid], tmp_path) == OpenMP(is_readable=False)
