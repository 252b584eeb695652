"""Walking a host through its feed: samples are settled one after the other, and taken in stretches.

As long as the same containers run, nothing happens between two rounds that a policy would see, and
the samples in between are added to what is remembered all at once. That is what makes a week of
them a matter of seconds.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dltools.cpus import widest
from dltools.observations import samples as feeds
from dltools.observations.samples import Feed, Points, Rest
from dltools.plan.host_history import Site
from dltools.plan.policy.base import Needs
from dltools.plan.policy.container_history import Track

Labels = Callable[[str, str | None], dict[str, str]]
"""From a container's name and the text of its labels to its labels."""


def _nothing() -> Feed:
    return Feed([], [], [], [0], {}, {})


@dataclass(slots=True)
class Walk(Site):
    """A host and the feed that it is walked through: `reached` of its ticks are settled, `taken` of
    these are in the tracks already. `rest` is what the feed before has left."""

    rest: Rest = field(default_factory=Rest)
    feed: Feed = field(default_factory=_nothing)
    reached: int = 0
    taken: int = 0
    layout: tuple[list[str], list[int | None], list[str | None]] = field(
        default_factory=lambda: ([], [], [])
    )
    alarms: dict[str, int] = field(default_factory=dict)  # when a job first speaks, meets a target

    def clone(self) -> Walk:
        """Return a copy that shares nothing that changes."""
        tracks = {key: track.clone() for key, track in self.tracks.items()}
        return replace(self, tracks=tracks, grants=dict(self.grants))

    def begin(self, feed: Feed, needs: Needs) -> None:
        """Go on with a feed, that of the rest before it."""
        self.feed, self.reached, self.taken, self.alarms = feed, 0, 0, {}
        for track in self.tracks.values():
            self._set_alarm(track, needs)

    def end(self, needs: Needs, *, whole: bool) -> None:
        """Take what is settled; keep the rest for later: the last tick, unless that is settled
        too (`whole`), and the points after it."""
        self.take(needs)
        self.forget_bystanders(needs)
        feed, ticks = self.feed, len(self.feed.times)
        settled = feed.times[self.reached - 1] if self.reached else None
        points = feeds.ungrouped(feed.points, settled)
        self.rest = Rest(points=points)
        if not whole and ticks:
            low, high = feed.bounds[ticks - 1], feed.bounds[ticks]
            rows = {name: column[low:high] for name, column in feed.rows.items()}
            self.rest = Rest(feed.times[-1], feed.sizes[-1], rows, points)
        self.feed = _nothing()
        self.reached = self.taken = 0

    def settle_tick(self, needs: Needs, labels: Labels) -> None:
        """Settle the next tick: see who has come, gone or restarted."""
        tick = self.reached
        layout = self.feed.layout(tick)
        if layout != self.layout:
            self.take(needs)
            self._arrive(tick, layout, needs, labels)
        self.reached += 1
        self.settled, self.orders = self.feed.times[tick], ()

    def is_quiet(self) -> bool:
        """Tell whether nothing happens at the next tick that a policy would see."""
        tick = self.reached
        now = self.feed.times[tick]
        return not (
            self.feed.layout(tick) != self.layout
            or any(time <= now for time in self.alarms.values())
            or (self.cpus == 0 and self.feed.sizes[tick] > 0)
            or (self.rounds.members and self.rounds.due(now))
            or self.line.is_due(now)
        )

    def _arrive(self, tick: int, layout: Any, needs: Needs, labels: Labels) -> None:
        """Make the tracks of the containers that run at a tick."""
        feed, low, tracks = self.feed, self.feed.bounds[tick], {}
        for at, (key, started, text) in enumerate(zip(*layout, strict=True), low):
            track = self.tracks.get(key)
            known = track is not None
            if track is None or (started and track.started and started != track.started):
                known, held = False, track is not None and track.held
                title = feed.rows["container_name"][at] or key[:12]
                track = Track(key, title, self.name, arrived=feed.times[tick], held=held)
                self.grants.pop(key, None)
                self.alarms.pop(key, None)
                if tick > 0:  # what it said while it was not seen to run is nobody's
                    for points in feed.points.get(key, {}).values():
                        points.at = points.upto(feed.times[tick - 1])
            track.started = started or track.started
            track.label(labels(track.name, text))
            tracks[key] = track
            if not known:
                self._set_alarm(track, needs)
        self.tracks, self.layout = tracks, layout
        self.alarms = {key: time for key, time in self.alarms.items() if key in tracks}

    def take(self, needs: Needs) -> bool:
        """Bring the tracks up to the last settled tick; the same containers run at all of them.

        Tell whether one has met a target.
        """
        begin, end, feed, rows = self.taken, self.reached, self.feed, self.feed.rows
        if begin == end:
            return False
        met = False
        self.taken = end
        size = next((s for s in reversed(feed.sizes[begin:end]) if s > 0), None)
        self.cpus = size or self.cpus
        times, order = feed.times[begin:end], self.layout[0]
        low, high, many = feed.bounds[begin], feed.bounds[end], len(order)
        for number, key in enumerate(order):
            track = self.tracks[key]
            last = high - many + number
            track.name = rows["container_name"][last] or track.name
            track.state = rows["state"][last] or "running"
            track.cpus = _known(rows["cpu_limit_cores"][last])
            track.weight = _known(rows["cpu_weight"][last])
            track.turn_s = _known(rows["turn_seconds"][last])
            track.threads = rows["thread_count"][last]
            track.cpuset = rows["cpuset"][last]
            track.add_samples(times, rows["cpu_seconds"][low + number : high : many])
            own = feed.points.get(key)
            if own:
                before = (track.met_first, track.met_final)
                self._take_points(track, own, times[-1], needs)
                met = met or (track.met_first, track.met_final) != before
        self.cpuset = widest(self.cpuset, (track.cpuset for track in self.tracks.values()))
        return met

    def _take_points(self, track: Track, own: Mapping[str, Points], now: int, needs: Needs) -> None:
        for metric, points in own.items():
            low, high = points.at, points.upto(now)
            if low == high:
                continue
            points.at = high
            if track.started is not None and points.times[low] < track.started:
                low = bisect.bisect_left(points.times, track.started, low, high)
                if low == high:
                    continue
            steps, epochs = points.steps[low:high], points.epochs[low:high]
            track.add_points(metric, points.times[low:high], points.values[low:high], steps,
                             curves=needs.curves)  # fmt: skip
            track.step = next((s for s in reversed(steps) if s is not None), track.step)
            track.epoch = next((e for e in reversed(epochs) if e == e), track.epoch)
        if self.alarms and self.alarms.get(track.id, now + 1) <= now:
            del self.alarms[track.id]
            self._set_alarm(track, needs)

    def _set_alarm(self, track: Track, needs: Needs) -> None:
        """Note when a job that has said nothing yet does, and when one meets its next target."""
        own = self.feed.points.get(track.id)
        if not own:
            return
        started, targets = track.started or 0, track.targets
        unmet = targets.final if track.met_first is not None else targets.first
        if not track.metrics:
            times = [
                next((t for t in points.times[points.at :] if t >= started), None)
                for points in own.values()
            ]
        elif needs.targets and unmet is not None and track.met_final is None:
            points = own.get(targets.metric or "", Points())
            rest = zip(points.times[points.at :], points.values[points.at :], strict=True)
            times = [next((t for t, v in rest if t >= started and targets.meets(v, unmet)), None)]
        else:
            return
        known = [time for time in times if time is not None]
        if known:
            self.alarms[track.id] = min(known)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `load` restores the walk between two feeds."""
        layout = [list(column) for column in self.layout]
        return Site.to_json(self) | {"layout": layout, "rest": self.rest.to_json()}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore what was saved. Raises KeyError, TypeError, ValueError or IndexError."""
        Site.load(self, saved)
        ids, starts, texts = saved["layout"]
        self.layout = (list(ids), list(starts), list(texts))
        self.rest = feeds.rest_from_json(saved["rest"])
        if set(ids) != set(self.tracks):
            raise ValueError("the layout names other containers than the tracks")


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
