"""dl-probe --notify on real containers, and the commands of samples/notify."""

import http.server
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import eventually

SAMPLES = Path(__file__).parents[2] / "samples" / "notify"
TRAINING = {"dltools.role": "training"}
NOTICE = {
    "event": "failed",
    "time": "2026-01-31T12:00:00.000000Z",
    "host": "lab1",
    "message": "bert: failed after 3 min: exit code 1",
    "container_name": "bert",
    "exit_code": 1,
}


def notices(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_ends_divergence_and_targets_are_told_once(tool, run, gate, tmp_path) -> None:
    met = TRAINING | {"dltools.metric": "accuracy", "dltools.target": "0.9"}
    run(f"{gate.passed()}; exit 0", name="good", labels=TRAINING, **gate.limits)
    run(f"{gate.passed()}; exit 3", name="bad", labels=TRAINING, **gate.limits)
    run(f"{gate.passed()}; exit 4", name="other", **gate.limits)
    run(
        f"echo accuracy: 0.5; echo accuracy: 0.95; {gate.passed()}; sleep 60",
        name="met",
        labels=met,
        **gate.limits,
    )
    lost = "for v in 1.5 nan nan nan nan; do echo loss: $v; sleep 0.1; done; sleep 60"
    run(f"{gate.passed()}; {lost}", name="lost", labels=TRAINING, **gate.limits)
    file = tmp_path / "told"
    probe = tool.begin(
        "dl-probe",
        *run.only,
        "-i",
        "0.3",
        "--notify",
        f"tee -a {file}",
        "-o",
        tmp_path / "all.arrows",
    )
    eventually(lambda: notices(file))  # it samples, as the target is told
    gate.open()
    eventually(lambda: len(notices(file)), lambda count: count >= 4)
    time.sleep(1.0)  # another notice would have come
    probe.terminate()
    assert probe.wait(timeout=60) == 143
    found = {one["container_name"].rpartition("-")[2]: one for one in notices(file)}
    assert len(notices(file)) == len(found) == 4
    assert {name: one["event"] for name, one in found.items()} == {
        "met": "target_met",
        "good": "finished",
        "bad": "failed",
        "lost": "diverged",
    }
    assert found["bad"]["exit_code"] == 3
    assert found["lost"]["value"] == "NaN"
    assert found["met"]["tier"] == "first"


@pytest.mark.parametrize("name", ["mail", "wall"])
def test_samples_that_run_a_program(name, tmp_path) -> None:
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/got\ncat >> {tmp_path}/got\n')
    program.chmod(0o755)
    words = [SAMPLES / name, *(["me@example.org"] if name == "mail" else []), program]
    subprocess.run(words, input=json.dumps(NOTICE), text=True, check=True)
    got = (tmp_path / "got").read_text()
    assert "bert: failed after 3 min: exit code 1" in got
    if name == "mail":
        assert "Subject: [lab1] bert: failed" in got
        assert "To: me@example.org" in got


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_sample_that_posts(options) -> None:
    got: list[tuple[bytes, Any]] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.rfile.read(int(self.headers["Content-Length"])), self.headers))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        words = [SAMPLES / "webhook", *options, f"http://127.0.0.1:{server.server_port}/lab"]
        env = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        subprocess.run(words, input=json.dumps(NOTICE), text=True, check=True, env=env)
        thread.join()
    body, headers = got[0]
    if options:
        assert json.loads(body) == NOTICE
    else:
        assert body == b"bert: failed after 3 min: exit code 1"
        assert (headers["Title"], headers["Priority"]) == ("failed on lab1", "high")


def test_a_health_check_that_fails_is_told(tool, run, tmp_path) -> None:
    file = tmp_path / "told"
    job = run("sleep 100")
    words = ("-i", "0.3", "--notify", f"tee -a {file}", "-o", tmp_path / "all.arrows")
    probe = tool.begin("dl-probe", *run.only, *words)
    second = 1_000_000_000
    check = {"test": ["CMD-SHELL", "exit 1"], "interval": second, "retries": 1}
    ill = run("sleep 100", name="ill", healthcheck=check)
    eventually(lambda: notices(file))
    probe.terminate()
    probe.wait(timeout=60)
    found = [(one["event"], one["container_name"]) for one in notices(file)]
    assert found == [("unhealthy", ill.name)]
    assert job.name != ill.name
