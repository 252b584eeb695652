"""The samples for a Swarm, on a Swarm."""

import os
import subprocess
import sys
from pathlib import Path

from helpers.cluster_nodes import IMAGE
from helpers.containers import eventually
from helpers.tools import records

SAMPLES = Path(__file__).parents[2] / "samples" / "swarm"


def test_a_probe_runs_on_each_node_and_sees_it_whole(tool, nodes, tmp_path) -> None:
    folder = str(Path(nodes[0].url.removeprefix("unix://")).parents[1])
    nodes[2]("run", "-d", "--name=job", "--network=none", "--entrypoint=/bin/sleep", IMAGE, "999")
    words = ["docker", "-H", nodes[0].url, "stack"]
    known = {
        "IMAGE": IMAGE,
        "RECORDINGS": str(tmp_path / "seen"),
        "PROBE": str(Path(sys.executable).parent / "dl-probe"),
        "ENGINE": f"unix://{folder}/{{{{.Node.Hostname}}}}/sock",
    }
    subprocess.run(
        [*words, "deploy", "--resolve-image=never", "-c", SAMPLES / "dl-probe.yml", "dltools"],
        check=True,
        env=os.environ | known,
    )
    try:
        begun = tmp_path / "seen" / ".staging"
        eventually(lambda: len(list(begun.glob("*.arrows"))) == len(nodes))
        for node in nodes:
            assert len(node("ps", "-q", "--filter=name=dltools_probe").split()) == 1
    finally:
        subprocess.run([*words, "rm", "dltools"], check=True)
        for node in nodes:
            eventually(lambda: not node("ps", "-q", "--filter=name=dltools_probe"))  # noqa: B023
    hosts = {path.name for path in (tmp_path / "seen").glob("date=*/host=*")}
    assert hosts == {f"host={node.name}" for node in nodes}
    rows = records(tool("dl-plan", "-p", "noop", "--format", "jsonl", tmp_path / "seen").stdout)
    assert rows[0]["kind"] == "plan"
