"""Which job a process is a member of, by the variables of its launcher."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.distributed import VARIABLES, Membership, membership, variables_in

TORCH = {"MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "RANK": "1"}


def test_only_variables_of_launchers_are_read() -> None:
    environ = b"SECRET=x\0MASTER_ADDR=a\0MASTER_PORT=1\0WORLD_SIZE=2\0PATH=/bin\0MASTER_ADDR=b\0"
    assert variables_in(environ) == {"MASTER_ADDR": "a", "MASTER_PORT": "1", "WORLD_SIZE": "2"}
    assert variables_in(b"TF_CONFIG=" + b"x" * 5000) == {}


def test_members_of_torch_distributed_meet_at_the_master() -> None:
    assert membership(TORCH) == Membership("10.0.0.2:29500")
    assert membership(TORCH | {"LOCAL_WORLD_SIZE": "1"}) == Membership("10.0.0.2:29500", 2)
    assert membership(TORCH | {"WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "4"}) == Membership(
        "10.0.0.2:29500", 4)  # fmt: skip


@pytest.mark.parametrize(
    "alone",
    [
        {},
        {"MASTER_ADDR": "a", "MASTER_PORT": "1"},
        TORCH | {"WORLD_SIZE": "1"},
        TORCH | {"WORLD_SIZE": "many"},
        TORCH | {"LOCAL_WORLD_SIZE": "2"},
        TORCH | {"GROUP_WORLD_SIZE": "1"},
        TORCH | {"MASTER_ADDR": "localhost"},
        TORCH | {"MASTER_ADDR": "127.0.0.1"},
        TORCH | {"MASTER_ADDR": "evil\x1b[2J"},
        {"PET_RDZV_ENDPOINT": "a:1", "PET_NNODES": "1"},
        {"PET_RDZV_ENDPOINT": "a:1", "PET_NNODES": "2", "PET_STANDALONE": "1"},
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": "[]"},
        {"TF_CONFIG": json.dumps({"cluster": {"worker": ["a:1"]}})},
        {"RAY_ADDRESS": "auto"},
    ],
)
def test_a_job_in_one_container_is_none(alone: dict[str, str]) -> None:
    assert membership(alone) is None


def test_two_containers_with_the_host_s_network_meet_at_a_loopback_address() -> None:
    local = TORCH | {"MASTER_ADDR": "127.0.0.1"}
    assert membership(local, shares_network=True) == Membership("127.0.0.1:29500")


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nnodes=2 --rdzv-endpoint=h:29400 --rdzv-id=run7 train.py",
        "torchrun --nnodes 2 --rdzv_endpoint h:29400 --rdzv_id run7 train.py",
        "python -m torch.distributed.run --nnodes=2 --rdzv_endpoint=h:29400 --rdzv-id run7 t.py",
    ],
)
def test_an_agent_of_torchrun_names_its_rendezvous(command: str) -> None:
    assert membership({}, command.split()) == Membership("run7/h:29400", 2)
    assert membership({}, [*command.split(), "--standalone"]) is None


def test_an_elastic_job_has_an_unknown_number_of_containers() -> None:
    given = {"PET_RDZV_ENDPOINT": "h:1", "PET_NNODES": "1:4", "PET_RDZV_ID": "x"}
    assert membership(given) == Membership("x/h:1")


@pytest.mark.parametrize(
    ("given", "job", "containers"),
    [
        ({"HOROVOD_GLOO_RENDEZVOUS_ADDR": "h", "HOROVOD_GLOO_RENDEZVOUS_PORT": "7",
          "HOROVOD_SIZE": "4", "HOROVOD_LOCAL_SIZE": "2"}, "h:7", 2),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
          "PMIX_NAMESPACE": "prterun-h-1@1"}, "mpi/prterun-h-1@1", 4),
        ({"TF_CONFIG": json.dumps({"cluster": {"worker": ["b:2", "c:2"], "ps": ["d:2"]},
                                   "task": {"type": "worker", "index": 1}})}, "tf/d:2", 3),
        ({"RAY_ADDRESS": "ray://head:6379"}, "ray/head:6379", None),
    ],
)  # fmt: skip
def test_other_launchers(given: dict[str, str], job: str, containers: int | None) -> None:
    assert membership(given) == Membership(job, containers)


@given(st.dictionaries(st.sampled_from(VARIABLES), st.text(max_size=30)),
       st.lists(st.text(max_size=12), max_size=6))  # fmt: skip
def test_nothing_in_an_environment_raises(given_: dict[str, str], command: list[str]) -> None:
    found = membership(given_, command)
    assert found is None or found.job.isprintable()
