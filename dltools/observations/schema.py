"""The columns of the table of observations; all else that knows columns is made from them.

One row is one observation at one time. Rows are sorted by `time`. Columns that do not apply to a
row's `kind` are null. Null means "not available", and `gap` says why. To add a column is to add one
line to `COLUMNS`: the Arrow schema, all formats, the Prometheus names, the page
dltools-observations(5) and the tests follow.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "1.6"
"""Version of the table. A minor version adds nullable columns; a major one renames columns."""

VERSION_KEY = b"dltools.schema"
"""Key of the version in the Arrow schema's metadata."""


class Kind(StrEnum):
    """What a row is about."""

    NODE = "node"
    CONTAINER = "container"
    GPU = "gpu"
    PROGRESS = "progress"
    EVENT = "event"


SAMPLED = (Kind.NODE, Kind.CONTAINER)
"""Kinds of rows that make a sample of a host."""

REPORTED = (Kind.PROGRESS, Kind.EVENT)
"""Kinds of rows about what was reported, or happened, at times of its own."""


class Type(StrEnum):
    """How a value is stored."""

    TIME = "timestamp"  # timestamp[us, tz=UTC]
    NAME = "name"  # dictionary-encoded string: an identifier that recurs
    INT = "integer"  # int64
    FLOAT = "real"  # float64


class Instrument(StrEnum):
    """How a value behaves over time, as OpenTelemetry defines it."""

    ATTRIBUTE = "attribute"  # says what the row is about
    GAUGE = "gauge"  # a level at that time
    COUNTER = "counter"  # a total since the start; only differences mean something


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    """It ends in the unit, as names in Prometheus do."""

    type: Type
    """The type of its values."""

    kinds: tuple[Kind, ...]
    """The kinds of rows that have it."""

    instrument: Instrument
    """Whether it is an attribute, a counter or a gauge."""

    unit: str
    """The UCUM code that OpenTelemetry uses ("s", "By", "1"), "" for attributes."""

    help: str
    """What it says, in one sentence."""

    is_label: bool = False
    """Whether it is a label of series in Prometheus text."""


_ALL = tuple(Kind)
_N, _C, _G, _P, _E = _ALL
_A, _GA, _CO = Instrument.ATTRIBUTE, Instrument.GAUGE, Instrument.COUNTER
_T, _S, _I, _F = Type.TIME, Type.NAME, Type.INT, Type.FLOAT

COLUMNS: tuple[Column, ...] = (
    Column("time", _T, _ALL, _A, "", "When it was seen; for progress, when the job reported it."),
    Column("host", _S, _ALL, _A, "", "Name of the Docker host.", is_label=True),
    Column("kind", _S, _ALL, _A, "", "What the row is: node, container, gpu, progress, event."),
    Column("gap", _S, _ALL, _A, "", "Why values of this row are missing, in a few words."),
    Column("container_id", _S, (_C, _G, _P, _E), _A, "", "Its id, all 64 digits.", is_label=True),
    Column("container_name", _S, (_C, _G, _P, _E), _A, "", "Its name.", is_label=True),
    Column("image", _S, (_C,), _A, "", "The image it was started from."),
    Column("state", _S, (_C,), _A, "", "running, paused or restarting."),
    Column("started_at", _T, (_C,), _A, "", "When its main process was last started."),
    Column("labels", _S, (_C,), _A, "", "Its dltools.* labels, as a JSON object."),
    Column("cpu_count", _F, (_N,), _GA, "{cpu}",
           "CPUs that containers can really use: online, in the cpuset, under the parents' quota."),
    Column("cpu_siblings", _S, (_N,), _A, "",
           "The CPUs of each core, joined by +, if a core has several: 0-1+2-3."),
    Column("gpu_count", _I, (_N,), _GA, "{gpu}", "GPUs that NVML reports."),
    Column("cpu_seconds", _F, (_N, _C), _CO, "s",
           "CPU time used by the container, or by everything on the host."),
    Column("cpu_throttled_seconds", _F, (_C,), _CO, "s",
           "Time for which the quota stopped its threads."),
    Column("cpu_pressure_seconds", _F, (_N, _C), _CO, "s",
           "Time in which some task waited for CPU (PSI)."),
    Column("memory_pressure_seconds", _F, (_N, _C), _CO, "s",
           "Time in which some task waited for memory (PSI)."),
    Column("io_pressure_seconds", _F, (_N, _C), _CO, "s",
           "Time in which some task waited for I/O (PSI)."),
    Column("cpu_limit_cores", _F, (_C,), _GA, "{cpu}",
           "CPU quota in force, in cores; the host's cpu_count if it has none."),
    Column("cpu_weight", _F, (_C,), _GA, "1",
           "Relative CPU weight in force, in Docker's shares (default 1024)."),
    Column("cpuset", _S, (_C,), _A, "", "CPUs it may run on, as a list such as 0-3,6."),
    Column("turn_seconds", _F, (_C,), _GA, "s",
           "Length of its turn, if dl-apply makes it take turns."),
    Column("turn_queue", _S, (_C,), _A, "",
           "The GPU for which it takes turns; null for CPUs."),
    Column("cannot", _S, (_N, _C), _A, "",
           "What dl-apply cannot do here: cpus, cpu_weight, cpuset, pause, move, joined by +."),
    Column("thread_count", _I, (_C,), _GA, "{thread}", "Threads alive in it."),
    Column("demand_cores", _F, (_C,), _GA, "{cpu}",
           "CPUs that its threads want: their time running or waiting for a CPU, by wall time."),
    Column("cgroup_parent", _S, (_C,), _A, "",
           "The cgroup among whose children its CPU weight counts."),
    Column("openmp_runtime", _S, (_C,), _A, "",
           "OpenMP runtimes in its processes, joined by +: libgomp, libiomp5, libomp."),
    Column("openmp_settings", _S, (_C,), _A, "",
           "How its threads wait, from its environment, such as OMP_WAIT_POLICY=passive."),
    Column("role", _S, (_C,), _A, "",
           "What dltools takes it for: training, server, interactive or other."),
    Column("role_reason", _S, (_C,), _A, "",
           "Evidence for its role; begins with label dltools.role or --role if somebody set it."),
    Column("job", _S, (_C,), _A, "",
           "The job to which it and others belong: by label, rendezvous address or service."),
    Column("job_containers", _I, (_C,), _A, "",
           "How many containers that job has, if known."),
    Column("memory_total_bytes", _I, (_N,), _GA, "By", "Memory installed."),
    Column("memory_available_bytes", _I, (_N,), _GA, "By",
           "Memory that new work could take without swapping."),
    Column("memory_usage_bytes", _I, (_C,), _GA, "By",
           "All memory charged to it, page cache included."),
    Column("memory_working_set_bytes", _I, (_C,), _GA, "By",
           "Usage without the inactive file cache, which can be freed at once."),
    Column("memory_anon_bytes", _I, (_C,), _GA, "By", "Anonymous memory: heaps and stacks."),
    Column("memory_file_bytes", _I, (_C,), _GA, "By", "Page cache, shared memory included."),
    Column("memory_shmem_bytes", _I, (_C,), _GA, "By", "Shared memory and tmpfs."),
    Column("memory_limit_bytes", _I, (_C,), _GA, "By",
           "Memory limit in force; the host's memory if it has none."),
    Column("io_read_bytes", _I, (_C,), _CO, "By", "Read from block devices."),
    Column("io_write_bytes", _I, (_C,), _CO, "By", "Written to block devices."),
    Column("network_receive_bytes", _I, (_C,), _CO, "By", "Received on all interfaces but lo."),
    Column("network_transmit_bytes", _I, (_C,), _CO, "By", "Sent on all interfaces but lo."),
    Column("owner_cpu_limit_cores", _F, (_C,), _GA, "{cpu}",
           "CPU quota that its owner asked for, in cores; null if none."),
    Column("owner_cpu_weight", _F, (_C,), _GA, "1",
           "CPU weight that its owner asked for (default 1024); null if that is unknown."),
    Column("owner_cpuset", _S, (_C,), _A, "", "CPUs that its owner asked for; null if none."),
    Column("user", _S, (_C,), _A, "",
           "Whose job it is: from its label dltools.user, or from --user-from.", is_label=True),
    Column("priority_weight", _F, (_C,), _GA, "1",
           "Its weight among the jobs of its user, from its label dltools.priority."),
    Column("thread_pools", _S, (_C,), _A, "",
           "What starts threads in it besides OpenMP: libopenblas, inductor=32, joined by +."),
    Column("gpu_share_at_start", _S, (_C,), _A, "",
           "Share of a GPU that it was started with (MPS, MIG, HAMi); nobody can change it."),
    Column("probe_cpu_seconds", _F, (_N,), _CO, "s", "CPU time that dl-probe itself has used."),
    Column("probe_sample_seconds", _F, (_N,), _GA, "s", "Time that dl-probe took for this sample."),
    Column("gpu_uuid", _S, (_G,), _A, "", "The GPU or MIG instance.", is_label=True),
    Column("gpu_utilization_ratio", _F, (_G,), _GA, "1",
           "Share of time in which the container had a kernel on the GPU."),
    Column("gpu_sm_ratio", _F, (_G,), _GA, "1", "Share of the GPU's multiprocessors in use."),
    Column("gpu_memory_used_bytes", _I, (_G,), _GA, "By", "GPU memory that its processes hold."),
    Column("gpu_memory_limit_bytes", _I, (_G,), _GA, "By",
           "Memory of the GPU that programs can have."),
    Column("gpu_power_watts", _F, (_G,), _GA, "W", "Power that the GPU draws."),
    Column("gpu_energy_joules", _F, (_G,), _CO, "J", "Energy that the GPU has used."),
    Column("metric", _S, (_P,), _A, "",
           "What the job reported: loss, val_accuracy, ...", is_label=True),
    Column("metric_original", _S, (_P,), _A, "", "The metric's name as the job printed it."),
    Column("value", _F, (_P,), _GA, "1", "Its value; NaN only if the job said NaN."),
    Column("step", _I, (_P,), _A, "", "The job's own step or iteration."),
    Column("epoch", _F, (_P,), _A, "", "The job's own epoch."),
    Column("epoch_count", _I, (_P,), _GA, "{epoch}",
           "How many epochs the job will train, if it has said so since its last report."),
    Column("step_count", _I, (_P,), _GA, "{step}",
           "How many steps it will train, if it says so and gives no epochs."),
    Column("source", _S, (_P,), _A, "", "How it was found: the extractor's name."),
    Column("event", _S, (_E,), _A, "",
           "start, exit, oom, pause, unpause, update, unhealthy, migrate or deliver."),
    Column("exit_code", _I, (_E,), _A, "", "The exit code of the container."),
)  # fmt: skip

NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
REQUIRED: tuple[str, ...] = ("time", "host", "kind")
"""Columns that are never null."""


@functools.cache
def arrow_schema() -> pa.Schema:
    """Return the Arrow schema of the table, with the version and what each column means."""
    import pyarrow as pa

    types: dict[Type, Any] = {
        Type.TIME: pa.timestamp("us", tz="UTC"),
        Type.NAME: pa.dictionary(pa.int32(), pa.string()),
        Type.INT: pa.int64(),
        Type.FLOAT: pa.float64(),
    }
    fields = [
        pa.field(
            column.name,
            types[column.type],
            nullable=column.name not in REQUIRED,
            metadata={
                "unit": column.unit,
                "instrument": column.instrument.value,
                "help": column.help,
            },
        )
        for column in COLUMNS
    ]
    return pa.schema(fields, metadata={VERSION_KEY: VERSION.encode()})
