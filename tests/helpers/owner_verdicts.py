"""What owners may expect of their commands beside the tools, and what was not so.

A verdict says what is wrong with which container, and then what its owner had done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from helpers.owner_commands import ENDS

from dltools.notation.limits import DEFAULT_WEIGHT

if TYPE_CHECKING:
    from helpers.owners_hand import Arm, Done

SLACK_S = 2.0
"""How much longer a command may take than the slowest of its kind on Docker alone; where these take
long, twice as long."""

LEAST_JUDGED_WEIGHT = 500
"""Below this weight of its owner's a command's time depends on what others do just then: the same
restart took 0.4 and 5.5 s on Docker alone at weight 50, a stop 0.5 and 2.0 s at 100."""

ENDED_WELL = {0, 1, 75, 141, 143}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was wrong with a container, or the tools, and whether it is a matter of time alone."""

    text: str
    is_of_time: bool = False


_LATE, _SICK = "took ", "its health check "


def verdicts(arm: Arm, alone: Arm) -> Iterator[Verdict]:
    """Yield what was not as on Docker alone: one for each container, and for the tools."""
    yield from map(Verdict, _of_tools(arm))
    usual = slowest(alone)
    for number, commands in arm.done.items():
        found = [
            (f"{index} {done.command}: ", what)
            for index, (done, expected) in enumerate(zip(commands, alone.done[number], strict=True))
            for what in _of_command(arm, done, expected, usual[done.command.kind])
        ]
        of_all = (
            *_of_updates(commands, alone.done[number]),
            *_of_pauses(arm, number),
            *_of_end(arm, alone, number),
        )
        found += [("", what) for what in of_all]
        if found:
            lines = [where + what for where, what in found]
            text = "\n  ".join([f"container {number}:", *lines, *_story(arm, alone, number)])
            yield Verdict(text, all(what.startswith((_LATE, _SICK)) for _, what in found))


def _of_tools(arm: Arm) -> Iterator[str]:
    bad = {name: code for name, code in arm.ended.items() if code not in ENDED_WELL}
    if bad or "Traceback" in arm.said:
        yield f"the tools ended with {bad}: {arm.said}"


def slowest(alone: Arm) -> Counter[str]:
    found: Counter[str] = Counter()
    for commands in alone.done.values():
        for done in commands:
            found[done.command.kind] = max(found[done.command.kind], done.seconds)
    return found


def _of_command(arm: Arm, done: Done, expected: Done, usual_s: float) -> Iterator[str]:
    kind = done.command.kind
    was_resumed = arm.may_pause and kind == "unpause" and done.code == 0
    if not done.before.agrees(expected.before, may_wait=arm.may_pause):
        return  # said where it came about
    if done.code != expected.code and not was_resumed:
        yield f"exit status {done.code} instead of {expected.code}: {done.said.strip()}"
    weight = done.before.settings.get("weight", DEFAULT_WEIGHT)
    is_judged = float(weight) >= LEAST_JUDGED_WEIGHT
    if is_judged and done.seconds > max(usual_s + SLACK_S, 2 * usual_s):
        yield f"{_LATE}{done.seconds:.1f} s instead of {usual_s:.1f} s"
    if not done.after.agrees(expected.after, may_wait=arm.may_pause):
        yield f"then {done.after} instead of {expected.after}"


def _of_updates(commands: list[Done], expected: list[Done]) -> Iterator[str]:
    """Yield what an owner had set where the tools held something else, and they set it again."""
    for (done, next_), (was, then) in zip(pairwise(commands), pairwise(expected), strict=True):
        if not done.command.sets_cpus or next_.before.started != done.before.started:
            continue
        for name, value in then.before.settings.items():
            was_held = done.before.settings.get(name) != was.before.settings.get(name)
            is_owners = value != was.before.settings.get(name)
            if was_held and is_owners and next_.before.settings.get(name, value) != value:
                yield f"{done.command} is undone: {name} {next_.before.settings.get(name)}"


def _of_pauses(arm: Arm, number: int) -> Iterator[str]:
    """Yield pauses and resumptions that were not the owner's: while it is paused by its owner, and
    after its owner has laid hands on it, until it is a new run; a change counts if the tools knew
    it, that is, had paused it before."""
    commands = arm.done[number]
    ids = {seen.id for done in commands for seen in (done.before, done.after)}
    told = [
        (event["timeNano"] / 1e9, event["Action"])
        for event in arm.events
        if event["Actor"]["ID"] in ids and event["Action"] in ("pause", "unpause", "start")
    ]
    told += [(done.ended, _mark(done)) for done in commands if _mark(done)]
    held, is_known = "", False
    for at, action in sorted(told):
        is_owners = any(done.began - 0.01 <= at <= done.ended + _after_s(done) for done in commands)
        is_known |= action == "pause" and not is_owners
        if action in ("free", "paused"):
            held = action
        elif action == "changed":
            held = "free" if is_known else held
        elif action == "start" or (is_owners and held == "paused"):
            held = ""
        elif is_owners:
            continue
        elif (held, action) in (("free", "pause"), ("paused", "unpause")):
            yield f"at {at % 1000:.2f} the tools {action} it, which its owner had {_WORDS[held]}"
            held = ""


def _after_s(done: Done) -> float:
    """Return for how long (s) what Docker tells after a command may come of it: a paused container
    that is killed goes on when the command has been answered."""
    return 0.3 if done.command.kind == "kill" and done.before.state == "paused" else 0.01


_WORDS = {"free": "resumed, signalled or changed", "paused": "paused"}


def _mark(done: Done) -> str:
    """Return what a command makes of a container: "paused", "free" of turns, "changed", or ""."""
    kind, words = done.command.kind, done.command.steps[0]
    if done.after.state not in ("running", "paused") or done.code != 0:
        return ""
    if kind == "pause":
        return "paused"
    is_change = done.command.sets_cpus and not done.is_second
    if kind == "unpause" or done.is_second or is_change:
        return ("changed" if is_change else "free") if done.after.state == "running" else ""
    return "free" if kind == "kill" and words[2] not in ENDS else ""


def _of_end(arm: Arm, alone: Arm, number: int) -> Iterator[str]:
    seen, expected = arm.last[number], alone.last[number]
    if not seen.agrees(expected, may_wait=False):
        yield f"after the end of the tools {seen} instead of {expected}"
    for name, value in expected.settings.items():
        if seen.settings.get(name, value) != value:
            yield f"after the end of the tools {name} {seen.settings.get(name)} instead of {value}"
    if not arm.marks[number] >= alone.marks[number]:
        yield f"it has {dict(arm.marks[number])} instead of {dict(alone.marks[number])}"
    if (sick := _sick(arm, number)) > _sick(alone, number):
        yield f"{_SICK}has failed {sick} times instead of {_sick(alone, number)}"


def _sick(arm: Arm, number: int) -> int:
    ids = {seen.id for done in arm.done[number] for seen in (done.before, done.after)}
    return sum(
        event["Action"] == "health_status: unhealthy" and event["Actor"]["ID"] in ids
        for event in arm.events
    )


def _story(arm: Arm, alone: Arm, number: int) -> Iterator[str]:
    """Tell what an owner did, and what came of it with the tools and without."""
    for index, (done, was) in enumerate(zip(arm.done[number], alone.done[number], strict=True)):
        yield (
            f"  {index} at {done.began % 1000:.2f} {done.command}: {done.code} in "
            f"{done.seconds:.1f} s, {done.before} to {done.after}; alone {was.code} in "
            f"{was.seconds:.1f} s, {was.before} to {was.after}"
        )
