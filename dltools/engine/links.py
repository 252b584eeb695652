"""Links to the hosts of a run, where there are several: one that is slow or away holds up no other,
and no two are taken for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock, Thread  # noqa: TID251 (its type alone)
from typing import TypeVar

from dltools.engine.interface import Engine, GoneError
from dltools.engine.state_records import EngineRecord
from dltools.errors import DltoolsError, UnavailableError
from dltools.threads import in_background


class Link:
    """What is done with one host in the background, one thing at a time. `error` is what the last
    attempt has raised, None where it went well."""

    def __init__(self, address: str) -> None:
        """Nothing is done yet with the host at an address."""
        self.address = address
        self.error: Exception | None = UnavailableError("no answer yet")
        self._thread: Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being done."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def fault(self) -> str:
        """Why the last attempt has failed, "" where it has not."""
        error = self.error
        if error is None or isinstance(error, DltoolsError):
            return str(error or "")
        return f"{type(error).__name__}: {error}"

    def begin(self, work: Callable[[], object]) -> None:
        """Begin to do something, unless the last thing is still under way."""
        if not self.is_busy:
            self._thread = in_background(self._try, work)

    def wait(self, seconds: float) -> None:
        """Wait until it is done, at most `seconds`."""
        if self._thread is not None:
            self._thread.join(max(0.0, seconds))

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # an engine may answer anything, and must not stop the others
            self.error = error
        else:
            self.error = None


class DistinctEngines(Mapping[str, Engine]):
    """The engines of a run by host name. Two with the same ID or host name are refused: they would
    be taken for one. Threads add engines while others look at them: each sees those of a moment."""

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, str], str] = {}
        self._by_host: dict[str, Engine] = {}  # never changed, but replaced
        self._lock = Lock()

    def add(self, engine: Engine, address: str) -> None:
        """Add the engine at an address, or the one that has come back there. Raises
        `UnavailableError` if the engine at another address has the same ID or name."""
        self.claim("ID", engine.id, address)
        self.claim("host name", engine.host, address)
        with self._lock:
            self._by_host = {**self._by_host, engine.host: engine}

    def claim(self, kind: str, text: str, address: str) -> None:
        """Take a name of a kind for the engine at an address. Raises `UnavailableError` if the one
        at another address has it."""
        with self._lock:
            other = self._addresses.setdefault((kind, text), address)
        if other != address:
            raise UnavailableError(
                f"it has the same {kind} as the engine at {other}, {text}: leave it out, or change "
                "one of them"
            )

    def __getitem__(self, host: str) -> Engine:
        """Return the engine of a host."""
        return self._by_host[host]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the hosts."""
        return iter(self._by_host)

    def __len__(self) -> int:
        """Return how many engines there are."""
        return len(self._by_host)


R = TypeVar("R", bound=EngineRecord)


def own_records(engine: Engine, records: Iterable[R]) -> list[R]:
    """Return the records of an engine's containers: those with its ID, unless they are of another
    host. A host that was renamed keeps its containers. Raises as the engine does.
    """
    own = (record for record in records if record.engine == engine.id)
    return [
        one for one in own if one.host == engine.host or has_container(engine, one.container_id)
    ]


def has_container(engine: Engine, container_id: str) -> bool:
    """Tell whether an engine has a container. Raises as the engine does."""
    try:
        engine.inspect(container_id)
    except GoneError:
        return False
    return True
