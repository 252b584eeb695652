"""Names that hold escapes: no table and no text for people lets a terminal obey them; data in files
and pipes stay as they are."""

import csv
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers.examples import some_of
from helpers.observed_rows import observed_hosts
from helpers.terminals import printed
from helpers.tools import Tools, command

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Action, Op, Plan
from dltools.cli.destinations import make_console
from dltools.cli.probe.tables import containers_table
from dltools.observations.table import Row, to_table

NAME = "evil[/b][red]\x1b]0;title\x07\x1b[31m\x9b2J\x7f\u202eexe"
WORKLOAD = f"[[job]]\nname = {json.dumps(NAME)}\nwork = 20\nthreads = 2\n".encode()


@pytest.fixture
def recording(tool: Tools, tmp_path: Path) -> Path:
    file = tmp_path / "evil.parquet"
    done = tool("dl-sim", "-p", "noop", "-i", "1s", "-o", file, input=WORKLOAD)
    assert done.returncode == 0, done.stderr
    return file


def plan() -> bytes:
    action = Action(1, Op.UPDATE, "h", "f" * 64, NAME, {"cpus": 0.5}, {}, NAME)
    return dump_plan(Plan(NAME, "2026-01-01T00:00:00Z", {}, {}, None, (action,))).encode()


BAR = re.compile(r"\x1b\[(\?25[hl]|2K|1A)")
"""What a bar of progress tells a terminal: to hide its cursor, to clear a line, to go up one."""


def assert_harmless(text: str) -> None:
    assert "evil" in text
    assert {c for c in BAR.sub("", text) if not c.isprintable()} - {"\n", "\r"} == set()


def test_dl_sim(tool) -> None:
    done = tool("dl-sim", "-p", "noop", "--jobs", "--format", "table", input=WORKLOAD)
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode())


@pytest.mark.parametrize("format_", some_of(["table", "markdown", "html"], 2))
def test_dl_report(tool, recording, format_) -> None:
    if format_ == "html":
        pytest.importorskip("matplotlib")
    done = tool("dl-report", f"evil {NAME}={recording}", "--format", format_)
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode())


def test_a_picture_of_dl_report(tool, recording) -> None:
    pytest.importorskip("matplotlib")
    done = tool("dl-report", recording, "--format", "svg", "--plot", "gantt")
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode().replace("\t", ""))


def test_dl_plan(tool) -> None:
    common = {"time": "2026-01-01T00:00:00Z", "host": f"evil-{NAME}"}
    rows = [
        {**common, "kind": "node", "cpu_count": 2.0},
        {
            **common,
            "kind": "container",
            "container_id": "f" * 64,
            "container_name": NAME,
            "state": "running",
            "cpu_seconds": 1.0,
        },
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    done = tool("dl-plan", "--format", "table", input=lines)
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode())


def test_dl_apply(tool) -> None:
    done = tool("dl-apply", "--dry-run", "--offline", "--format", "table", input=plan())
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode())


def test_the_table_of_dl_probe(monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "")
    row = {"time": datetime(2026, 1, 1, tzinfo=UTC), "host": NAME, "container_id": "f" * 64}
    rows: list[Row] = [
        {**row, "kind": "container", "container_name": NAME, "state": NAME, "cpuset": NAME},
        {**row, "kind": "progress", "metric": NAME, "value": 0.5},
    ]
    out = io.StringIO()
    make_console(out).print(containers_table(observed_hosts(to_table(rows).to_pylist()), 80))
    assert_harmless(out.getvalue())


def test_the_metrics_of_dl_probe(tool, tmp_path) -> None:
    log = tmp_path / f"{NAME.replace('/', '')}.log"
    log.write_text("Epoch 1 loss: 0.5\nEpoch 2 loss: 0.4\n")
    done = tool("dl-probe", log, "--list-metrics")
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode())


def test_complaints(tool, tmp_path) -> None:
    done = tool("dl-report", tmp_path / NAME)
    assert done.returncode == 74
    assert_harmless(done.stderr.decode())


def test_data_in_a_pipe_stay_as_they_are(tool, recording) -> None:
    for name, arguments in (("dl-sim", ("-p", "noop", "--jobs")), ("dl-report", (recording,))):
        text = tool(name, *arguments, "--format", "csv", input=WORKLOAD).stdout.decode()
        assert next(csv.DictReader(io.StringIO(text)))["name"] == NAME


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        (name, format_)
        for name in ("dl-probe", "dl-sim", "dl-report")
        for format_ in ("csv", "jsonl")
    ]
    + [("dl-apply", "jsonl")],
)
@pytest.mark.slow
def test_data_on_a_terminal_are_made_printable(name, format_, recording, tmp_path) -> None:
    (tmp_path / "w.toml").write_bytes(WORKLOAD)
    (tmp_path / "plan").write_bytes(plan())
    log = tmp_path / f"{NAME.replace('/', '')}.log"
    log.write_text("Epoch 1 loss: 0.5\n")
    arguments = {
        "dl-probe": (log,),
        "dl-sim": ("-p", "noop", "--jobs", tmp_path / "w.toml"),
        "dl-report": (recording,),
        "dl-apply": ("--dry-run", "--offline", tmp_path / "plan"),
    }[name]
    assert_harmless(printed([*command(name, *arguments), "--format", format_]))
