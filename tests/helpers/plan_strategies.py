"""Hypothesis strategies for plans and settings."""

from helpers.strategies import integers, names, texts
from hypothesis import strategies as st

from dltools.actions.plans import Action, Op, Plan
from dltools.notation.limits import LIMITS
from dltools.observations.targets import TargetMet

_JSON = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
_JSON_OBJECT = st.dictionaries(texts, _JSON, max_size=3)
_POSITIVE = st.floats(0, 1e12, exclude_min=True) | st.integers(1, 2**53)
_SETTING = {
    "cpus": st.none() | _POSITIVE,
    "weight": _POSITIVE,
    "cpuset": st.none() | st.sampled_from(["0", "0-3,6", "1,3"]),
    "memory": st.none() | st.integers(1, 2**53),
}
settings_ = st.fixed_dictionaries({}, optional={name: _SETTING[name] for name in LIMITS})
"""Any settings that a plan may set or expect."""

turns = st.builds(
    lambda group, turn_s, queue: {"group": group, "turn_s": turn_s} | queue,
    st.integers(0, 9),
    st.floats(0, 1e6, exclude_min=True),
    st.sampled_from([{}, {"queue": "GPU-1"}, {"queue": "MIG-2"}]),
)
"""What a rotation sets."""

targets_met = st.builds(
    TargetMet,
    metric=names,
    objective=st.sampled_from(["min", "max"]),
    target=st.floats(-1e9, 1e9),
    value=st.floats(-1e9, 1e9),
    time=texts,
)
"""Any target that a job has met."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    ids = draw(st.lists(integers, max_size=4, unique=True))
    ops = [draw(st.sampled_from(Op)) for _ in ids]
    actions = tuple(
        Action(
            id=identifier,
            op=op,
            host=draw(names),
            container_id=draw(names),
            container_name=draw(names),
            set=draw(turns if op is Op.ROTATE else settings_),
            expect={} if op is Op.ROTATE else draw(settings_),
            reason=draw(texts),
            to=draw(names) if op is Op.MIGRATE else None,
            met=draw(st.none() | targets_met) if op is Op.DELIVER else None,
            job=draw(st.none() | names),
        )
        for identifier, op in zip(ids, ops, strict=True)
    )
    return Plan(
        policy=draw(texts),
        at=draw(texts),
        params=draw(_JSON_OBJECT),
        input=draw(_JSON_OBJECT),
        next_s=draw(st.none() | st.floats(0, 1e9)),
        actions=actions,
        state=draw(_JSON_OBJECT),
        gain=draw(texts),
        classes=draw(st.dictionaries(names, st.dictionaries(names, names, max_size=2), max_size=2)),
        covers=draw(st.none() | st.lists(names, max_size=3).map(tuple)),
    )
