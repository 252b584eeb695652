"""What is found of OpenMP in maps and environments, and what is left there."""

from __future__ import annotations

import pytest
from helpers.made_processes import BUNDLED, LIBC, LLVM, MKL, TORCH, maps
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.openmp import VARIABLES, runtimes_in, settings_in


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
