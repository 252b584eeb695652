"""Traces of Gavel, Pollux, Philly and Alibaba: lines by hand, and faults."""

import json

import pytest

from dltools.errors import DataError
from dltools.sim.traces import alibaba_hosts, alibaba_jobs, gavel_jobs, philly_jobs, pollux_jobs
from dltools.sim.workload import HostSpec, Job

LINE = "ResNet-18 (batch size 32)\tpython3 main.py\timage/cifar10\t--num_steps\t1\t600\t2\t1\t-1\t9"
RATES = {"v100": {"('ResNet-18 (batch size 32)', 2)": {"null": 3.0}}}


def test_a_gavel_job_takes_its_steps_over_its_throughput() -> None:
    # 600 steps at 3 a second: 200 s on 2 GPUs, 400 GPU seconds.
    assert gavel_jobs(LINE, RATES, "t") == [Job("image-1", 9.0, 400.0, 2, spin=0.0)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a\tb", "has 10 fields, not 2"),
        (LINE.replace("\t2\t", "\t4\t"), "no throughput of ResNet-18"),
        (LINE.replace("\t600\t", "\tx\t"), "could not convert"),
        (LINE.replace("\t600\t", "\t-1\t"), "must be more than 0"),
    ],
)
def test_a_gavel_line_at_fault_is_named(text, fault) -> None:
    with pytest.raises(DataError, match="t: line 1") as caught:
        gavel_jobs(text, RATES, "t")
    assert fault in str(caught.value)


def test_a_pollux_job_takes_what_its_application_takes() -> None:
    text = "name,time,application,num_replicas,batch_size\nb-0,107,bert,6,384\n"
    assert pollux_jobs(text, "t") == [Job("b-0", 107.0, 13_600.0, 6, spin=0.0)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("name,time\n", "no column application"),
        ("name,time,application,num_replicas\na,1,gpt,2\n", "line 2: unknown application 'gpt'"),
        ("name,time,application,num_replicas\na,x,ncf,2\n", "line 2: could not convert"),
        ("name,time,application,num_replicas\na,1,ncf,0\n", "num_replicas must be more than 0"),
    ],
)
def test_a_fault_of_pollux_is_named_with_its_place(text, fault) -> None:
    with pytest.raises(DataError, match=r"^t: ") as caught:
        pollux_jobs(text, "t")
    assert fault in str(caught.value)


LOG = [
    {
        "jobid": "a",
        "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:00",
                "end_time": "2017-10-07 01:13:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
            },
            {
                "start_time": "2017-10-07 01:14:00",
                "end_time": "2017-10-07 01:14:10",
                "detail": [{"ip": "m1", "gpus": ["gpu0"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}],
            },
            {"start_time": "None", "end_time": None, "detail": []},
        ],
    },
    {
        "jobid": "b",
        "submitted_time": "2017-10-07 01:11:29",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:00",
                "end_time": "2017-10-07 01:12:05",
                "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
            }
        ],
    },
    {"jobid": "never", "submitted_time": "2017-10-07 01:11:00", "attempts": []},
]


def test_a_philly_job_is_the_sum_of_its_attempts() -> None:
    assert philly_jobs(json.dumps(LOG), "t", 1.0) == [
        Job("a", 10.0, 150.0, 3, spin=0.0),
        Job("b", 0.0, 5.0, 1, spin=0.0),
    ]


def test_run_times_alone_come_a_gap_apart_in_an_order_by_seed() -> None:
    text = "runtime\n" + "".join(f"{k}.0\n" for k in range(20))
    found = philly_jobs(text, "t", 5.0, 1)
    assert [job.arrival for job in found] == [5.0 * k for k in range(19)]  # 0 s never ran
    assert sorted(job.work for job in found) == [float(k) for k in range(1, 20)]
    assert [job.work for job in found] != [job.work for job in philly_jobs(text, "t", 5.0, 2)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x\n", "neither Philly's job log"),
        ("[{}]", "job 1: KeyError"),
        ("[", "t: "),
        ("runtime\nx\n", "line 2"),
        ("runtime\r1\n2", "new-line character"),
        ("a\r\rb", "new-line character"),
        ('[{"jobid": 1, "submitted_time": "2017-10-07T01:11:39+01:00", "attempts": []}]', "zone"),
    ],
)
def test_a_fault_of_philly_is_named_with_its_place(text, fault) -> None:
    with pytest.raises(DataError, match=r"^t: ") as caught:
        philly_jobs(text, "t", 1.0)
    assert fault in str(caught.value)


HEAD = "name,cpu_milli,memory_mib,num_gpu,creation_time,deletion_time,scheduled_time\n"


def test_a_pod_works_while_it_was_scheduled() -> None:
    text = HEAD + "p,1500,2,0,10,100,20\nnever,1000,2,0,10,100,\nstill,1000,2,0,10,,20\n"
    assert alibaba_jobs(text, "t") == [Job("p", 10.0, 120.0, 2, memory=2 << 20, spin=0.0)]


def test_another_table_is_no_pod_list() -> None:
    with pytest.raises(DataError, match="no column cpu_milli"):
        alibaba_jobs("name,time\na,1\n", "t")


@pytest.mark.parametrize(
    "pod", [f"{'15' * 200},2,0,10,100,20", "nan,2,0,10,100,20", "1,2,0,10,inf,20"]
)
def test_a_pod_s_numbers_are_finite(pod) -> None:
    """Found by fuzzing: the first stopped dl-sim, the others made jobs without an end."""
    with pytest.raises(DataError, match=r"^t: line 2: a number is missing, or too large$"):
        alibaba_jobs(f"{HEAD}p,{pod}\n", "t")


def test_hosts_of_both_node_lists() -> None:
    assert alibaba_hosts("sn,cpu_milli,memory_mib,gpu,model\na,64000,2,2,P100\n", "t") == [
        HostSpec("a", 64.0, 2 << 20)
    ]
    assert alibaba_hosts("gpu_model,gpu_capacity_num,cpu_num,node_name\ng,4,192,7\n", "t") == [
        HostSpec("7", 192.0)
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a,b\n", "not an Alibaba node list"),
        ("sn,cpu_milli\na,0\n", "line 2: cpu_milli must be more than 0"),
    ],
)
def test_a_fault_of_alibaba_is_named_with_its_place(text, fault) -> None:
    with pytest.raises(DataError, match=r"^t: ") as caught:
        alibaba_hosts(text, "t")
    assert fault in str(caught.value)
