"""Properties of the way from observations to plans."""

import dataclasses
from datetime import timedelta

import pytest
from helpers.examples import examples, repeated, some_of
from helpers.observed_rows import BEGUN, at, container, job_id, node, point, reread
from helpers.observed_rows import gpu as gpu_row
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Op, Plan
from dltools.observations import samples_by_host
from dltools.observations.schema import COLUMNS, Kind, Type
from dltools.observations.table import Row, to_table
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build, describe
from dltools.plan.realisation.options import Mode, RealisationOptions

POLICIES = list(registry.policies([]))
SCALED = [name for name in POLICIES if name not in ("dqoes", "tradl")]
MODES = (None, Mode.QUOTA, Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE)


LABELS = (
    None,
    '{"dltools.metric": "loss", "dltools.target": "0.5", "dltools.target.final": "0.1"}',
    '{"dltools.qoe": "0.5"}',
    '{"dltools.steps": "20"}',
    '{"dltools.role": "training"}',
    '{"dltools.role": "interactive"}',
)
ROLES = (None, "training", "training", "server", "interactive", "other")


ASKED: tuple[Row, ...] = (
    {},
    {},
    {"owner_cpu_weight": 1024.0},
    {"owner_cpu_weight": 2048.0, "owner_cpu_limit_cores": 0.5, "owner_cpuset": "0"},
)

GPUS: tuple[tuple[str, ...], ...] = ((), (), ("1",), ("1", "2"))

METRICS = ("loss", "loss", "loss", "val_accuracy", "loss_d", "loss_g", "ep_rew_mean", "latency_p99")


def gpu_rows(now: float, name: str, gpu: str, host: str) -> st.SearchStrategy[Row]:
    """What a container uses of a GPU of 16 bytes."""
    ratios, sizes = st.sampled_from([None, 0.0, 0.5, 1.0]), st.sampled_from([None, 4, 9])
    return st.builds(
        lambda ratio, held: gpu_row(
            now, name, gpu, ratio, host=host, gpu_memory_used_bytes=held, gpu_memory_limit_bytes=16
        ),
        ratios,
        sizes,
    )


@st.composite
def recordings(draw: st.DrawFn) -> list[Row]:
    """Up to 12 samples on up to two hosts of up to 4 containers each that come, go, restart, have
    targets, serve, use GPUs, or are no jobs, and report whatever they like."""
    rows: list[Row] = []
    for host in draw(st.sampled_from([["node"], ["node"], ["node", "other"]])):
        names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True))
        labels = {name: draw(st.sampled_from(LABELS)) for name in names}
        roles = {name: draw(st.sampled_from(ROLES)) for name in names}
        gpus = {name: draw(st.sampled_from(GPUS)) for name in names}
        for number in range(draw(st.integers(1, 12))):
            now = number * 2.0 + draw(st.sampled_from([0.0, 0.0, 0.05]))
            rows.append(node(now, draw(st.sampled_from([1.0, 2.0, 4.0])), host))
            for name in names:
                if draw(st.integers(0, 9)) == 0:
                    continue
                if draw(st.integers(0, 9)) == 0:
                    roles[name] = draw(st.sampled_from(ROLES))
                begun = 7 if number > 6 and draw(st.integers(0, 9)) == 0 else 0
                limit = draw(st.sampled_from([None, 0.5, 2.0]))
                weight = draw(st.sampled_from([1024.0, 1024.0, 10.0, 2.0, 700.0, None]))
                asked = draw(st.sampled_from(ASKED))
                fields = {"cpu_limit_cores": limit, "cpu_weight": weight, "started_at": at(begun)}
                said = {"labels": labels[name], "role": roles[name], "role_reason": "as drawn"}
                threads = draw(st.integers(1, 3))
                more = {**asked, **fields, **said, "host": host, "thread_count": threads}
                rows.append(container(now, name, number * 1.5, **more))
                rows += [draw(gpu_rows(now, name, gpu, host)) for gpu in gpus[name]]
                serves = labels[name] is not None and "qoe" in labels[name]
                for _ in range(draw(st.integers(0, 2))):
                    metric = "latency_seconds" if serves else draw(st.sampled_from(METRICS))
                    value = draw(st.floats(width=32))
                    time = max(0.0, now - draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])))
                    rows.append(point(time, name, value, metric, host=host, step=number))
    return sorted(rows, key=lambda row: row["time"])


def begin(name: str, state: object = None, mode: Mode | None = Mode.QUOTA) -> Planner:
    policy = registry.get(name, [])
    known = {p["name"] for p in describe(policy.parameters)}
    given = {"itval": 4.0, "itval_max": 8.0, "cooldown": 4.0, "pause": 0.0}
    parameters = build(policy.parameters, {k: v for k, v in given.items() if k in known})
    return Planner(policy, parameters, RealisationOptions(mode), state)  # type: ignore[arg-type]


def final(name: str, rows: list[Row], state: object = None, mode: Mode | None = Mode.QUOTA) -> Plan:
    made = begin(name, state, mode)
    made.add(to_table(rows))
    return made.plan({})


def essence(plan: Plan) -> list[tuple[object, ...]]:
    return [(a.op, a.host, a.container_name, a.set, a.expect, a.to) for a in plan.actions]


@pytest.mark.parametrize("name", some_of(POLICIES, 3))
@examples(repeated(10, 25))
@given(rows=recordings(), data=st.data())
def test_two_halves_with_the_state_handed_on_give_the_plan_of_the_whole(name, rows, data) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    mode = data.draw(st.sampled_from(MODES))
    first = reread(final(name, rows[:cut], mode=mode))
    whole = final(name, rows, mode=mode)
    assert dump_plan(final(name, rows[cut:], first.state, mode)) == dump_plan(whole)


@pytest.mark.parametrize("name", some_of(POLICIES, 3))
@examples(repeated(10, 25))
@given(rows=recordings(), chunk=st.integers(1, 20), mode=st.sampled_from(MODES))
def test_samples_in_stretches_give_the_plan_of_samples_one_by_one(name, rows, chunk, mode) -> None:
    slowly = begin(name, mode=mode)
    for _ in slowly.add_by_sample(to_table(rows)):
        pass
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples_by_host, "CHUNK_ROWS", chunk)
        assert dump_plan(final(name, rows, mode=mode)) == dump_plan(slowly.plan({}))


@pytest.mark.parametrize("name", some_of(POLICIES, 3))
@examples(repeated(6, 12))
@given(rows=recordings(), chance=st.randoms(use_true_random=False))
def test_order_of_containers_within_a_sample_changes_nothing(name, rows, chance) -> None:
    keyed = {id(row): (row["time"], chance.random()) for row in rows}
    shuffled = sorted(rows, key=lambda row: keyed[id(row)])
    said = iter([row for row in rows if row["kind"] == "progress"])  # their order is data
    shuffled = [next(said) if row["kind"] == "progress" else row for row in shuffled]
    shuffled.sort(key=lambda row: row["time"])
    assert essence(final(name, shuffled)) == essence(final(name, rows))


@pytest.mark.parametrize("name", some_of(POLICIES, 3))
@examples(repeated(6, 12))
@given(rows=recordings(), seconds=st.integers(-(10**9), 10**9))
def test_a_shift_of_all_times_changes_no_action(name, rows, seconds) -> None:
    by = timedelta(seconds=seconds, microseconds=seconds % 997)
    shifted = [
        row
        | {"time": row["time"] + by}
        | ({"started_at": row["started_at"] + by} if "started_at" in row else {})
        for row in rows
    ]
    assert essence(final(name, shifted)) == essence(final(name, rows))


@pytest.mark.parametrize("name", some_of(POLICIES, 3))
@examples(repeated(6, 12))
@given(rows=recordings())
def test_an_idle_container_without_progress_changes_nothing(name, rows) -> None:
    idle = [
        container((row["time"] - BEGUN).total_seconds(), "idle", 0.0, host=row["host"])
        for row in rows
        if row["kind"] == "node"
    ]
    assert essence(final(name, rows + idle)) == essence(final(name, rows))


@pytest.mark.parametrize("name", some_of(SCALED, 2))
@examples(repeated(6, 12))
@given(rows=recordings(), factor=st.sampled_from([2.0**-8, 0.5, 4.0, 2.0**10]))
def test_scaling_every_metric_changes_nothing(name, rows, factor) -> None:
    rows = [row | ({"labels": None} if "labels" in row else {}) for row in rows]
    scaled = [row | ({"value": row["value"] * factor} if "value" in row else {}) for row in rows]
    sizes = [abs(row.get("value") or 0) for row in (*rows, *scaled)]
    if all(size == 0 or 1e-100 < size < 1e100 for size in sizes):
        assert essence(final(name, scaled)) == essence(final(name, rows))


@pytest.mark.parametrize("name", some_of(POLICIES, 3))
@examples(repeated(10, 25))
@given(rows=recordings(), mode=st.sampled_from([None, *Mode]))
def test_settings_are_within_bounds_and_no_serving_container_is_paused(name, mode, rows) -> None:
    plan = final(name, rows, mode=mode)
    for action in plan.actions:
        if action.op is Op.ROTATE:
            assert action.set["turn_s"] >= 0.05 * action.set.get("period_s", 4.0)
            own = (action.host, action.container_name)
            labels = [
                row.get("labels") for row in rows if (row["host"], row.get("container_name")) == own
            ]
            assert not any(label and "qoe" in label for label in labels)
        elif action.op is Op.UPDATE:
            cpus = action.set.get("cpus", 1.0)
            assert cpus is None or cpus >= 0.01
            assert 2 <= action.set.get("weight", 2) <= 262144
    made = begin(name, mode=mode)
    made.add(to_table(rows))
    for decision in made.explain().decisions:
        if decision.allocation.share is not None:
            assert 0 < decision.allocation.share <= 1


def any_value(type_: Type) -> st.SearchStrategy[object]:
    return {
        Type.TIME: st.datetimes().map(lambda moment: moment.replace(tzinfo=BEGUN.tzinfo)),
        Type.NAME: st.sampled_from(["", "a", "b", "{}", "[", "running", "loss", "val_accuracy"])
        | st.text(st.characters(codec="utf-8"), max_size=5),
        Type.INT: st.integers(-(2**63), 2**63 - 1),
        Type.FLOAT: st.floats(),
    }[type_]


ANY_ROW = st.fixed_dictionaries(
    {
        "time": st.integers(0, 50).map(lambda s: BEGUN + timedelta(seconds=s))
        | any_value(Type.TIME),
        "host": st.sampled_from(["h", "i"]),
        "kind": st.sampled_from([kind.value for kind in Kind]),
    },
    optional={
        c.name: st.none() | any_value(c.type)
        for c in COLUMNS
        if c.name not in ("time", "host", "kind")
    }
    | {"container_id": st.sampled_from(["a", "b", job_id("c")])},
)


@pytest.mark.parametrize("name", POLICIES)
@examples(repeated(15, 40))
@given(rows=st.lists(ANY_ROW, max_size=30), mode=st.sampled_from([None, *Mode]))
def test_no_table_makes_a_policy_raise(name, mode, rows) -> None:
    policy = registry.get(name, [])
    choice = RealisationOptions(mode)
    made = Planner(policy, policy.parameters(), choice)
    made.add(to_table(rows))
    plan = made.plan({})
    made.explain()
    again = Planner(policy, policy.parameters(), choice, reread(plan).state)
    assert dump_plan(again.plan({})) == dump_plan(dataclasses.replace(plan, input={}))
    for action in plan.actions:
        cpus = action.set.get("cpus", 1.0)
        assert cpus is None or cpus >= 0.01
        assert 2 <= action.set.get("weight", 2) <= 262144


def test_an_overlapping_recording_is_not_counted_twice() -> None:
    rows: list[Row] = []
    for k in range(6):
        now = 2.0 * k
        rows += [node(now), container(now, "a", k), point(now, "a", 1 / (k + 1))]
    first = final("flowcon", rows)
    assert essence(final("flowcon", rows[6:], reread(first).state)) == essence(first)


def test_protected_jobs_get_no_action() -> None:
    labels = '{"dltools.protect": "1"}'
    rows = [node(0), container(0, "a", 1.0, labels=labels), point(0, "a", 1.0)]
    rows += [container(0, "b", 1.0), point(0, "b", 1.0)]
    assert essence(final("fair", rows)) == []  # b alone has the whole host
