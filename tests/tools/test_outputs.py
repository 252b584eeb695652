"""What -o may name: links, devices, FIFOs, descriptors and directories, for every tool that writes;
and the format, which a suffix decides."""

import json
import os
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.examples import some_of
from helpers.fake_engine import FakeEngine
from helpers.tools import Tools, complaint

from dltools.cli.destinations import check
from dltools.cli.exits import Exit
from dltools.cli.formats import ObservationFormat, choose_observation_format
from dltools.errors import OutputError

WORKLOAD = b'[[job]]\nname = "a"\nwork = 20\nthreads = 2\n'
JOBS = b'{"policy":"noop","seed":0,"name":"a","arrival":0.0,"start":0.0,"finish":9.0}\n'

Done = subprocess.CompletedProcess[bytes]
Write = Callable[..., Done]


@pytest.fixture
def write(tool: Tools, fake_engine: FakeEngine) -> Write:
    """Run a writer of WRITERS: `write("a sample", target, stdout=...)`."""

    def run(kind: str, target: Path | str, *more: str, **how: object) -> Done:
        if kind == "report html":
            pytest.importorskip("matplotlib")
        name, arguments, option, input_ = WRITERS[kind]
        return tool(
            name,
            *arguments,
            *more,
            option,
            target,
            input=tool("dl-probe").stdout if input_ is None else input_,
            **how,
        )

    del fake_engine
    return run


WRITERS: dict[str, tuple[str, tuple[str, ...], str, bytes | None]] = {
    "report csv": ("dl-report", ("--format", "csv"), "-o", JOBS),
    "report html": ("dl-report", ("--format", "html"), "-o", JOBS),
    "sample parquet": ("dl-probe", (), "-o", b""),
    "sample jsonl": ("dl-probe", ("--format", "jsonl"), "-o", b""),
    "sample table": ("dl-probe", ("--format", "table"), "-o", b""),
    "sample prom": ("dl-probe", ("--format", "prom"), "-o", b""),
    "stream arrow": ("dl-probe", ("-i", "0.1", "-c", "2"), "-o", b""),
    "stream jsonl": ("dl-probe", ("-i", "0.1", "-c", "2", "--format", "jsonl"), "-o", b""),
    "stream parquet": ("dl-probe", ("-i", "0.1", "-c", "2", "--format", "parquet"), "-o", b""),
    "stream prom": ("dl-probe", ("-i", "0.1", "-c", "2", "--format", "prom"), "-o", b""),
    "plan state": ("dl-plan", (), "--save-state", None),
    "simulation": ("dl-sim", ("-p", "noop"), "-o", WORKLOAD),
}
every_writer = pytest.mark.parametrize("kind", some_of(WRITERS, 5))
each_tool = pytest.mark.parametrize(
    "kind", ["report csv", "sample jsonl", "stream arrow", "plan state", "simulation"]
)


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A device like /dev/full, of our own."""
    path = tmp_path / "full"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        path.open("wb").close()
    except PermissionError:
        pytest.skip("making a device needs root")
    return path


@every_writer
def test_a_full_device_stays_a_device(kind, write, full) -> None:
    done = write(kind, full)
    assert done.returncode == Exit.IO, done.stderr
    assert complaint(done.stderr).endswith(f"{full}: No space left on device")
    assert stat.S_ISCHR(full.stat().st_mode)
    assert [file.name for file in full.parent.iterdir() if file.name.startswith(".")] == []


@every_writer
def test_a_link_is_followed(kind, write, tmp_path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    link.symlink_to("there/hop")
    (tmp_path / "there" / "hop").symlink_to(target)
    target.write_bytes(b"old")
    done = write(kind, link)
    assert done.returncode == 0, done.stderr
    assert link.is_symlink()
    assert (tmp_path / "there" / "hop").is_symlink()
    assert target.read_bytes() not in (b"", b"old")


@each_tool
def test_a_link_that_leads_nowhere_yet_is_followed(kind, write, tmp_path) -> None:
    (tmp_path / "link").symlink_to("file")
    assert write(kind, tmp_path / "link").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes()


@every_writer
def test_a_fifo_is_written_to(kind, write, tmp_path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
    reader.start()
    done = write(kind, fifo)
    assert done.returncode == 0, done.stderr
    reader.join(20)
    assert read[0]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@each_tool
@pytest.mark.parametrize("name", ["/proc/self/fd/1", "/proc/thread-self/fd/1", "/dev/fd/1"])
def test_a_descriptor_is_written_to(kind, name, write) -> None:
    done = write(kind, name)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@every_writer
def test_standard_output_is_written_to(kind, write, tmp_path) -> None:
    link = tmp_path / "stdout"  # and not /dev/stdout: a tool that fails here would replace it
    link.symlink_to("/proc/self/fd/1")
    file = tmp_path / "file"
    file.write_bytes(b"before\n")
    with file.open("ab") as out:
        done = write(kind, link, stdout=out)
    assert done.returncode == 0, done.stderr
    assert file.read_bytes().startswith(b"before\n")
    assert len(file.read_bytes()) > len(b"before\n")
    assert link.is_symlink()


@each_tool
def test_a_descriptor_that_is_not_open_is_refused(kind, write) -> None:
    done = write(kind, "/dev/fd/77")
    assert done.returncode == Exit.CANT_CREATE
    assert complaint(done.stderr).endswith("cannot create /dev/fd/77: Bad file descriptor")


@pytest.mark.parametrize("name", ["/", "//", "/.", "/tmp/.."])
def test_the_root_directory_is_refused(name: str) -> None:
    # Without running a tool: one that fails here would write into it.
    with pytest.raises(OutputError, match=r"^cannot create .*: it is a directory$"):
        check(Path(name))
    with pytest.raises(OutputError, match="it is the root directory"):
        choose_observation_format(ObservationFormat.AUTO, name, is_stream=False)


@each_tool
def test_a_directory_or_no_name_is_no_file(kind, write, tmp_path) -> None:
    names = {tmp_path: Exit.CANT_CREATE, "": Exit.USAGE}
    for name, code in [*names.items()][WRITERS[kind][0] == "dl-probe" :]:
        done = write(kind, name, cwd=tmp_path)
        assert done.returncode == code
        complaint(done.stderr)
        assert done.stdout == b""
    assert [file.name for file in tmp_path.iterdir() if file.name != "docker.sock"] == []


@pytest.mark.parametrize(
    "line",
    [
        "dl-probe data -o data --format csv",
        "dl-probe - -o data --format csv",
        "dl-plan data --save-state ./data",
        "dl-plan other --targets data --save-state data",
        "dl-sim data -p noop -o data",
        "dl-sim --from data -p noop -o link",
        "dl-report data -o data --format csv",
        "dl-report run=data -o link --format csv",
        "dl-report other --prices data -o data --format csv",
    ],
)
def test_no_input_is_replaced(tool, tmp_path, line) -> None:
    (tmp_path / "data").write_bytes(b"loss: 0.5\n")
    (tmp_path / "link").symlink_to("data")
    name, *arguments = line.split()
    with (tmp_path / "data").open("rb") as stdin:
        done = tool(name, *arguments, cwd=tmp_path, stdin=stdin)
    assert done.returncode == Exit.CANT_CREATE
    assert "it is an input" in complaint(done.stderr)
    assert (tmp_path / "data").read_bytes() == b"loss: 0.5\n"


def test_a_log_is_not_read_into_itself(tool, tmp_path) -> None:
    (tmp_path / "log").write_bytes(b"step 1 loss: 0.5\n" * 20_000)
    with (tmp_path / "log").open("ab") as stdout:
        done = tool("dl-probe", tmp_path / "log", "--format", "csv", stdout=stdout)
    assert done.returncode == Exit.CANT_CREATE
    assert "/dev/stdout: it is an input" in complaint(done.stderr)
    assert (tmp_path / "log").stat().st_size == 17 * 20_000


@each_tool
def test_links_in_a_circle_are_refused(kind, write, tmp_path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    done = write(kind, tmp_path / "a")
    assert done.returncode == Exit.CANT_CREATE
    assert "symbolic links" in complaint(done.stderr)
    assert (tmp_path / "a").is_symlink()


@pytest.mark.slow
@pytest.mark.usefixtures("fake_engine")
def test_a_reader_of_a_fifo_that_goes_ends_the_tool(tool, tmp_path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    probe = f"dl-probe -i 0.05 --format jsonl -o {fifo}"
    done = tool.shell(f"{probe} & head -1 {fifo}; wait $!", tmp_path / "bin", timeout=30)
    assert done.returncode == Exit.PIPE, done.stderr
    assert json.loads(done.stdout)["kind"] == "node"
    assert done.stderr == b""


# The format


def looks(path: Path) -> str:
    """The format that a file's first bytes show."""
    data = path.read_bytes()
    known = {
        b"PAR1": "parquet",
        b"\xff\xff\xff\xff": "arrow",
        b"{": "jsonl",
        b'"time",': "csv",
        b"run,": "csv",
        b"# HELP": "prom",
        b"<!DOCTYPE": "html",
        b"| RUN": "markdown",
        b"\x89PNG": "png",
        b"<?xml": "svg",
    }
    return next((name for start, name in known.items() if data.startswith(start)), "?")


OBSERVATIONS = (".csv", ".jsonl", ".parquet", ".arrow", ".arrows", ".prom")
SUFFIXES = {
    "dl-probe": (*OBSERVATIONS, ".CSV", ""),
    "dl-probe -i 0.1 -c 2": (*OBSERVATIONS, ".CSV"),
    "dl-probe --format csv": (".csv",),
    "dl-sim -p noop --format csv": OBSERVATIONS,
    "dl-report": (".csv", ".jsonl", ".md", ".html", ".png", ".svg"),
}
"""What the outputs of each command may be called."""


@pytest.mark.usefixtures("fake_engine")
@pytest.mark.parametrize(
    ("line", "suffix"), [(line, suffix) for line, found in SUFFIXES.items() for suffix in found]
)
def test_a_suffix_decides_the_format(line, suffix, tool, tmp_path) -> None:
    if suffix in (".html", ".png", ".svg"):
        pytest.importorskip("matplotlib")
    name, *options = line.split()
    file = tmp_path / f"x{suffix}"
    input_ = {"dl-sim": WORKLOAD, "dl-report": JOBS}.get(name, b"")
    done = tool(name, *options, "-o", file, input=input_)
    assert done.returncode == 0, done.stderr
    others = {".arrows": "arrow", ".md": "markdown", "": "parquet"}
    assert looks(file) == others.get(suffix, suffix[1:].lower())
    assert done.stdout.startswith(b"policy,") == (name == "dl-sim"), "the table, and no recording"


@pytest.mark.usefixtures("fake_engine")
@pytest.mark.parametrize("name", ["x.gz", "x.csv.zst", "x.xlsx"])
def test_a_suffix_of_no_format_is_refused_where_none_is_asked_for(name, tool, tmp_path) -> None:
    file = tmp_path / name
    for done in (
        tool("dl-probe", "-o", file),
        tool("dl-sim", "-p", "noop", "-o", file, input=WORKLOAD),
        tool("dl-report", "-o", file, input=JOBS),
    ):
        assert done.returncode == 2
        assert b"no format ends in" in done.stderr
        assert not file.exists()


@pytest.mark.parametrize(
    ("name", "format_", "file"),
    [("dl-probe", "jsonl", "x.csv"), ("dl-probe", "parquet", "x.arrows"),
     ("dl-probe", "table", "x.prom"), ("dl-report", "csv", "x.html"),
     ("dl-report", "png", "x.svg"), ("dl-report", "html", "x.CSV")],
)  # fmt: skip
def test_a_suffix_that_belies_the_format_is_refused(name, format_, file, tool, tmp_path) -> None:
    (tmp_path / file).write_bytes(b"old")
    done = tool(name, "--format", format_, "-o", tmp_path / file, input=JOBS)
    assert done.returncode == Exit.USAGE
    text = " ".join(done.stderr.decode().split())
    assert f"--format {format_}" in text
    assert (tmp_path / file).read_bytes() == b"old"
