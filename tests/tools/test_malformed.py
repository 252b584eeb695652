"""Malformed input of every kind: one line that says what is wrong, and never a bug's exit code."""

import json
from pathlib import Path

import pytest
from helpers import fake_engine
from helpers.encoding import encode
from helpers.observed_rows import container, node, point
from helpers.tools import Tools, complaint

from dltools.cli.exits import Exit
from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.table import to_table

DATA, CONFIG, USAGE = Exit.DATA, Exit.CONFIG, Exit.USAGE
ZERO = "/dev/zero"
JOBS = '{"policy":"fair","name":"%s","arrival":%s,"start":0,"finish":%s}\n'
DLL = 'DLLL {"type":"LOG","step":1,"elapsedtime":1e300,"data":{"loss":1}}\n'


def recording(cpu_count: float = 2.0) -> bytes:
    rows = []
    for second in (0, 1):
        rows += [node(second, cpu_count), container(second, "a", second), point(second, "a", 1.0)]
    return encode(PARQUET, to_table(rows))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files that are all at fault but `rec`."""
    files = {
        "digits.toml": f'[[job]]\nname = "j"\nwork = 1{"0" * 400}\n',
        "more-digits.toml": f'[[job]]\nname = "j"\nwork = 1{"0" * 5000}\n',
        "targets.toml": f"[a]\nepochs = 1{'0' * 5000}\n",
        "far.jsonl": JOBS % ("a", "-1e308", "1"),
        "endless.jsonl": JOBS % ("a", "0", "1e400"),
        "plan.jsonl": '{"kind":"plan","v":1,"policy":"noop"}\n{"kind":"end","actions":0}\n',
        "results.jsonl": '{"kind":"result","id":1,"status":"applied"}\n',
        "rec.csv": "time,host,kind\n",
        "jobs.jsonl": JOBS % ("a", "0", "1"),
        "a.log": "loss: 1\nloss: 0.5\n",
        "elapsed.log": DLL,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "rec").write_bytes(recording())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place", "fake_engine")
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("dl-sim digits.toml", DATA, "digits.toml: job j: work must be between -1e300 and 1e300"),
        ("dl-sim more-digits.toml", DATA, "more-digits.toml: Exceeds the limit"),
        ("dl-sim --generate fixed:9999999", CONFIG, "N is between 1 and 1000000"),
        (f"dl-sim {ZERO}", DATA, f"{ZERO}: more than 64 MiB: is it the right input?"),
        (f"dl-sim --from {ZERO}", DATA, f"{ZERO}: not dltools observations"),
        (f"dl-plan {ZERO}", DATA, f"{ZERO}: not dltools observations"),
        (f"dl-plan rec --targets {ZERO}", CONFIG, f"{ZERO}: more than 64 MiB"),
        (f"dl-plan rec --state {ZERO}", DATA, f"{ZERO}: a line of more than 64 MiB"),
        ("dl-plan rec --targets targets.toml", CONFIG, "targets.toml: Exceeds the limit"),
        (f"dl-apply {ZERO}", DATA, f"{ZERO}: a line of more than 64 MiB"),
        (f"dl-report {ZERO}", DATA, f"{ZERO}: no line end in 8 MiB"),
        ("dl-report far.jsonl", DATA, "row 1: arrival is not a number of seconds or jobs: -1e+308"),
        ("dl-report endless.jsonl", DATA, "row 1: finish is not a number of seconds or jobs: inf"),
        ("dl-apply rec", DATA, "rec: this is Parquet: put dl-plan between"),
        ("dl-apply --dry-run --offline rec.csv", DATA, "observations: put dl-plan between"),
        ("dl-apply jobs.jsonl", DATA, "this is a table of jobs: give it to dl-report"),
        ("dl-plan plan.jsonl", DATA, "plan.jsonl: this is a plan: give it to dl-apply"),
        ("dl-plan results.jsonl", DATA, "what dl-apply has printed: give it to dl-report"),
        ("dl-plan jobs.jsonl", DATA, "this is a table of jobs: give it to dl-report"),
        ("dl-sim plan.jsonl", DATA, "plan.jsonl: this is a plan: give it to dl-apply"),
        ("dl-sim --from plan.jsonl", DATA, "plan.jsonl: this is a plan: give it to dl-apply"),
        ("dl-sim rec", DATA, "this is Parquet: run its containers again with --from"),
        ("dl-report plan.jsonl", DATA, "plan.jsonl: plans and results show no jobs"),
        (f"dl-probe {ZERO}", DATA, "MiB without a line end: not a log"),
        ("dl-probe --name *", CONFIG, "--name '*': no argument for repetition operator"),
        ("dl-probe --name (", CONFIG, "--name '(': missing )"),
        ("dl-apply --name (", CONFIG, "--name '(': missing )"),
        ("dl-probe --name \udcff", CONFIG, "not valid Unicode"),
        ("dl-probe --pattern (?<=x)(?P<loss>1)", CONFIG, "lookaround, backreferences"),
    ],
)
def test_one_line_says_what_is_wrong(tool, line, code, said) -> None:
    name, *arguments = line.split(" ")
    done = tool(name, *arguments, timeout=120)
    assert done.returncode == code, done.stderr
    assert said in complaint(done.stderr)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dl-sim --from rec digits.toml", "replace FILE"),
        ("dl-sim --generate fixed:3 --gap 99999999999999d", "longer than thirty years"),
        ("dl-probe a.log --start 0001-01-01T00:00+14:00", "end of the calendar"),
    ],
)
def test_what_cannot_be_meant_is_a_wrong_use(tool, line, said) -> None:
    name, *arguments = line.split(" ")
    done = tool(name, *arguments)
    assert done.returncode == USAGE
    assert said in done.stderr.decode()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("file", ["a.log", "elapsed.log"])
def test_a_log_at_the_end_of_the_calendar_is_read(tool, file) -> None:
    done = tool("dl-probe", file, "--start", "9999-12-31T23:59:59Z")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "name", ["dl-plan", pytest.param("dl-apply", marks=pytest.mark.engine), "dl-report", "dl-sim"]
)
@pytest.mark.slow
def test_a_text_without_a_line_is_refused_early(tool, tmp_path, name) -> None:
    done = tool.shell(f"(printf '{{'; cat {ZERO}) | {name}", tmp_path / "bin")
    assert done.returncode == DATA
    assert b"MiB" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("count", [-1.0, 0.0, float("nan"), float("inf")])
def test_a_number_of_cpus_that_is_none_is_told_once(tool, count) -> None:
    done = tool("dl-plan", input=recording(count))
    assert done.returncode == 0
    assert complaint(done.stderr) == f"dl-plan: node: a cpu_count of {count:g} is ignored"


@pytest.mark.parametrize("id_", ["a/b", "../containers/json", "", ".", "..", "a?b", "a b"])
def test_an_id_of_no_container_is_gone(tool, engine, id_) -> None:
    del engine
    records = [json.loads(line) for line in fake_engine.plan({"cpus": 0.5}).splitlines()]
    records[1] |= {"container": {"id": id_, "name": "x"}, "host": host(tool)}
    plan = b"\n".join(json.dumps(record).encode() for record in records)
    done = tool("dl-apply", input=plan)
    assert (done.returncode, done.stderr) == (Exit.RETRY, b"")
    assert json.loads(done.stdout)["error"] == "the container no longer exists"


def host(tool: Tools) -> str:
    rows = tool("dl-probe", "--label", "dltools-test=none", "--format", "jsonl").stdout
    return str(json.loads(rows.splitlines()[0])["host"])


@pytest.mark.slow
def test_half_of_a_surrogate_pair_is_no_text(tool, place) -> None:
    plan = fake_engine.plan({"cpus": 0.5}).replace(b'"name":"', b'"name":"\\ud800')
    done = tool("dl-apply", "--dry-run", "--offline", input=plan)
    assert done.returncode == DATA
    assert "line 2: not JSON" in complaint(done.stderr)
    (place / "jobs.jsonl").write_text(JOBS % ("\\ud800", "0", "1"))
    assert tool("dl-report", "jobs.jsonl", "-o", "x.md").returncode == 0
    assert tool("dl-report", "\udcff=rec", "-o", "x.html").returncode == 0
    labels = '{"dltools.metric": "\\ud800", "dltools.target": "1"}'
    rows = [node(0), container(0, "a", 20, labels=labels), point(0, "a", 1.0)]
    for more in (), ("--format", "table", "--quiet"):
        done = tool("dl-plan", "-p", "tradl", *more, input=encode(PARQUET, to_table(rows)))
        assert (done.returncode, done.stderr) == (0, b"")
    log = b"".join(b'{"step": %d, "\\ud800loss": 0.%d}\n' % (step, step) for step in range(1, 4))
    for more in (), ("--list-metrics",), ("--format", "table"), ("-o", "log.parquet"):
        done = tool("dl-probe", "-", *more, input=log)
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_damaged_state_is_no_bug(tool, place) -> None:
    saved = (
        tool("dl-plan", "rec")
        .stdout.replace(b'"newest":1', b'"newest":"1')
        .replace(b',"memory"', b'","memory"')
    )
    (place / "state").write_bytes(saved)
    done = tool("dl-plan", "rec", "--state", "state")
    assert done.returncode == DATA
    assert "state: damaged state: " in complaint(done.stderr)
