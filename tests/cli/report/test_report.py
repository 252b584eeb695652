"""dl-report as a user runs it: what it makes of each input, in each format, and its complaints."""

import csv
import io
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli.sim.test_sim import WORKLOAD
from helpers.encoding import decode, encode
from helpers.tools import Tools, complaint

from dltools.observations.formats.arrow import FORMAT as ARROW
from dltools.observations.formats.parquet import FORMAT as PARQUET

RECORDING = Path(__file__).parents[3] / "samples" / "digits" / "recording.parquet"
SERVING = b"""
[[job]]
name = "s"
request = 0.05
duration = 60
qoe = 0.1
"""


@pytest.fixture(scope="module")
def tool() -> Tools:
    return Tools()


@pytest.fixture(scope="module")
def made(tool: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    for name in ("noop", "flowcon"):
        line = f"dl-sim -p {name} --realize quota -i 1s -o"
        done = tool(*line.split(), folder / f"{name}.parquet", input=WORKLOAD)
        assert done.returncode == 0, done.stderr
    tool("dl-sim", "-p", "noop", "-o", folder / "served.parquet", input=SERVING)
    jobs = tool("dl-sim", "-p", "noop", "-p", "srtf", "--jobs", "--repeat", "2", input=WORKLOAD)
    (folder / "jobs.jsonl").write_bytes(jobs.stdout)
    plans = tool(
        "dl-plan", "--policy", "flowcon", "--set", "itval=5", "--every", folder / "flowcon.parquet"
    )
    (folder / "plans.jsonl").write_bytes(plans.stdout)
    results = tool("dl-apply", "--dry-run", "--offline", folder / "plans.jsonl")
    (folder / "results.jsonl").write_bytes(results.stdout)
    return folder


def rows(output: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


def test_recordings_of_one_name_are_one_run(tool, made, tmp_path) -> None:
    whole = decode((made / "noop.parquet").read_bytes())
    jobs = whole.column("container_name").to_pylist()
    parts = []
    for name in "ab":
        part = whole.filter([job in (name, None) for job in jobs])
        parts.append(tmp_path / f"{name}.parquet")
        parts[-1].write_bytes(encode(PARQUET, part))
    asked = ["--jobs", "--format", "jsonl"]
    apart = tool("dl-report", *(f"lab={part}" for part in parts), *asked)
    together = tool("dl-report", f"lab={made / 'noop.parquet'}", *asked)
    assert apart.returncode == 0, apart.stderr
    assert apart.stdout == together.stdout
    unnamed = tool("dl-report", *parts, "--format", "jsonl")
    assert [json.loads(line)["run"] for line in unnamed.stdout.splitlines()] == ["a", "b"]


def test_a_run_may_have_an_idle_host(tool, made, tmp_path) -> None:
    whole = decode((made / "noop.parquet").read_bytes())
    nodes = whole.filter([kind == "node" for kind in whole.column("kind").to_pylist()])
    (tmp_path / "idle.parquet").write_bytes(encode(PARQUET, nodes))
    asked = ["--jobs", "--format", "jsonl"]
    idle, busy = f"lab={tmp_path / 'idle.parquet'}", f"lab={made / 'noop.parquet'}"
    alone = tool("dl-report", busy, *asked)
    for both in ((idle, busy), (busy, idle)):
        done = tool("dl-report", *both, *asked)
        assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr
    done = tool("dl-report", idle, *asked)
    assert done.returncode == 65
    assert "nothing to report" in complaint(done.stderr)


def test_one_recording_gives_a_row_per_job(tool, made) -> None:
    done = tool("dl-report", made / "noop.parquet")
    assert done.returncode == 0, done.stderr
    a, b = rows(done.stdout)
    assert (a["run"], a["name"], a["arrival"], b["arrival"]) == ("noop", "a", 0.0, 5.0)
    assert b["first"] is not None
    piped = tool("dl-report", input=(made / "noop.parquet").read_bytes())
    assert rows(piped.stdout)[0]["run"] == "standard input"


def test_several_give_a_row_each_and_ratios_to_a_named_baseline(tool, made) -> None:
    files = (f"one={made / 'flowcon.parquet'}", made / "noop.parquet")
    first, second = rows(tool("dl-report", *files).stdout)
    assert (first["run"], second["run"], second["makespan_ratio"]) == ("one", "noop", 1.0)
    first, second = rows(tool("dl-report", "--baseline", "one", *files).stdout)
    assert first["makespan_ratio"] == 1.0
    assert second["makespan_ratio"] == second["makespan"] / first["makespan"]  # type: ignore[operator]


def test_a_job_table_is_a_run_per_policy_with_its_repeats(tool, made) -> None:
    noop, srtf = rows(tool("dl-report", made / "jobs.jsonl").stdout)
    assert (noop["run"], srtf["run"]) == ("noop", "srtf")
    done = tool("dl-sim", "-p", "noop", "-p", "srtf", "--repeat", "2", input=WORKLOAD)
    assert srtf["mean_completion_ratio"] == rows(done.stdout)[1]["mean_completion_ratio"]
    table = tool("dl-report", "--jobs", "--format", "csv", made / "jobs.jsonl").stdout
    found = list(csv.DictReader(io.StringIO(table.decode())))
    assert len(found) == 2 * 2 * 2
    assert rows(tool("dl-report", input=table).stdout)[1]["makespan"] == srtf["makespan"]


def test_plans_and_results_belong_to_the_recording_before_them(tool, made) -> None:
    names = ("noop.parquet", "flowcon.parquet", "plans.jsonl", "results.jsonl")
    done = tool("dl-report", *(made / name for name in names), "--format", "markdown")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert "ACTIONS" in lines[0]
    assert "planned" not in lines[2]
    assert "planned" in lines[3]


def test_empty_results_are_those_of_a_run_that_changed_nothing(tool, tmp_path) -> None:
    (tmp_path / "results.jsonl").touch()
    done = tool("dl-report", RECORDING, str(tmp_path / "results.jsonl"))
    assert (done.returncode, done.stdout) == (0, tool("dl-report", RECORDING).stdout)
    assert complaint(done.stderr).endswith("results.jsonl: empty: no plans and no results")
    alone = tool("dl-report", str(tmp_path / "results.jsonl"))
    assert (alone.returncode, alone.stdout) == (65, b"")


@pytest.mark.slow
def test_a_page_needs_nothing_else(tool, made, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.html"
    files = [made / name for name in ("noop.parquet", "flowcon.parquet", "plans.jsonl")]
    line = ("dl-report", f"A <night> & more={files[0]}", *files[1:])
    done = tool(*line, "-o", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "A &lt;night&gt; &amp; more" in text.partition("</title>")[0]
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "@import" not in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert used <= set(ids)
    assert text.count("<figure") == 1
    assert tool(*line, "--format", "html").stdout.decode() == text


def test_a_page_says_what_became_of_actions(tool, made) -> None:
    pytest.importorskip("matplotlib")
    files = (made / "flowcon.parquet", made / "plans.jsonl", made / "results.jsonl")
    text = tool("dl-report", *files, "--plot", "progress", "--format", "html").stdout.decode()
    assert re.search(r"<td>\d+ planned", text)
    assert text.count("<figure") == 1


@pytest.mark.slow
def test_a_diverged_loss_is_named() -> None:
    pytest.importorskip("matplotlib")
    from dltools.report.observed_run import observed_run
    from dltools.report.plots.figure import panels, picture

    found = observed_run([decode(RECORDING.read_bytes())], "r", "r")
    (axes,) = picture(panels([found], ["progress"])).axes
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[-1] == "diverged val_loss: NaN"


@pytest.mark.slow
def test_pictures_have_the_pixels_of_a_dense_screen(tool, made, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "jobs.png"
    done = tool("dl-report", made / "jobs.jsonl", "-o", file)
    assert done.returncode == 0, done.stderr
    assert struct.unpack(">II", file.read_bytes()[16:24])[0] == 1800
    done = tool("dl-report", made / "served.parquet", "--plot", "responses", "--format", "svg")
    assert ElementTree.fromstring(done.stdout).tag.endswith("svg")


def test_mistakes_are_told(tool, made, tmp_path) -> None:
    file = made / "noop.parquet"
    for code, words, *arguments in (
        (78, "--baseline x: no run has this name; known: noop", file, "--baseline", "x"),
        (78, "--plot must be one of gantt", file, "--plot", "pie"),
        (78, "nothing to draw", file, "--plot", "responses", "--format", "svg"),
        (65, "plans and results show no jobs", made / "plans.jsonl"),
        (74, "no such file", tmp_path / "none"),
    ):
        done = tool("dl-report", *arguments)
        assert done.returncode == code, arguments
        assert words in complaint(done.stderr), arguments
    assert tool("dl-report", file, "-o", tmp_path / "x.gif").returncode == 2
    summary = tool("dl-sim", "-p", "noop", input=WORKLOAD).stdout
    done = tool("dl-report", input=summary)
    assert (done.returncode, "dl-sim --jobs" in complaint(done.stderr)) == (65, True)


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"PAR1xxxx", b'{"policy":"a","name":"b"}', b'{"policy":"a","name":1,"x":2}',
     b'{"policy":"a","name":"b","arrival":"x"}', b"policy,name,arrival\na,b,x\n", b"\xff\xfe",
     b'{"kind":"plan"}', b'{"kind":"result"}', b"policy,name\n"],
)  # fmt: skip
def test_damage_is_one_line_and_65(tool, damage) -> None:
    done = tool("dl-report", input=damage)
    assert done.returncode == 65
    assert complaint(done.stderr)


def test_what_was_cut_off_is_reported_as_far_as_it_goes(tool, made, tmp_path) -> None:
    table = decode((made / "noop.parquet").read_bytes())
    stream = encode(ARROW, *(table.slice(at, 5) for at in range(0, len(table), 5)))
    cut = tmp_path / "cut.arrows"
    cut.write_bytes(stream[: len(stream) * 2 // 3])
    plans = tmp_path / "plans.jsonl"
    plans.write_bytes((made / "plans.jsonl").read_bytes()[:-20])
    done = tool("dl-report", cut, plans)
    assert done.returncode == 0, done.stderr
    first, second = done.stderr.decode().splitlines()
    assert "cut.arrows" in first
    assert "what came before it is reported" in first
    assert "plans.jsonl" in second
    assert rows(done.stdout)


def recorded_log(tool: Tools, folder: Path) -> Path:
    log, recording = folder / "gru.log", folder / "log.parquet"
    log.write_text("".join(f"Epoch {n} loss: {1 / n}\n" for n in range(1, 9)))
    recorded = tool("dl-probe", log, "-o", recording)
    assert recorded.returncode == 0, recorded.stderr
    return recording


def test_saved_logs_are_reported(tool, tmp_path) -> None:
    done = tool("dl-report", recorded_log(tool, tmp_path))
    assert done.returncode == 0, done.stderr
    assert "only progress is known" in complaint(done.stderr)
    (job,) = rows(done.stdout)
    assert (job["name"], job["finish"], job["exit_code"]) == ("gru", None, None)


@pytest.mark.slow
def test_a_page_of_a_saved_log_has_its_progress(tool, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    page = tool("dl-report", recorded_log(tool, tmp_path), "--format", "html")
    assert b"Progress" in page.stdout


def test_a_failed_job_stays_one_when_its_row_is_read_again(tool) -> None:
    row = b'{"policy":"p","seed":0,"name":"a","arrival":0,"start":0,"finish":null,"exit_code":3}\n'
    table = tool("dl-report", "--format", "table", input=row).stdout.decode()
    assert "failed (3)" in table
    again = tool("dl-report", "--format", "csv", "--jobs", input=row).stdout
    markdown = tool("dl-report", "--format", "markdown", input=again).stdout.decode()
    assert "failed (3)" in markdown


def without_matplotlib(*arguments: object) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv[0] = 'dl-report';"
        "from dltools.cli.report import main; main()"
    )
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True)


INSTALL = f"pictures need matplotlib: {sys.prefix}/bin/python3 -m pip install matplotlib"


@pytest.mark.slow
def test_without_matplotlib_tables_work_and_pictures_say_what_is_missing(made) -> None:
    table = without_matplotlib(made / "jobs.jsonl")
    assert table.returncode == 0, table.stderr
    picture = without_matplotlib(made / "jobs.jsonl", "--format", "svg")
    assert picture.returncode == 69
    assert INSTALL in picture.stderr


def test_a_picture_is_refused_before_anything_is_read(tmp_path) -> None:
    done = without_matplotlib(tmp_path / "none.parquet", "-o", tmp_path / "night.svg")
    assert (done.returncode, INSTALL in done.stderr) == (69, True)


def test_without_matplotlib_a_page_has_its_tables(tmp_path) -> None:
    page = tmp_path / "night.html"
    done = without_matplotlib(RECORDING, "-o", page)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"dl-report: the page has only tables: {INSTALL}\n"
    text = page.read_text()
    assert "<h2>Jobs</h2>" in text
    assert INSTALL in text
    assert "<svg" not in text


def test_prices_give_a_column_of_cost(tool, tmp_path) -> None:
    (tmp_path / "w.toml").write_bytes(WORKLOAD)
    (tmp_path / "p.toml").write_text("cpu_hour = 3600\n")
    jobs = tool("dl-sim", "-p", "noop", tmp_path / "w.toml", "--jobs").stdout
    known = {row["name"]: row["cpu"] for row in map(json.loads, jobs.splitlines())}
    (tmp_path / "jobs").write_bytes(jobs)
    for options in (["--jobs"], ["--by", "job"], ["a=-", f"b={tmp_path}/jobs"]):
        found = tool("dl-report", "--prices", tmp_path / "p.toml", *options, input=jobs).stdout
        costs = {row["name"]: row["cost"] for row in map(json.loads, found.splitlines())}
        assert costs == pytest.approx(known)
    (tmp_path / "p.toml").write_text("cpu_hours = 1\n")
    refused = tool("dl-report", "--prices", tmp_path / "p.toml", input=jobs)
    assert (refused.returncode, "cpu_hours" in complaint(refused.stderr)) == (78, True)
