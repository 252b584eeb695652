"""Who is touched: trainings by every policy, servers by dqoes, all else by none."""

from typing import Any

import pytest
from helpers import observed_rows
from helpers.examples import examples
from helpers.observed_rows import at, container, decisions_of, feed, having_read, node, point, sets
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.plans import Op
from dltools.observations.roles import NO_RULES, Rules, parse_rule
from dltools.observations.table import Row, to_table
from dltools.plan.outcome.decisions import JobDecision
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.realisation.options import Mode

POLICIES = sorted(registry.policies([]))

SEEMS = {"role": "training", "role_reason": "libtorch in its processes, silent"}


def explained(decision: JobDecision) -> str:
    """What a container is, and why it gets what it gets."""
    if decision.reason.startswith(decision.role):
        return decision.reason
    return f"{decision.role}; {decision.reason}"


def planner(policy: str = "fair", mode: Mode | None = Mode.PRIORITY, **more: Any) -> Planner:
    return observed_rows.planner(policy, mode, **more)


def busy(now: float, name: str, **more: Any) -> Row:
    """A container that has used two CPUs since its start, 20 s ago at 0 s."""
    fields = {"thread_count": 2, "started_at": at(-20)} | more
    return container(now, name, 2 * (now + 20), **fields)


def judged(*rows: Row, rules: Rules = NO_RULES) -> str:
    """What the table says of the container x."""
    return decisions_of(having_read(planner(rules=rules), rows))["x"].role


# What a container is


@pytest.mark.parametrize(
    ("metrics", "more", "expected"),
    [
        (["loss"], {}, "training: reports loss"),
        (["latency_seconds"], SEEMS, "server: reports latency_seconds"),
        (["loss"], {"labels": '{"dltools.role": "interactive"}'},
         "interactive: label dltools.role=interactive"),
        (["latency_seconds"], {"labels": '{"dltools.role": "training"}'},
         "training: label dltools.role=training"),
    ],
)  # fmt: skip
def test_reports_are_stronger_than_rows_and_words_than_reports(metrics, more, expected) -> None:
    rows = [point(0, "x", 1.0, metric, step=1) for metric in metrics]
    assert judged(node(1), busy(1, "x", **more), *rows) == expected


WEB = {"role": "server", "role_reason": "publishes port 6006"}
NO_SIGN = {"role": "other", "role_reason": "no sign of a training"}
HIDDEN = {"role": "other", "role_reason": "no sign of a training; its processes cannot be read"}


@pytest.mark.parametrize(
    ("metric", "more", "expected"),
    [
        ("packet_loss", WEB, "server: publishes port 6006"),
        ("loss", WEB, "server: publishes port 6006"),
        ("loss", HIDDEN, "training: reports loss without a step or an epoch"),
        ("loss", SEEMS, "training: libtorch in its processes, silent"),
    ],
)
def test_a_metric_without_a_step_is_borne_out_by_the_row(metric, more, expected) -> None:
    rows = [point(now, "x", 1.0, metric) for now in (0, 1)]
    assert judged(node(1), busy(1, "x", **more), *rows) == expected


@pytest.mark.parametrize(
    ("more", "may_pause"), [(HIDDEN, False), (SEEMS, True), (NO_SIGN | {"role": "training"}, True)]
)
def test_what_only_seems_to_train_is_never_paused(more, may_pause) -> None:
    rows = [node(now) for now in range(5)]
    for name in ("a", "b"):
        rows += [busy(now, name, **more) for now in range(5)]
        rows += [point(now, name, 1.0 / (now + 1)) for now in range(5)]
    plan = feed(planner("fair", Mode.ROTATE), *rows)
    assert any(action.op is Op.ROTATE for action in plan.actions) is may_pause


def test_its_first_step_makes_a_training_of_what_served() -> None:
    rows = [node(now) for now in range(4)] + [busy(now, "x", **WEB) for now in range(4)]
    points = [point(now, "x", 1.0 / (now + 1)) for now in range(3)]
    assert judged(*rows, *points) == "server: publishes port 6006"
    points += [point(3, "x", 0.2, step=3)]
    assert judged(*rows, *points) == "training: reports loss"


def test_the_user_overrules_reports_rows_and_labels() -> None:
    rules = Rules([parse_rule("x=other")])
    row = busy(1, "x", **SEEMS, labels='{"dltools.role": "training"}')
    assert judged(node(1), row, point(0, "x", 1.0), rules=rules) == "other: --role x=other"
    rules = Rules([parse_rule("label:dltools.role=training=server")])
    assert judged(node(1), row, rules=rules) == "server: --role label:dltools.role=training=server"


def test_a_training_that_falls_silent_or_restarts_stays_one() -> None:
    made = planner()
    feed(made, node(0), busy(0, "x"), point(0, "x", 1.0))
    feed(made, node(900), busy(900, "x"))
    assert decisions_of(made)["x"].role == "training: reports loss"
    feed(made, node(902), busy(902, "x", started_at=at(901)))
    assert decisions_of(made)["x"].role == "training: has reported before it restarted"


def test_a_rule_of_a_later_run_is_for_those_that_run_already() -> None:
    state = feed(planner(), node(0), busy(0, "x"), point(0, "x", 1.0)).state
    again = planner(rules=Rules([parse_rule("x=other")]), state=state)
    assert decisions_of(again)["x"].role == "other: --role x=other"


def test_a_rule_is_for_the_name_that_a_container_has_now() -> None:
    made = planner(rules=Rules([parse_rule("new=other")]))
    feed(made, node(0), busy(0, "x"), point(0, "x", 1.0))
    feed(made, node(2), busy(2, "x", container_name="new"))
    assert decisions_of(made)["new"].role == "other: --role new=other"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "other: no sign of a training, left alone"),
        ({"role": "interactive", "role_reason": "jupyter-lab"},
         "interactive: jupyter-lab, left alone"),
        ({"role": "server", "role_reason": "publishes port 5432"},
         "server: publishes port 5432, left alone"),
        (SEEMS | {"labels": '{"dltools.protect": "1"}'},
         "training: libtorch in its processes, silent, protected"),
        (SEEMS, "training: libtorch in its processes, silent; "),
        (SEEMS | {"labels": '{"dltools.role": "other"}'},
         "other: label dltools.role=other, left alone"),
        (SEEMS | {"labels": '{"dltools.qoe": "1"}'}, "server: response-time target 1, left alone"),
    ],
)  # fmt: skip
def test_the_table_says_of_each_container_what_it_is(more, expected) -> None:
    """What its row says, or its labels; and of a job also what it gets."""
    made = having_read(planner(), [node(0), busy(0, "x", **more)])
    assert explained(decisions_of(made)["x"]).startswith(expected)


# What is touched


def test_what_seemed_to_train_and_serves_gets_its_weight_back_once() -> None:
    made = planner("srtf")
    feed(made, node(0), busy(0, "a"), busy(0, "x", **SEEMS), point(-1, "a", 1.0))
    held = feed(made, node(2), busy(2, "a"), busy(2, "x", **SEEMS))
    assert sets(held)["x"] == {"weight": 10}
    serves = [busy(4, "x", **SEEMS, cpu_weight=10.0), point(3, "x", 0.1, "latency_seconds")]
    (action,) = feed(made, node(4), busy(4, "a"), *serves).actions
    assert (action.container_name, action.set) == ("x", {"weight": 1024})
    assert action.reason.startswith("server: reports latency_seconds; ")
    feed(made, node(6), busy(6, "a"), busy(6, "x", **SEEMS))
    # It is its owner's from now on.
    assert feed(made, node(8), busy(8, "a"), busy(8, "x", **SEEMS, cpu_weight=512.0)).actions == ()


def test_beside_turns_too_it_gets_its_weight_back() -> None:
    made = planner("fair", Mode.ROTATE)
    said = {"labels": '{"dltools.role": "training"}'}
    others = [busy(0, "a", **said), busy(0, "b", **said)]
    plan = feed(made, node(0), *others, busy(0, "x", **SEEMS))
    assert sets(plan)["x"] == {"weight": 512}
    others = [busy(2, "a", **said), busy(2, "b", **said)]
    serves = [busy(2, "x", cpu_weight=512.0), point(1, "x", 0.1, "latency_seconds")]
    plan = feed(made, node(2), *others, *serves)
    assert sets(plan)["x"] == {"weight": 1024}


def test_on_a_shared_host_only_what_its_owner_has_labelled_is_touched() -> None:
    made = planner(mode=Mode.QUOTA, rules=Rules([parse_rule("b=training")], only_labelled=True))
    plan = feed(
        made,
        node(1),
        busy(1, "a"),
        busy(1, "b"),
        busy(1, "c", labels='{"dltools.metric": "loss", "dltools.target": "0.1"}'),
        busy(1, "d", labels='{"dltools.role": "training"}'),
        *(point(0, name, 1.0) for name in "abcd"),
    )
    assert sets(plan).keys() == {"c", "d"}
    assert explained(decisions_of(made)["a"]) == (
        "training: reports loss, left alone, as no label of its owner asks for more"
    )


ROLES = {
    "training": {"role": "training", "role_reason": "libtorch in its processes, silent"},
    "reports": {},
    "said": {"labels": '{"dltools.role": "training"}'},
    "server": {"role": "server", "role_reason": "publishes port 80"},
    "serves": {"labels": '{"dltools.qoe": "0.1"}'},
    "interactive": {"role": "interactive", "role_reason": "sshd"},
    "other": {"role": "other", "role_reason": "no sign of a training"},
    "unknown": {},
}
METRICS = {"reports": ["loss"], "serves": ["latency_seconds"]}


@st.composite
def hosts(draw: st.DrawFn) -> list[Row]:
    """Ten samples of up to six containers, each of one role all the time, named by it."""
    names = [f"{draw(st.sampled_from(sorted(ROLES)))}-{n}" for n in range(draw(st.integers(1, 6)))]
    rows: list[Row] = []
    for number in range(draw(st.integers(1, 10))):
        now = 4.0 * number
        rows.append(node(now, 2.0))
        for name in names:
            kind = name.partition("-")[0]
            drawn = {
                "thread_count": draw(st.integers(1, 3)),
                "cpu_weight": draw(st.sampled_from([2.0, 10.0, 1024.0])),
                "cpu_limit_cores": draw(st.sampled_from([0.5, 2.0])),
            }
            rows.append(busy(now, name, **drawn, **ROLES[kind]))
            metrics = METRICS.get(kind, ())
            rows += [point(now - 1, name, draw(st.floats(0, 2)), metric) for metric in metrics]
    return sorted(rows, key=lambda row: row["time"])


@pytest.mark.parametrize("name", POLICIES)
@examples(25)
@given(rows=hosts(), mode=st.sampled_from([None, *Mode]), is_streamed=st.booleans())
def test_policies_touch_trainings_alone_and_dqoes_servers(name, mode, rows, is_streamed) -> None:
    made = planner(name, mode)
    plans = []
    if is_streamed:
        plans = [made.plan({}, pending=False) for _ in made.add_by_sample(to_table(rows))]
    else:
        made.add(to_table(rows))
    allowed = {"training", "reports", "said", *(["serves"] if name == "dqoes" else [])}
    for plan in [*plans, made.plan({})]:
        for action in plan.actions:
            kind = action.container_name.partition("-")[0]
            assert kind in allowed
            assert not (action.op in (Op.ROTATE, Op.PAUSE) and kind == "training")
