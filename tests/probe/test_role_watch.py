"""What the probe makes of a container: its command, ports, labels, reports, processes and GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.located_containers import container

from dltools.engine.interface import Container
from dltools.engine.process_search import Processes
from dltools.observations.roles import NO_RULES, Rules, parse_rule
from dltools.probe.role_watch import RoleWatch

TORCH = Processes(runtimes=("libtorch",))


def made(command: str = "sh -c job", labels: dict[str, str] | None = None, **raw: Any) -> Container:
    path, *arguments = command.split()
    return container({"Path": path, "Args": arguments, **raw}, labels=labels or {})


PUBLISHED = {"HostConfig": {"PortBindings": {"5432/tcp": [{"HostPort": ""}]}}}
INGRESS = {"NetworkSettings": {"Networks": {"ingress": {}, "lab": {}}}}
TASK = {"com.docker.swarm.task.id": "t", "com.docker.swarm.service.name": "api"}
SHOWN = {"NetworkSettings": {"Ports": {"80/tcp": [{"HostPort": "8080"}], "81/tcp": None}}}


@pytest.mark.parametrize(
    ("container", "processes", "has_gpu", "expected"),
    [
        (made(), None, False, "other: no sign of a training"),
        (made(), Processes(), False, "other: no sign of a training"),
        (made(), TORCH, False, "training: libtorch in its processes, silent"),
        (made(), Processes(), True, "training: uses a GPU, silent"),
        (made(**PUBLISHED), TORCH, True, "server: publishes port 5432"),
        (made(**SHOWN), None, False, "server: publishes port 80"),
        (made(labels=TASK, **INGRESS), TORCH, True, "server: its Swarm service publishes a port"),
        (made(**INGRESS), TORCH, True, "training: libtorch in its processes, silent"),
        (made("jupyter lab", **PUBLISHED), TORCH, True, "interactive: jupyter-lab"),
        (made(**PUBLISHED), Processes(program="sshd"), False, "interactive: sshd"),
        (made(labels={"dltools.qoe": "1"}, **PUBLISHED), TORCH, False,
         "server: response-time target 1"),
        (made("jupyter lab", {"dltools.role": "training"}), None, False,
         "training: label dltools.role=training"),
    ],
)  # fmt: skip
def test_signs(
    container: Container, processes: Processes | None, has_gpu: bool, expected: str
) -> None:
    assert RoleWatch().look(container, NO_RULES, processes, has_gpu=has_gpu).text == expected


def test_a_report_is_stronger_than_a_port_and_a_notebook_and_stays() -> None:
    watch, container = RoleWatch(), made("jupyter lab", **PUBLISHED)
    assert watch.look(container, NO_RULES, TORCH, has_gpu=False).text == "interactive: jupyter-lab"
    watch.metrics.add("loss")
    assert watch.look(container, NO_RULES, TORCH, has_gpu=False).text == "training: reports loss"
    assert watch.look(container, NO_RULES, None, has_gpu=False).text == "training: reports loss"


def test_the_user_overrules_all() -> None:
    rules = Rules([parse_rule("label:team=x=other")])
    container = made(labels={"team": "x", "dltools.role": "training"})
    watch = RoleWatch({"loss"})
    found = watch.look(container, rules, TORCH, has_gpu=True)
    assert found.text == "other: --role label:team=x=other"
