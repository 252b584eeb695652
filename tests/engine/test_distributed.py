"""Which job a process is a member of, by the variables of its launcher."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.distributed import VARIABLES, Membership, membership, variables_in

TORCH = {"MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "RANK": "1"}


def membership_of_one(variables, command=(), *, shares_network: bool = False) -> Membership | None:
    return membership([(variables, command)], shares_network=shares_network)


def test_only_variables_of_launchers_are_read() -> None:
    environ = b"SECRET=x\0MASTER_ADDR=a\0MASTER_PORT=1\0WORLD_SIZE=2\0PATH=/bin\0MASTER_ADDR=b\0"
    assert variables_in(environ) == {"MASTER_ADDR": "a", "MASTER_PORT": "1", "WORLD_SIZE": "2"}
    assert variables_in(b"TF_CONFIG=" + b"x" * 5000) == {}


def test_members_of_torch_distributed_meet_at_the_master() -> None:
    for more, containers in (
        ({}, 2),  # of one process each
        ({"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}, 2),
        ({"LOCAL_WORLD_SIZE": "1"}, 2),
        ({"WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "4"}, 4),
    ):
        assert membership_of_one(TORCH | more) == Membership("10.0.0.2:29500", containers)


@pytest.mark.parametrize(
    "alone",
    [
        {},
        {"MASTER_ADDR": "a", "MASTER_PORT": "1", "WORLD_SIZE": "1"},
        {"MASTER_ADDR": "a", "MASTER_PORT": "1", "HOSTNAME": "a"},
        {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
        {"NCCL_COMM_ID": "localhost:1"},
        {"MASTER_ADDR": "localhost", "WORLD_SIZE": "2"},
        {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
        TORCH | {"WORLD_SIZE": "1"},
        TORCH | {"WORLD_SIZE": "many"},
        TORCH | {"LOCAL_WORLD_SIZE": "2"},
        TORCH | {"GROUP_WORLD_SIZE": "1"},
        TORCH | {"MASTER_ADDR": "localhost"},
        TORCH | {"MASTER_ADDR": "evil\x1b[2J"},
        {"PET_RDZV_ENDPOINT": "a:1", "PET_NNODES": "1"},
        {"PET_NNODES": "1:1", "WORLD_SIZE": "2"},
        {"HOROVOD_SIZE": "2", "HOROVOD_LOCAL_SIZE": "2"},
        {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
        {"PET_RDZV_ENDPOINT": "a:1", "PET_NNODES": "2", "PET_STANDALONE": "1"},
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": "[]"},
        {"TF_CONFIG": json.dumps({"cluster": {"worker": ["a:1"]}})},
    ],
)
def test_a_job_in_one_container_is_none(alone) -> None:
    assert membership_of_one(alone) is None


def test_two_containers_with_the_host_s_network_meet_at_a_loopback_address() -> None:
    local = TORCH | {"MASTER_ADDR": "127.0.0.1"}
    assert membership_of_one(local, shares_network=True) == Membership("127.0.0.1:29500", 2)
    del local["MASTER_PORT"]
    assert membership_of_one(local, shares_network=True) == Membership("", 2)


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nnodes=2 --rdzv-endpoint=h:29400 --rdzv-id=run7 train.py",
        "torchrun --nnodes 2 --rdzv_endpoint h:29400 --rdzv_id run7 train.py",
        "python -m torch.distributed.run --nnodes=2 --rdzv_endpoint=h:29400 --rdzv-id run7 t.py",
    ],
)
def test_an_agent_of_torchrun_names_its_rendezvous(command) -> None:
    assert membership_of_one({}, command.split()) == Membership("run7/h:29400", 2)
    assert membership_of_one({}, [*command.split(), "--standalone"]) is None


def test_an_elastic_job_has_an_unknown_number_of_containers() -> None:
    given = {"PET_RDZV_ENDPOINT": "h:1", "PET_NNODES": "1:4", "PET_RDZV_ID": "x"}
    assert membership_of_one(given) == Membership("x/h:1")


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
def test_other_launchers(given, job, containers) -> None:
    assert membership_of_one(given) == Membership(job, containers)


@pytest.mark.parametrize(
    ("given", "containers"),
    [
        ({"WORLD_SIZE": "4"}, 4),
        ({"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, 2),
        ({"WORLD_SIZE": "4", "MASTER_ADDR": "tasks.trainer"}, 4),
        ({"PET_NNODES": "3"}, 3),
        ({"PET_NNODES": "1:3"}, 3),  # no more than that
        ({"HOROVOD_SIZE": "4", "HOROVOD_LOCAL_SIZE": "2"}, 2),
        ({"HOROVOD_SIZE": "4", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "h", "HOROVOD_CROSS_SIZE": "2"}, 2),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, 4),
    ],
)
def test_a_job_may_have_no_name(given, containers) -> None:
    assert membership_of_one(given) == Membership("", containers)


def test_of_a_container_s_processes_those_that_say_more_count() -> None:
    """A launcher has the variables of its container, and its workers have all."""
    container = {"WORLD_SIZE": "4"}
    local = container | {"LOCAL_WORLD_SIZE": "4"}
    assert membership([(container, ["sh"]), (TORCH, [])]) == Membership("10.0.0.2:29500", 2)
    assert membership([(container, ["sh"]), ({}, ["sleep"])]) == Membership("", 4)
    assert membership([(container, ["sh"]), (local, ["python"])]) is None
    assert membership([(container, ["torchrun", "--standalone", "train.py"])]) is None
    assert membership([(local, []), (TORCH, [])]) == Membership("10.0.0.2:29500", 2)


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({"MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "1", "HOSTNAME": "a"}, ""),
        ({"NCCL_COMM_ID": "10.0.0.2:5000"}, "python train.py"),
        ({"JAX_COORDINATOR_ADDRESS": "node0:1234"}, "python train.py"),
        ({"RAY_ADDRESS": "auto"}, "python tune.py"),
        ({}, "ray::train_fn"),
        ({}, "/usr/lib/python3/ray/core/src/ray/raylet/raylet --node_ip=10.0.0.2"),
        ({}, "/usr/bin/python3 /usr/local/bin/ray start --address=head:6379 --block"),
        ({}, "gcs_server --port=6379"),
    ],
)
def test_who_talks_to_others_may_not_say_how_many(given, command) -> None:
    assert membership_of_one(given, command.split()) == Membership("")


def test_ray_counts_before_what_its_workers_say() -> None:
    local = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    assert membership([(local, ["python"]), ({}, ["ray::IDLE"])]) == Membership("")
    assert membership([({}, ["cat", "ray", "start"]), ({}, ["ray", "status"])]) is None


@given(
    st.dictionaries(st.sampled_from(sorted(VARIABLES)), st.text(max_size=30)),
    st.lists(st.text(max_size=12), max_size=6),
)
def test_nothing_in_an_environment_raises(given_, command) -> None:
    found = membership_of_one(given_, command)
    assert found is None or (found.job.isprintable() and found.containers != 1)
