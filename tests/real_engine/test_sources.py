"""Progress from a real container's files and endpoint, by the command."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from helpers.containers import eventually
from helpers.tools import Tools


def rows(tool: Tools, job: Any, *arguments: str) -> list[dict[str, Any]]:
    done = tool("dl-probe", "--name", f"^{job.name}$", "--format", "jsonl", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def progress(tool: Tools) -> Callable[..., list[tuple[str, float, int | None, str]]]:
    def found(job: Any, *arguments: str) -> list[tuple[str, float, int | None, str]]:
        return [
            (r["metric"], r["value"], r.get("step"), r["source"])
            for r in rows(tool, job, *arguments)
            if r["kind"] == "progress"
        ]

    return found


def test_a_file_in_the_working_directory_is_found(run, progress) -> None:
    job = run("mkdir /job; cd /job; printf 'step,loss\\n1,0.5\\n' >metrics.csv; exec sleep 60")
    eventually(lambda: progress(job), lambda found: found == [("loss", 0.5, 1, "csv")])


def test_no_link_leads_out_of_the_container(run, tool, tmp_path) -> None:
    secret = tmp_path / "metrics.csv"
    secret.write_text("step,loss\n1,666\n")
    job = run(
        f"mkdir /job; cd /job; ln -s {secret} metrics.csv; ln -s /proc/1/root{secret} results.csv;"
        "exec sleep 60",
        labels={"dltools.files": "/job/metrics.csv,/job/results.csv"},
    )
    found = rows(tool, job)
    assert not [row for row in found if row["kind"] == "progress"]


def test_an_endpoint_is_scraped_over_a_window(run, progress) -> None:
    serve = (
        'while :; do n=$((n+1)); echo "ts_inference_requests_total $((n*10))" >/new;'
        'echo "ts_inference_latency_microseconds $((n*10*20000))" >>/new;'
        "busybox mv /new /www/metrics; usleep 100000; done"
    )
    job = run(
        f"mkdir /www; touch /www/metrics; busybox httpd -p 9000 -h /www; n=0; {serve}",
        labels={"dltools.endpoint": "9000"},
        network="bridge",
    )

    def scraped() -> dict[str, float]:
        return {
            metric: value
            for metric, value, _, source in progress(job, "--window", "1")
            if source == "prometheus"
        }

    found: dict[str, float] = {}
    while "latency_seconds" not in found:
        found = scraped()
    assert found["latency_seconds"] == pytest.approx(0.02)
    assert found["request_rate"] > 0
