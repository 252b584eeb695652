"""One host's samples: its node, its containers, their progress and events."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dltools.engine import cgroup, host, pauses
from dltools.engine.cgroup import Cgroup
from dltools.engine.containers import Container, Engine, GoneError
from dltools.engine.kernel_files import hold_files
from dltools.engine.pauses import Note
from dltools.errors import ConfigError, DltoolsError, UnavailableError
from dltools.labels import ENDPOINT, FILES, PATTERN, doubts
from dltools.observations.table import Row
from dltools.probe.endpoints import where
from dltools.probe.files import FileSource
from dltools.probe.files.source import folders_of
from dltools.probe.gpu import Gpus
from dltools.probe.logs import LogSource
from dltools.probe.progress import Automatic, Extractor, Pattern, Point
from dltools.probe.rows import container_row, event_row, progress_row

if TYPE_CHECKING:
    from dltools.probe.endpoints.source import EndpointSource

_THREADS = 8
_RELIST_S = 30.0

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure: engine filters as `docker ps` knows them, seconds of log history, a regular
    expression for progress lines, which metrics to keep (none named: all), the filter by name as
    compiled expressions, and the state directories in which dl-apply notes who takes turns."""

    filters: Mapping[str, list[str]]
    since_s: float
    pattern: Pattern | None = None
    metrics: frozenset[str] = frozenset()
    names: tuple[Any, ...] = ()
    places: Sequence[Path] = ()


@dataclass(slots=True)
class _Watched:
    container: Container
    cgroup: Cgroup | None
    logs: LogSource
    files: FileSource | None
    endpoint: EndpointSource | None
    gap: str | None


class Sampler:
    """Samples one engine's host. Raises the errors of `dltools.errors` where the engine fails;
    a container that vanishes meanwhile is simply no longer there."""

    def __init__(self, engine: Engine, options: Options) -> None:
        """Nothing is read yet."""
        self._engine = engine
        self._options = options
        self._mounts = cgroup.mounts()
        self._watched: dict[str, _Watched] = {}
        self._logs: dict[str, LogSource] = {}  # those that have been read
        self._removed: set[str] = set()
        self._parting: list[Row] = []  # the last words of containers that have ended
        self._events: queue.SimpleQueue[Row | DltoolsError] = queue.SimpleQueue()
        self._changed: set[str] = set()
        self._following = self._windowed = False
        self._stale = True  # the inventory may have changed
        self._listed = 0.0
        self._bounds = host.bounds((), self._mounts)
        self._begun = time.time()
        self._gpus = Gpus()
        self._turns: dict[str, Note] = {}
        self._pump: threading.Thread | None = None

    def follow(self) -> None:
        """From now on watch events and read only new log lines: for a stream of samples."""
        self._following = True
        hold_files()
        self._watch_events(self._begun)

    def resume(self) -> None:
        """Go on following after the engine was away; nothing is read twice.

        Raises `UnavailableError` while it still is.
        """
        self._engine.containers()
        self._stale = True
        while not self._events.empty():
            if not isinstance(item := self._events.get_nowait(), DltoolsError):
                self._parting.append(item)
        for source in self._logs.values():
            source.follow()
        self._watch_events(time.time())

    def _watch_events(self, since: float) -> None:
        if self._pump is None or not self._pump.is_alive():
            self._pump = threading.Thread(target=self._pump_events, args=(since,), daemon=True)
            self._pump.start()

    def counters(self) -> list[Row]:
        """Return a sample of counters and limits alone; the next one is of the time in between."""
        self._refresh()
        self._windowed = True
        self._from_endpoints()
        return self._usage_rows(datetime.now(UTC))

    def sample(self) -> list[Row]:
        """Return a whole sample: progress and events that are new, then counters and limits."""
        begun = time.perf_counter()
        fresh = self._refresh()
        rows, self._parting = self._parting, []
        rows += self._new_events()
        since = self._begun - self._options.since_s
        new = [key for key in self._watched if key not in self._logs]
        again = [key for key in fresh if key in self._logs]
        if self._following:
            for key, source in self._logs.items():
                rows += source.drain(ended=key in again)
        self._logs.update((key, self._watched[key].logs) for key in new)
        unread = new if self._following else list(self._watched)
        for found in self._each(lambda key: self._logs[key].read(since), unread):
            rows += found
        if self._following:
            for key in new + again:
                self._logs[key].follow()
        rows += self._from_files(since)
        if self._following or self._windowed:
            rows += self._from_endpoints()
        if self._options.metrics:
            wanted = self._options.metrics
            rows = [row for row in rows if row["kind"] != "progress" or row["metric"] in wanted]
        usage = self._usage_rows(datetime.now(UTC))
        usage[0]["probe_cpu_seconds"] = time.process_time()
        usage[0]["probe_sample_seconds"] = time.perf_counter() - begun
        return rows + usage

    def left_paused(self) -> list[str]:
        """Return the names of those that a dl-apply has paused which ended without letting them go
        on, as of the last sample."""
        return [
            watched.container.name
            for key, note in sorted(self._turns.items())
            if (watched := self._watched.get(key)) and watched.container.state == "paused"
            and not note.run.alive
        ]  # fmt: skip

    def _from_files(self, since: float) -> list[Row]:
        now, rows = time.monotonic(), []
        for watched in self._watched.values():
            if watched.files is not None:
                found = watched.files.read(now)
                rows += [self._said(watched, moment, point) for moment, point in found
                         if moment.timestamp() >= since]  # fmt: skip
        return rows

    def _from_endpoints(self) -> list[Row]:
        serving = [watched for watched in self._watched.values() if watched.endpoint is not None]
        if not serving:
            return []
        from concurrent.futures import ThreadPoolExecutor

        def scrape(watched: _Watched) -> list[Row]:
            assert watched.endpoint is not None
            found = watched.endpoint.read(time.monotonic())
            return [self._said(watched, moment, point) for moment, point in found]

        with ThreadPoolExecutor(_THREADS) as pool:
            return [row for rows in pool.map(scrape, serving) for row in rows]

    def _said(self, watched: _Watched, moment: datetime, point: Point) -> Row:
        container = watched.container
        return progress_row(moment, self._engine.host, container.id, container.name, point)

    # Inventory

    def _refresh(self) -> list[str]:
        """Bring the inventory up to date; return the ids that are new or restarted.

        While events are watched the engine is asked only after one, and twice a minute.
        """
        now = time.monotonic()
        if self._following and not self._stale and now - self._listed < _RELIST_S:
            return []
        self._stale, self._listed = False, now
        listed = {entry["Id"]: entry for entry in self._engine.containers(self._options.filters)}
        for key in self._watched.keys() - listed.keys():
            gone = self._watched.pop(key)
            if gone.cgroup is not None:
                gone.cgroup.files.close()
            if source := self._logs.get(key):  # kept: the container may start again
                self._parting += source.drain(ended=True)
        while self._removed:
            if source := self._logs.pop(self._removed.pop(), None):
                source.close()
        changed = {key for key in listed if key in self._changed}
        self._changed -= changed
        stale = [key for key in listed if key in changed or self._is_stale(key)]
        inspected = self._each(self._inspect, stale)
        fresh = []
        for watched in filter(None, inspected):
            old = self._watched.get(watched.container.id)
            if old is not None and old.container.started == watched.container.started:
                continue  # its start is what made us inspect it in the first place
            if old is not None and old.cgroup is not None:
                old.cgroup.files.close()
            self._watched[watched.container.id] = watched
            fresh.append(watched.container.id)
        for key, entry in listed.items():
            if key in self._watched:
                self._renew(self._watched[key], entry)
        groups = [watched.cgroup for watched in self._watched.values() if watched.cgroup]
        self._bounds = host.bounds(groups, self._mounts)
        return fresh

    def _each(self, ask: Callable[[str], _Answer], keys: list[str]) -> list[_Answer]:
        """Return what the engine answers for each container, asked side by side where the way to
        it is long; on a local socket the threads would cost more than they save (measured)."""
        if self._engine.is_local:
            return [ask(key) for key in keys]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(ask, keys))

    def _is_stale(self, key: str) -> bool:
        watched = self._watched.get(key)
        if watched is None:
            return True
        return watched.cgroup is not None and not watched.cgroup.exists

    def _renew(self, watched: _Watched, entry: Mapping[str, object]) -> None:
        """Take over what can change without a restart: state and name."""
        names = entry.get("Names")
        name = str(names[0]).lstrip("/") if isinstance(names, list) and names else ""
        state = str(entry.get("State") or "")
        old = watched.container
        if (name, state) != (old.name, old.state):
            watched.container = Container(
                old.id, name or old.name, old.image, state or old.state, old.pid, old.started,
                old.tty, old.labels, old.host_config, old.raw,
            )  # fmt: skip

    def _inspect(self, key: str) -> _Watched | None:
        try:
            container = self._engine.inspect(key)
        except GoneError:
            return None
        found, gap = None, None
        if not container.pid or not cgroup.belongs_to(container.pid, container.id):
            gap = "counters: its processes are not on this machine"
        else:
            found = cgroup.of_process(container.pid, self._mounts)
            if found is None:
                gap = "counters: its cgroup is not visible here"
        extractor, pattern_gap = self._extractor(container)
        source = self._logs.get(key) or LogSource(self._engine, container, extractor)
        gaps = "; ".join(filter(None, (gap, pattern_gap, *doubts(container.dltools_labels))))
        return _Watched(
            container, found, source,
            self._files(container) if found is not None else None,
            self._endpoint(container), gaps or None,
        )  # fmt: skip

    def _files(self, container: Container) -> FileSource | None:
        """Return what reads the container's files; after a restart the same one goes on."""
        label = container.labels.get(FILES)
        if label is not None and label.strip() in ("", "none"):
            return None
        root = f"/proc/{container.pid}/root"
        old = self._watched.get(container.id)
        if old is not None and old.files is not None:
            old.files.root = root
            return old.files
        paths = [path.strip() for path in label.split(",")] if label else None
        return FileSource(root, paths, folders_of(container.pid))

    def _endpoint(self, container: Container) -> EndpointSource | None:
        if not self._engine.is_local:
            return None  # its addresses mean other machines here
        label = container.labels.get(ENDPOINT)
        urls = list(where.candidates(container.raw, label))
        if not urls:
            return None
        from dltools.probe.endpoints.source import EndpointSource

        return EndpointSource(urls, wanted=label is not None)

    def _extractor(self, container: Container) -> tuple[Extractor, str | None]:
        label = container.labels.get(PATTERN)
        if label:
            try:
                return Pattern(label), None
            except ConfigError as error:
                return self._options.pattern or Automatic(), f"label {PATTERN}: {error}"
        return self._options.pattern or Automatic(), None

    # Rows

    def _usage_rows(self, now: datetime) -> list[Row]:
        groups = [w.cgroup for w in self._watched.values() if w.cgroup is not None]
        common = {"time": now, "host": self._engine.host}
        gpus = self._gpus.sample(time.monotonic())
        self._turns = pauses.notes(self._options.places, self._engine.id)
        first = {
            **common,
            "kind": "node",
            "gpu_count": self._gpus.count,
            "gap": self._gpus.gap,
            **host.measure(self._bounds),
        }
        if self._watched and not groups:  # a remote engine: its own word for its size
            first |= {"cpu_count": float(self._engine.cpus), "cpu_seconds": None,
                      "memory_total_bytes": self._engine.memory,
                      "memory_available_bytes": None, "gpu_count": None,
                      "gap": "the engine's host is not this machine"}  # fmt: skip
        return (
            [first]
            + [
                {**common, **self._container_row(watched, first)}
                for watched in sorted(self._watched.values(), key=lambda w: w.container.name)
            ]
            + [{**common, **row} for row in map(self._gpu_row, gpus) if row is not None]
        )

    def _gpu_row(self, row: Row) -> Row | None:
        """Return a GPU's row with its container's name; None for a container that the filters
        leave out."""
        id_ = row.get("container_id")
        if id_ is None:
            return row
        watched = self._watched.get(id_)
        return None if watched is None else row | {"container_name": watched.container.name}

    def _container_row(self, watched: _Watched, first: Row) -> Row:
        gaps = (
            watched.gap,
            watched.logs.gap,
            watched.files.gap if watched.files else None,
            watched.endpoint.gap if watched.endpoint else None,
        )
        gap = "; ".join(filter(None, gaps)) or None
        row = container_row(watched.container, watched.cgroup, gap, first)
        turn = self._turns.get(watched.container.id)
        if turn is not None and turn.run.alive:
            row["turn_seconds"] = turn.seconds
        if watched.cgroup is not None and row["cpu_seconds"] is None:
            self._stale = True  # it is going, or starting again
        return row

    # Events

    def _pump_events(self, since: float) -> None:
        try:
            for raw in self._engine.events(since):
                self._take_event(raw)
            self._events.put(UnavailableError("the Docker engine closed the event stream"))
        except DltoolsError as error:
            self._events.put(error)
        except Exception as error:
            message = f"lost the Docker engine: {str(error)[:120]}"
            self._events.put(UnavailableError(message))

    def _take_event(self, raw: Mapping[str, Any]) -> None:
        row = self._event(raw)
        if not str(raw.get("Action")).startswith(("exec_", "health_status", "top")):
            self._stale = True
        if raw.get("Action") == "destroy":
            self._removed.add(str((raw.get("Actor") or {}).get("ID")))
        if row is None:
            return
        if row["event"] == "start":
            self._changed.add(row["container_id"])
        self._events.put(row)

    def _event(self, raw: Mapping[str, Any]) -> Row | None:
        """Return an event's row, None for one that does not matter or is filtered out."""
        attributes = (raw.get("Actor") or {}).get("Attributes") or {}
        filters = self._options.filters
        for label in filters.get("label", []):
            key, equals, value = label.partition("=")
            if key not in attributes or (equals and attributes[key] != value):
                return None
        names = self._options.names
        if names and not any(name.search(attributes.get("name", "")) for name in names):
            return None
        return event_row(raw, self._engine.host)

    def _new_events(self) -> list[Row]:
        if not self._following:
            past = self._engine.past_events(self._begun - self._options.since_s, time.time())
            return [row for raw in past if (row := self._event(raw)) is not None]
        rows: list[Row] = []
        while True:
            try:
                item = self._events.get_nowait()
            except queue.Empty:
                return rows
            if isinstance(item, DltoolsError):
                self._parting += rows
                raise item
            rows.append(item)
