"""Who is who on a real engine, and who is never touched."""

import json
import shutil
import sys
from itertools import product
from pathlib import Path

import pytest
from helpers.containers import BUSYBOX, Containers, Job, eventually
from helpers.examples import repeated
from helpers.tools import Tools, records
from real_engine.test_turns import SPIN, changes

pytestmark = [pytest.mark.engine, pytest.mark.slow]

CALM = {"nano_cpus": 250_000_000}
"""Busy enough to count, and room for others."""

LOSS = f"({SPIN}) & ({SPIN}) & while :; do echo step 1 loss: 0.5; sleep 0.5; done"
LINES = "n=0; while :; do n=$(((n + 1) % 5)); echo {}; usleep 200000; done"
OTHERS = {
    "uplink": "packet loss: 0.$n%",
    "link": "loss=0.$n jitter=1.$n",
    "mail": "message from lists score: 1.$n required: 5.0",
    "model": "accuracy: 0.94$n requests: 1200",
    "health": "success_rate=0.99$n availability=0.999",
}
"""Programs that report what is no training's, by name."""

MAPS = """
import mmap
with open("/fake/libtorch_cpu.so", "rb") as file:
    held = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
while True:
    pass
"""
"""A program that burns CPU, and has what seems to be a deep-learning runtime."""

EXPECTED = {
    "loop": "other: no sign of a training",
    "postgres": "other: no sign of a training",
    "web": "server: publishes port 5432",
    "notebook": "interactive: jupyter-lab",
    "labelled": "training: label dltools.role=training",
    "torch": "training: libtorch in its processes, silent",
    "torch-loss": "training: reports loss",
    "uplink": "server: publishes port 8080",
    "link": "other: reports loss without a step or an epoch",
    "mail": "server: publishes port 8080",
    "model": "server: publishes port 8080",
    "health": "other: reports success_rate without a step or an epoch",
    "reports-1": "training: reports loss",
    "reports-2": "training: reports loss",
}
EVERY = tuple(
    product(
        ("flowcon --set itval=1", "fair", "srtf --set itval=1"),
        ("auto", "rotate", "quota", "weight"),
    )
)
SOME = tuple(EVERY[number] for number in (0, 5, 11))
"""Each policy once, and the modes that pause, share and weigh."""

UNTOUCHED = ("loop", "postgres", "web", "notebook", *OTHERS)


@pytest.fixture
def jobs(run: Containers, tmp_path: Path) -> dict[str, Job]:
    fake = tmp_path / "fake"
    fake.mkdir()
    shutil.copy(BUSYBOX.resolve(), fake / "libtorch_cpu.so")
    (fake / "jupyter-lab").write_text(f"#!/bin/sh\n{SPIN}\n")
    (fake / "jupyter-lab").chmod(0o755)
    (fake / "maps.py").write_text(MAPS)
    python = Path(sys.base_prefix) / "bin" / "python3"
    served = {"network": "bridge", "port_bindings": {8080: None}}
    others = {
        name: run(
            f"({SPIN}) & {LINES.format(line)}",
            name=name,
            **CALM,
            **(served if EXPECTED[name].startswith("server") else {}),
        )
        for name, line in OTHERS.items()
    }
    places = [str(fake), sys.base_prefix, "/lib", "/lib64", "/usr/lib"]
    binds = [f"{place}:{'/fake' if place == str(fake) else place}:ro" for place in places]
    return {
        "loop": run(SPIN, name="loop", **CALM),
        "postgres": run(SPIN, name="postgres", **CALM),
        "web": run(SPIN, name="web", network="bridge", port_bindings={5432: None}, **CALM),
        "notebook": run("exec /fake/jupyter-lab", name="notebook", binds=binds, **CALM),
        "labelled": run(SPIN, name="labelled", labels={"dltools.role": "training"}, **CALM),
        "torch": run(f"exec {python} /fake/maps.py", name="torch", binds=binds),
        "torch-loss": run(
            f"{python} /fake/maps.py & {LINES.format('loss: 0.$n')}", name="torch-loss", binds=binds
        ),
        "reports-1": run(LOSS, name="reports-1"),
        "reports-2": run(LOSS, name="reports-2"),
        **others,
    }


def roles(tool: Tools, run: Containers, jobs: dict[str, Job], *options: str) -> dict[str, str]:
    names = {job.name: key for key, job in jobs.items()}
    done = tool("dl-probe", *run.only, *options, "--format", "jsonl")
    rows = [row for row in records(done.stdout) if row["kind"] == "container"]
    return {names[row["container_name"]]: f"{row['role']}: {row['role_reason']}" for row in rows}


def test_each_is_what_it_is_and_no_more_are_touched_than_train(run, tool, jobs, tmp_path) -> None:
    eventually(lambda: roles(tool, run, jobs), lambda found: found == EXPECTED)
    said = roles(tool, run, jobs, "--role", "*-loop=training", "--role", "label:dltools-test=other")
    assert set(said.values()) == {"other: --role label:dltools-test=other"}

    untouched = {jobs[name].name: jobs[name] for name in UNTOUCHED}
    before = {name: job.kernel() for name, job in untouched.items()}
    touched: set[str] = set()

    def arrange(policy: str, mode: str) -> None:
        line = (
            f"dl-probe -i 0.5 -c 5 {' '.join(run.only)} | dl-plan -p {policy} "
            f"--realize {mode} | dl-apply --restore"
        )
        done = tool.shell(line, tmp_path / "bin")
        found = [json.loads(text) for text in done.stdout.splitlines()]
        touched.update(result["container"]["name"] for result in found)
        turns = [one["container"]["name"] for one in found if "turn_s" in one["after"]]
        assert jobs["torch"].name not in turns
        assert {name: job.kernel() for name, job in untouched.items()} == before

    def paused() -> set[str]:
        return {job.name for _, job in changes(list(jobs.values()))}

    for policy, mode in repeated(SOME, EVERY):
        arrange(policy, mode)
    trainings = {job.name for key, job in jobs.items() if key not in UNTOUCHED}
    reporting = {jobs["reports-1"].name, jobs["reports-2"].name}
    assert reporting <= touched <= trainings
    assert changes([*untouched.values(), jobs["torch"]]) == []
    assert paused() <= trainings
