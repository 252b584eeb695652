"""The manifest of samples/kubernetes: against the published schemas, and its rights."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from helpers.containers import eventually
from helpers.tools import TOOLS, command, write_scripts

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "samples/kubernetes/dltools.yaml"
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all(MANIFEST.read_text()))
POD: dict[str, Any] = DOCUMENTS[1]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
ENDPOINT = os.environ.get("CONTAINER_RUNTIME_ENDPOINT", "")


@pytest.mark.parametrize("version", ["1.33", "1.35", "1.37"])
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_it_is_as_the_schema_says(document, version) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_a_mistake_would_be_found() -> None:
    wrong = {**DOCUMENTS[1], "spec": {**DOCUMENTS[1]["spec"], "replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.35", strict=True)


def test_it_has_no_right_at_the_api_server() -> None:
    assert {one["kind"] for one in DOCUMENTS} == {"Namespace", "DaemonSet"}
    assert POD["automountServiceAccountToken"] is False
    assert not {"serviceAccountName", "hostNetwork", "hostIPC"} & POD.keys()


def test_it_is_not_privileged_and_writes_to_its_state_alone() -> None:
    context = CONTAINER["securityContext"]
    assert not context["privileged"]
    assert not context["allowPrivilegeEscalation"]
    assert context["readOnlyRootFilesystem"]
    assert context["capabilities"]["drop"] == ["ALL"]
    assert set(context["capabilities"]["add"]) == {"SYS_PTRACE", "DAC_READ_SEARCH"}
    writable = {one["name"] for one in CONTAINER["volumeMounts"] if not one.get("readOnly")}
    assert writable == {"state", "tmp"}
    assert {one["name"] for one in POD["volumes"]} == {
        one["name"] for one in CONTAINER["volumeMounts"]
    }


@pytest.mark.slow
def test_its_shell_is_one_and_its_options_are_known() -> None:
    (script,) = CONTAINER["args"]
    subprocess.run(["sh", "-n", "-c", script], check=True)
    for tool in TOOLS:
        told = set(re.findall(rf"{tool} ((?:--?[a-z]+[^|;}}\n]*)*)", script))
        for words in told:
            known = subprocess.run([*command(tool), "--help"], capture_output=True, check=True)
            for option in re.findall(r"--[a-z]+", words):
                assert option.encode() in known.stdout


@pytest.mark.engine
@pytest.mark.skipif(not ENDPOINT, reason="no containerd: see tests/engines/containerd")
def test_its_command_changes_and_undoes_when_kubelet_ends_it(tmp_path) -> None:
    from helpers.containers import Job
    from helpers.cri_pods import Pods
    from helpers.pipes import watchdogs

    from dltools.engine.cri.cri_engine import CriEngine

    url = ENDPOINT.replace("unix://", "cri://")
    engine, pods = CriEngine(url), Pods(ENDPOINT, "manifest")
    write_scripts(tmp_path)
    spin = "i=0; while :; do i=$((i+1)); echo step $i loss: 0.$((99999-i)); usleep 50000; done"
    try:
        jobs = []
        for name in ("a", "b"):  # each in its own pod, as on a node
            pod = pods.run_pod(name, parent=f"{pods.parent}{name}")
            script = f"(while :; do :; done) & (while :; do :; done) & {spin}"
            id_ = pods.run_container(pod, "main", ["sh", "-c", script])
            jobs.append(Job(engine, id_, f"manifest/{name}/main"))
        before = [job.kernel() for job in jobs]
        process = subprocess.Popen(
            [*CONTAINER["command"], *CONTAINER["args"]],
            env={
                **os.environ,
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "RUNTIME": url,
                "NODE_NAME": os.uname().nodename,
                "DLTOOLS_STATE_DIR": f"{tmp_path}/state",
            },
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        try:
            eventually(lambda: [job.kernel() for job in jobs] != before, seconds=180)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)  # kubelet: to the first process alone
            process.wait(POD["terminationGracePeriodSeconds"])
            print(f"it ended {time.monotonic() - begun:.1f} s after SIGTERM")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert [job.kernel() for job in jobs] == before
        assert list((tmp_path / "state/journal").glob("*")) == []
        eventually(lambda: watchdogs(tmp_path / "state") == [])
    finally:
        pods.close()
