"""What the processes of a container are."""

import os
from pathlib import Path

import pytest
from helpers.made_processes import BUNDLED, LIBC, LLVM, MKL, TORCH, maps, process
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.distributed import Membership
from dltools.engine.process_search import (
    _OPENMP_VARIABLES,
    DEEP_LEARNING,
    THREAD_POOLS,
    OpenMP,
    Processes,
    interactive_program,
    libraries_in,
    openmp_runtimes_in,
    openmp_settings_in,
    search,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/opt/torch/lib/libtorch_cpu.so", {"libtorch"}),
        ("/opt/torch/lib/libtorch.so.2 (deleted)", {"libtorch"}),
        ("/opt/tensorflow/libtensorflow_cc.so.2", {"libtensorflow"}),
        ("/opt/tensorflow/python/_pywrap_tensorflow_internal.so", {"libtensorflow"}),
        ("/opt/jaxlib/xla_extension.so", {"jaxlib"}),
        ("/opt/jaxlib/mlir/_mlir_libs/_mlir.cpython-312-x86_64-linux-gnu.so", {"jaxlib"}),
        ("/opt/mxnet/libmxnet.so", {"libmxnet"}),
        ("/opt/paddle/base/libpaddle.so", {"libpaddle"}),
        ("/opt/onnxruntime/capi/libonnxruntime.so.1.17.0", {"libonnxruntime"}),
        ("/opt/onnxruntime_pybind11_state.cpython-312-x86_64-linux-gnu.so", {"libonnxruntime"}),
        ("/usr/local/cuda/lib64/libcudart.so.12.4.127", {"libcudart"}),
        ("/opt/nvidia/libcudart-9335f6a2.so.12", {"libcudart"}),
        (TORCH, set()),  # OpenMP alone, though it lies in a folder of that name
        ("/opt/lib/libtorchvision_ops.so", set()),
        ("/data/libtorch.so/weights.bin", set()),
        ("/data/notlibtorch.so", set()),
        ("/opt/jaxlib/version.py", set()),
        (LIBC, set()),
    ],
)
def test_deep_learning_is_known_by_the_names_of_files(path, expected) -> None:
    assert libraries_in(maps(LIBC, path, LIBC).encode(), DEEP_LEARNING) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0.3.21", {"libopenblas"}),
        ("/opt/numpy.libs/libscipy_openblas64_-ff651d7f.so", {"libopenblas"}),
        ("/opt/intel/libmkl_rt.so.2", {"libmkl"}),
        ("/opt/conda/lib/libmkl_intel_thread.so.2", {"libmkl"}),
        ("/opt/lib/libtbb12.so", {"libtbb"}),
        ("/opt/tokenizers/tokenizers.abi3.so", {"rayon"}),
        ("/opt/polars/polars.abi3.so", {"polars"}),
        ("/opt/_polars_runtime_32/_polars_runtime.abi3.so", {"polars"}),
        ("/usr/local/lib/libllama.so", {"llama.cpp"}),
        ("/app/libggml-cpu-haswell.so", {"llama.cpp"}),
        ("/usr/lib/libtbbmalloc.so.2", set()),
        ("/data/openblas/notes.txt", set()),
        (TORCH, set()),
    ],
)
def test_what_starts_threads_is_known_by_the_names_of_files(path, expected) -> None:
    assert libraries_in(maps(LIBC, path, LIBC).encode(), THREAD_POOLS) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/app/llama-server -m m.gguf", ("llama.cpp",)),
        ("llama-bench", ("llama.cpp",)),
        ("python3 /opt/torch/_inductor/compile_worker/__main__.py --workers=32", ("inductor=32",)),
        ("python3 /opt/torch/_inductor/compile_worker/__main__.py", ("inductor",)),
        ("python3 train.py llama-server", ()),
        ("llama-factory-cli train", ()),
    ],
)
def test_what_starts_threads_is_known_by_the_program(command, expected, tmp_path) -> None:
    pid = process(tmp_path, 7, LIBC, command=command)
    assert search([pid], tmp_path).thread_pools == expected


def test_the_workers_of_all_ranks_count(tmp_path) -> None:
    """Those of one rank have one command line, which says how many they are."""
    script = "python3 /opt/torch/_inductor/compile_worker/__main__.py --workers=32"
    pids = [
        process(tmp_path, 10 * rank + number, LIBC, command=f"{script} --parent={rank}")
        for rank in range(1, 3)
        for number in range(4)
    ]
    assert search(pids, tmp_path).thread_pools == ("inductor=64",)


def test_processes_without_a_runtime_have_none(tmp_path) -> None:
    pid = process(tmp_path, 7, LIBC, threads=9, environ={"OMP_NUM_THREADS": "2"})
    assert search([pid], tmp_path) == Processes()


def test_the_settings_are_those_of_the_widest_process_with_a_runtime(tmp_path) -> None:
    pids = [
        process(tmp_path, 7, LIBC, threads=9, environ={"OMP_NUM_THREADS": "9"}),
        process(tmp_path, 20, LIBC, TORCH, threads=4, environ={"OMP_WAIT_POLICY": "passive"}),
        process(tmp_path, 30, BUNDLED, MKL, environ={"OMP_NUM_THREADS": "1"}),
    ]
    expected = OpenMP("libgomp+libiomp5", "OMP_WAIT_POLICY=passive")
    assert search(pids, tmp_path).openmp == expected


def test_all_runtimes_and_the_first_program_are_told(tmp_path) -> None:
    pids = [
        process(tmp_path, 7, "/a/libtorch.so", command="/bin/sh /usr/bin/jupyter-lab"),
        process(tmp_path, 20, "/a/libcudart.so.12", command="/usr/sbin/sshd -D"),
    ]
    expected = Processes(runtimes=("libcudart", "libtorch"), program="jupyter-lab")
    assert search(pids, tmp_path) == expected


def test_a_process_that_has_ended_is_left_out(tmp_path) -> None:
    assert search([6, process(tmp_path, 7, TORCH)], tmp_path).openmp == OpenMP("libgomp")


def test_processes_that_may_not_be_read_are_told(tmp_path, monkeypatch) -> None:
    def refuse(path: Path, *_arguments: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    pid = process(tmp_path, 7, TORCH)
    monkeypatch.setattr("os.open", refuse)
    assert search([pid], tmp_path) == Processes(is_readable=False)


def test_the_variables_of_a_launcher_tell_the_job(tmp_path) -> None:
    meets = {"MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "29500", "WORLD_SIZE": "2"}
    pids = [process(tmp_path, 7, LIBC), process(tmp_path, 8, LIBC, environ=meets)]
    found = search(pids, tmp_path).membership
    assert found == Membership("10.0.0.2:29500", 2)
    local = [process(tmp_path, 9, LIBC, environ=meets | {"MASTER_ADDR": "localhost"})]
    assert search(local, tmp_path).membership is None
    shared = search(local, tmp_path, shares_network=True).membership
    assert shared == Membership("localhost:29500", 2)


def test_the_maps_of_what_a_training_has_forked_are_not_read(tmp_path, monkeypatch) -> None:
    """Data loaders have its command line and environment. What has forked before it had a runtime
    tells nothing of those forks."""
    pids = [
        process(tmp_path, 6, LIBC, environ={"A": "server"}),
        process(tmp_path, 7, "/a/libtorch.so", TORCH, environ={"A": "server"}, threads=2),
        process(tmp_path, 10, "/a/libtorch.so", TORCH, environ={"A": "server"}, threads=9),
        process(tmp_path, 20, "/a/libtorch.so", environ={"A": "rank"}),
        process(tmp_path, 21, "/a/libtorch.so", environ={"A": "server"}, command="python3 x.py"),
    ]
    opened: list[str] = []
    really_open = os.open

    def note(path: Path, *arguments: int) -> int:
        opened.append(f"{path.parent.name}/{path.name}")
        return really_open(path, *arguments)

    monkeypatch.setattr("os.open", note)
    found = search(pids, tmp_path)
    read = [name for name in opened if name.endswith("maps")]
    assert read == ["6/maps", "7/maps", "20/maps", "21/maps"]
    assert (found.runtimes, found.openmp) == (("libtorch",), OpenMP("libgomp"))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (TORCH, {"libgomp"}),
        (BUNDLED, {"libgomp"}),
        (f"{TORCH} (deleted)", {"libgomp"}),
        (MKL, {"libiomp5"}),
        (LLVM, {"libomp"}),
        ("/usr/lib/libomp-14.so", {"libomp"}),
        ("/usr/lib/libompitrace.so.40", set()),  # of Open MPI
        ("/usr/lib/libompl.so", set()),  # plans motions
        ("/data/libgomp.so/weights.bin", set()),
        ("/data/notlibgomp.so", set()),
    ],
)
def test_runtimes_are_known_by_the_names_of_their_files(path, expected) -> None:
    assert openmp_runtimes_in(maps(LIBC, path, LIBC).encode()) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (b"", ""),
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
)
def test_settings_are_the_variables_of_openmp(environ, expected) -> None:
    assert openmp_settings_in(environ) == expected


@given(st.dictionaries(st.sampled_from((*_OPENMP_VARIABLES, "SECRET", "TOKEN")), st.text()))
def test_no_other_name_and_no_strange_value_is_shown(variables) -> None:
    environ = "".join(f"{name}={value}\0" for name, value in variables.items())
    for entry in openmp_settings_in(environ.encode(errors="replace")).split():
        name, _, value = entry.partition("=")
        assert name in _OPENMP_VARIABLES
        assert value == "?" or (value.replace(",", "").isalnum() and len(value) < 40)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["jupyter-lab", "--ip=0.0.0.0"], "jupyter-lab"),
        (["/opt/conda/bin/python3.12", "/opt/conda/bin/jupyter-lab"], "jupyter-lab"),
        (["jupyter", "lab", "--port", "8888"], "jupyter-lab"),
        (["python3", "-m", "jupyter", "--debug", "notebook"], "jupyter-notebook"),
        (["/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "k.json"], "ipykernel_launcher"),
        (["tini", "-g", "--", "start-notebook.py"], "start-notebook"),
        (["jupyterhub-singleuser"], "jupyterhub-singleuser"),
        (["/usr/lib/code-server/lib/node", "/usr/lib/code-server", "--auth"], "code-server"),
        (
            ["/bin/sh", "-c", "exec ${ROOT}/bin/openvscode-server --host 0.0.0.0"],
            "openvscode-server",
        ),
        (["bash", "-lc", "PORT=1 jupyter lab"], "jupyter-lab"),
        (["/usr/lib/rstudio-server/bin/rserver", "--www-port"], "rserver"),
        (["/usr/sbin/sshd", "-D"], "sshd"),
        (["sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups"], "sshd"),
        (["env", "A=1", "jupyter-lab"], "jupyter-lab"),
        # An argument is not what runs.
        (["python", "train.py", "--name", "jupyter-lab"], ""),
        (["sh", "-c", "pkill jupyter-lab; python train.py"], ""),
        (["bash", "-lc", "cd /work && jupyter lab"], ""),  # that is a process of its own
        (["jupyter", "nbconvert", "--execute", "train.ipynb"], ""),
        (["postgres"], ""),
        (["/data/sshd/run"], ""),
        (["python3"], ""),
        (["sh", "-c"], ""),
        ([""], ""),
        ([], ""),
    ],
)
def test_the_program_is_what_runs(words, expected) -> None:
    assert interactive_program(words) == expected
