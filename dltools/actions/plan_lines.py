"""Plans and results as lines of JSON, written and read.

`dl-plan` writes plans, `dl-apply` reads them and writes results. A plan is a `plan` record, its
`action` records and an `end` record. A stream may carry many plans; a live one ends with a `close`
record, and leaves out what is as in the plan before. A plan without its end is refused: one cut
at a line boundary would parse well otherwise. A plan that a person has edited, so that actions are
missing, added or copied, is read with a warning.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from dltools.actions.plans import Action, Op, Plan, Result
from dltools.actions.settings import Settings
from dltools.errors import DataError
from dltools.input_kinds import Content, content_of, refusal
from dltools.notation.json_values import parse_json
from dltools.notation.limits import LIMITS, WEIGHT, known_name, written, written_name
from dltools.observations.targets import TargetMet

VERSION = 1
"""Version of the records; a reader refuses any other."""


def dump_plan(plan: Plan, before: Plan | None = None) -> str:
    """Return a plan as JSON Lines; the same plan is always the same text. What is as in the plan
    `before` of the same live stream is left out."""
    head = {"kind": "plan", "v": VERSION, **{name: getattr(plan, name) for name in _ALWAYS}}
    head |= _given(live=plan.is_live or None, lease_s=plan.lease_s, covers=plan.covers)
    head |= _given(nothing=plan.nothing or None)
    actions = plan.actions
    if before is not None:
        for name in _LASTING:
            if getattr(before, name) == getattr(plan, name):
                head.pop(name, None)
        turns = list(map(_turn_of, _turns(plan)))
        if turns and turns == list(map(_turn_of, _turns(before))):
            head["same_turns"] = True
            actions = tuple(action for action in actions if action.op is not Op.ROTATE)
    end = {"kind": "end", "actions": len(actions), **_given(state=plan.state or None)}
    return "".join(map(_line, (head, *map(_written_action, actions), end)))


_ALWAYS = ("policy", "at", "params", "input", "next_s", "gain", "classes")
"""What the first record of a plan says."""

_LASTING = ("params", "classes", "covers")
"""What the first record leaves out where it is as in the plan before it."""


def _turns(plan: Plan) -> Iterator[Action]:
    return (action for action in plan.actions if action.op is Op.ROTATE)


def _turn_of(action: Action) -> tuple[str, Settings]:
    return action.container_id, action.set


def _written_action(action: Action) -> dict[str, Any]:
    met = None if action.met is None else asdict(action.met)
    return {
        "kind": "action",
        "id": action.id,
        "op": action.op,
        "host": action.host,
        "container": {"id": action.container_id, "name": action.container_name},
        "set": written(action.set),
        "expect": written(action.expect),
        "reason": action.reason,
        **_given(to=action.to, met=met, job=action.job, user=action.user),
    }


def _given(**fields: Any) -> dict[str, Any]:
    """Return those fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def dump_close(state: Mapping[str, Any] | None = None) -> str:
    """Return the line that ends a live stream in order, maybe with the state after its last
    plan."""
    return _line({"kind": "close", **_given(state=state or None)})


def dump_result(result: Result) -> str:
    """Return a result as one JSON line."""
    return _line(
        {
            "kind": "result",
            "id": result.id,
            "status": result.status,
            "container": {"id": result.container_id, "name": result.container_name},
            "before": written(result.before),
            "after": written(result.after),
            "error": result.error,
        }
    )


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


Warn = Callable[[str], object]
"""Takes a line that says what is odd about an input that is read all the same."""


def load_plans(
    lines: Iterable[bytes],
    name: str,
    warn: Warn = lambda _: None,
    on_close: Callable[[Mapping[str, Any]], object] = lambda _: None,
) -> Iterator[Plan]:
    """Yield each plan of a stream as soon as its `end` has arrived.

    Calls `warn` for a plan that was edited, `on_close` for a record that ends a live stream, with
    its state. Raises `DataError`, with the line's number, for what is not a whole, valid plan.
    """
    draft: _Draft | None = None
    before: Plan | None = None
    number = 0
    for number, line in enumerate(_plan_lines(lines, name), 1):
        if not line.strip():
            continue
        record = _parse(line, f"{name}: line {number}")
        kind = record.fields.get("kind")
        if kind == "plan":
            draft = _begun(record, draft)
        elif draft is None and kind == "close":
            before = None
            on_close(record.maybe("state", dict, {}))
        elif draft is None:
            raise record.fault("not a dltools plan: its first record is not a plan record")
        elif kind == "action":
            draft.add(record)
        elif kind == "end":
            before = draft.plan(record, before, warn)
            yield before
            draft = None
        # other kinds: a later version's additions
    if draft is not None:
        raise DataError(f"{name}: plan cut off after line {number}: no end record")


def _plan_lines(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield all lines. Raises `DataError` where they are empty, or begin with no plan."""
    seen = False
    for line in lines:
        if not seen and line.strip():
            seen = True
            is_plan = content_of(line) is Content.PLANS
            if not is_plan and (reason := refusal(line, "put dl-plan between")):
                raise DataError(f"{name}: {reason}")
        yield line
    if not seen:
        raise DataError(f"{name}: empty input: no plan")


@dataclass(slots=True)
class _Draft:
    """A plan that has no `end` yet: its first record, and its actions, with the ids that they have
    been given."""

    head: _Record
    actions: list[Action] = field(default_factory=list)
    ids: list[int | None] = field(default_factory=list)

    def add(self, record: _Record) -> None:
        """Add an action."""
        self.actions.append(_action(record))
        self.ids.append(record.maybe("id", int))

    def plan(self, end: _Record, before: Plan | None, warn: Warn) -> Plan:
        """Return the plan, now that its `end` has arrived. Calls `warn` for more or fewer actions
        than announced, or two of one id."""
        for oddity in _oddities(self.ids, end.get("actions", int)):
            warn(f"{end.where}: {oddity}")
        if before is not None and self.head.fields.get("same_turns") is True:
            turns = list(_turns(before))
            self.actions += turns
            self.ids += [None] * len(turns)
        return _plan(self.head, _numbered(self.actions, self.ids), end, before)


def _begun(head: _Record, before: _Draft | None) -> _Draft:
    if before is not None:
        raise head.fault("a new plan begins before the end of the last one")
    if (version := head.fields.get("v")) != VERSION:
        raise head.fault(f"plan version {version}; this dltools reads {VERSION}")
    return _Draft(head)


_Kind = type | tuple[type, ...]
_NUMBER = (int, float)


@dataclass(frozen=True, slots=True)
class _Record:
    """The fields of a JSON object, which are of certain kinds, and where it stands."""

    fields: Mapping[str, Any]
    where: str

    def fault(self, what: str) -> DataError:
        """Return the error that says what is wrong here."""
        return DataError(f"{self.where}: {what}")

    def get(self, key: str, kind: _Kind) -> Any:
        """Return a field. Raises `DataError` where it is missing or of another kind."""
        value = self.fields.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.fault(f"missing or wrong {key!r}")
        return value

    def maybe(self, key: str, kind: _Kind, default: Any = None) -> Any:
        """Return a field, or the default where it is missing. Raises `DataError` as `get` does."""
        return default if self.fields.get(key) is None else self.get(key, kind)

    def part(self, key: str) -> _Record:
        """Return an object in this one. Raises `DataError` as `get` does."""
        return _Record(self.get(key, dict), self.where)

    def seconds(self, key: str) -> float | None:
        """Return a number of seconds, None where it is missing. Raises `DataError`."""
        seconds = self.maybe(key, _NUMBER)
        if seconds is not None and not 0 <= seconds < 2**63:
            raise self.fault(f"{key} is not a number of seconds: {str(seconds)[:30]}")
        return None if seconds is None else float(seconds)


def _parse(line: bytes, where: str) -> _Record:
    try:
        record = parse_json(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {str(error)[:120]}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: not a JSON object")
    return _Record(record, where)


def _action(record: _Record) -> Action:
    container = record.part("container")
    try:
        op = Op(record.get("op", str))
    except ValueError as error:
        raise record.fault(f"unknown op {record.fields['op']!r}") from error
    return Action(
        id=0,  # numbered when all of the plan's are known
        op=op,
        host=record.get("host", str),
        container_id=container.get("id", str),
        container_name=container.get("name", str),
        set=_turn(record.part("set")) if op is Op.ROTATE else _settings(record, "set"),
        expect={} if op is Op.ROTATE else _settings(record, "expect"),
        reason=record.maybe("reason", str, ""),
        met=None if record.fields.get("met") is None else _target_met(record.part("met")),
        **{key: record.maybe(key, str) for key in ("to", "job", "user")},
    )


def _target_met(record: _Record) -> TargetMet:
    own: dict[str, Any] = {key: record.get(key, str) for key in ("metric", "objective", "time")}
    own |= {key: float(record.get(key, _NUMBER)) for key in ("target", "value")}
    return TargetMet(**own)


_LONGEST_QUEUE = 200

_OF_PERIOD = ("period_s", "asked", "had")
"""What a turn that is a share of the time says of it, and of a container's share of GPUs."""

_LIMITS = tuple(map(written_name, LIMITS))


def _turn(record: _Record) -> Settings:
    group, turn = record.get("group", int), record.get("turn_s", _NUMBER)
    if not 0 <= group < 2**31 or not 0 < turn < 2**31:
        raise record.fault("a turn is a group from 0 and turn_s of more than 0 seconds")
    queue, period = record.maybe("queue", str, ""), record.maybe("period_s", _NUMBER)
    if len(queue) > _LONGEST_QUEUE or not queue.isprintable():
        raise record.fault(f"a queue's name is at most {_LONGEST_QUEUE} printable characters")
    if period is not None and (not queue or not turn <= period < 2**31):
        raise record.fault("a period is only for turns on a GPU, and no shorter than the turn")
    of_period = _OF_PERIOD if period is not None else ()
    numbers = _given(**{name: record.maybe(name, _NUMBER) for name in of_period})
    own = {"group": group, "turn_s": float(turn), **_given(queue=queue or None)}
    return cast(Settings, own | {name: float(value) for name, value in numbers.items()})


def _settings(record: _Record, key: str) -> Settings:
    settings: dict[str, Any] = record.maybe(key, dict, {})
    for name, value in settings.items():
        if name not in _LIMITS:
            raise record.fault(f"unknown setting {name!r}; known: {', '.join(_LIMITS)}")
        if value is None and name != WEIGHT:
            continue
        if name == "cpuset":
            if not isinstance(value, str) or not value:
                raise record.fault(f"cpuset is not a list of CPUs: {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**63:
            raise record.fault(f"{name} is not a positive number: {value!r}")
    return cast(Settings, {known_name(name): value for name, value in settings.items()})


def _oddities(ids: Sequence[int | None], announced: int) -> Iterator[str]:
    """Yield what tells that a plan was edited."""
    if announced != len(ids):
        yield f"{announced} actions announced, {len(ids)} found: treated as edited by hand"
    given = [number for number in ids if number is not None]
    if len(set(given)) != len(given):
        yield "two actions have the same id: the later one gets another"


def _numbered(actions: Sequence[Action], ids: Sequence[int | None]) -> tuple[Action, ...]:
    """Return the actions with their ids; those without, and copies, get the next free numbers."""
    free = itertools.count(max((number for number in ids if number is not None), default=0) + 1)
    seen: set[int] = set()
    numbered = []
    for action, number in zip(actions, ids, strict=True):
        own = next(free) if number is None or number in seen else number
        seen.add(own)
        numbered.append(replace(action, id=own))
    return tuple(numbered)


_HEAD = {"policy": str, "at": str, "params": dict, "input": dict, "gain": str, "nothing": str}
"""What a plan may say in its first record, and the types of that."""


def _plan(head: _Record, actions: tuple[Action, ...], end: _Record, before: Plan | None) -> Plan:
    """Return a plan; what a live one leaves out is as in the plan `before` it."""
    if before is not None and head.fields.get("live") is True:
        lasting = {name: getattr(before, name) for name in _LASTING}
        head = replace(head, fields=lasting | dict(head.fields))
    covers: Sequence[str] | None = head.maybe("covers", (list, tuple))
    if covers is not None and not all(isinstance(cover, str) for cover in covers):
        raise head.fault("missing or wrong 'covers'")
    classes = head.maybe("classes", dict, {})
    for host in classes:
        jobs = _Record(classes, head.where).part(host)
        for job in jobs.fields:
            jobs.get(job, str)
    return Plan(
        **{key: head.maybe(key, kind, kind()) for key, kind in _HEAD.items()},
        next_s=head.seconds("next_s"),
        actions=actions,
        state=end.maybe("state", dict, {}),
        classes=classes,
        is_live=head.fields.get("live") is True,
        lease_s=head.seconds("lease_s"),
        covers=None if covers is None else tuple(covers),
    )
