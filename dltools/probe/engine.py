"""The Docker Engine: inventory, limits and logs through the low-level API.

The engine is found as the docker command finds it: DOCKER_HOST (with DOCKER_TLS_VERIFY and
DOCKER_CERT_PATH), else the context of DOCKER_CONTEXT or of the docker configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dltools.errors import AccessError, DltoolsError, UnavailableError
from dltools.labels import PREFIX

TIMEOUT_S = 30

LONGEST_ENTRY = 1 << 20
"""Bytes of a log line that never ends after which it is cut."""


class GoneError(DltoolsError):
    """The container is no longer there."""


class RefusedError(DltoolsError):
    """The engine refused a request; the message is the engine's."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container as the engine describes it; `raw` is the whole inspection."""

    id: str
    name: str
    image: str
    state: str
    pid: int
    started: datetime | None
    tty: bool
    labels: Mapping[str, str]
    host_config: Mapping[str, Any]
    raw: Mapping[str, Any]

    @property
    def dltools_labels(self) -> dict[str, str]:
        """The labels that are meant for this toolkit."""
        return {k: v for k, v in sorted(self.labels.items()) if k.startswith(PREFIX)}


class Engine:
    """A connection to one engine. Methods raise the errors of `dltools.errors`, `GoneError` for a
    container that is gone and `RefusedError` for what the engine will not do."""

    def __init__(self) -> None:
        """Connect. Raises `UnavailableError` or `AccessError`."""
        with self._talking():
            self.api = _connect()
            info = self.api.info()
        self.id: str = info.get("ID") or ""
        self.host: str = info.get("Name") or ""
        self.cpus: int = info.get("NCPU") or 0
        self.memory: int = info.get("MemTotal") or 0

    def containers(self, filters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the running and paused containers as the list call gives them."""
        with self._talking():
            return list(self.api.containers(filters=dict(filters or {})))

    def inspect(self, id_: str) -> Container:
        """Return one container, by id or name."""
        with self._talking():
            return _container(self.api.inspect_container(id_))

    def update(self, id_: str, settings: Mapping[str, Any]) -> None:
        """Post settings under the engine's own names.

        Not through docker-py's `update_container`: that knows no NanoCpus.
        """
        with self._talking():
            url = self.api._url("/containers/{0}/update", id_)
            self.api._result(self.api._post_json(url, data=dict(settings)), True)

    def run(self, id_: str, command: Sequence[str]) -> int:
        """Run a command inside a container and return its exit status."""
        with self._talking():
            started = self.api.exec_create(id_, list(command))
            self.api.exec_start(started["Id"])
            return int(self.api.exec_inspect(started["Id"])["ExitCode"] or 0)

    def logs(self, container: Container, since: float) -> list[bytes]:
        """Return what a container has logged since a time (seconds since the epoch).

        Each entry begins with the engine's time stamp and a blank. One without a line end goes on
        in the next: the engine cuts entries at 16 KiB.
        """
        with self._talking():
            response = self._log_request(container, since, follow=False)
            return list(_entries(response, container.tty))

    def follow(self, container: Container, since: float) -> Iterator[bytes]:
        """Yield a container's log entries as they come, until it exits."""
        with self._talking():
            response = self._log_request(container, since, follow=True)
            # The engine keeps quiet while the container does.
            self.api._disable_socket_timeout(self.api._get_raw_response_socket(response))
        return _entries(response, container.tty)

    def events(self, since: float) -> Iterator[dict[str, Any]]:
        """Yield container events from a time on, for ever."""
        with self._talking():
            return iter(self.api.events(since=since, decode=True, filters={"type": "container"}))

    def past_events(self, since: float, until: float) -> list[dict[str, Any]]:
        """Return the container events between two times that the engine still remembers."""
        with self._talking():
            return list(
                self.api.events(
                    since=since, until=until, decode=True, filters={"type": "container"}
                )
            )

    def _log_request(self, container: Container, since: float | None, *, follow: bool) -> Any:
        params: dict[str, Any] = {"stdout": 1, "stderr": 1, "timestamps": 1}
        params |= {"follow": int(follow), "tail": "all"}
        if since is not None:
            params["since"] = f"{since:.9f}"
        url = self.api._url("/containers/{0}/logs", container.id)
        response = self.api._get(url, params=params, stream=True)
        self.api._raise_for_status(response)
        return response

    @contextmanager
    def _talking(self) -> Iterator[None]:
        import docker.errors
        import requests.exceptions

        try:
            yield
        except docker.errors.NotFound as error:
            raise GoneError(str(error.explanation or error)) from error
        except docker.errors.APIError as error:
            raise RefusedError(str(error.explanation or error).replace("\n", " ")) from error
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            raise _unreachable(error) from error
        except OSError as error:
            raise _unreachable(error) from error


def _connect() -> Any:
    from docker.api.client import APIClient
    from docker.utils import kwargs_from_env

    settings = kwargs_from_env()
    if not settings.get("base_url") and (named := _context()):
        settings = named
    return APIClient(version="auto", timeout=TIMEOUT_S, **settings)


def _context() -> dict[str, Any]:
    """Return the connection of the docker command's current context, empty for the default."""
    from docker.context import ContextAPI

    name = os.environ.get("DOCKER_CONTEXT") or None
    context = ContextAPI.get_context(name) if name else ContextAPI.get_current_context()
    if context is None:
        raise UnavailableError(f"docker context {name!r} does not exist; see docker context ls")
    if context.name == "default":
        return {}
    tls = context.TLSConfig
    return {"base_url": context.Host, **({"tls": tls} if tls else {})}


def _unreachable(error: BaseException) -> DltoolsError:
    where = os.environ.get("DOCKER_HOST") or "the default socket"
    chain = f"{error} {error.__cause__} {error.__context__}"
    if "Permission denied" in chain or "EACCES" in chain:
        return AccessError(f"no permission to use the Docker engine at {where}; "
                           "run as root or join the group docker")  # fmt: skip
    return UnavailableError(f"no Docker engine answers at {where}; is dockerd running?")


def _container(raw: Mapping[str, Any]) -> Container:
    state, config = raw["State"], raw["Config"]
    return Container(
        id=raw["Id"],
        name=raw["Name"].removeprefix("/"),
        image=config.get("Image") or raw.get("Image") or "",
        state=state.get("Status") or "",
        pid=state.get("Pid") or 0,
        started=parse_time(state.get("StartedAt")),
        tty=bool(config.get("Tty")),
        labels=config.get("Labels") or {},
        host_config=raw.get("HostConfig") or {},
        raw=raw,
    )


def parse_time(text: str | None) -> datetime | None:
    """Return the engine's RFC 3339 time with nanoseconds, None for none or for year 1."""
    if not text or text.startswith("0001-"):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def _entries(response: Any, tty: bool) -> Iterator[bytes]:
    """Yield log entries: lines for a terminal, else the payloads of frames of 8 + n bytes."""
    buffer = bytearray()
    for chunk in response.iter_content(chunk_size=None):
        buffer += chunk
        start = 0
        while (end := _line_end(buffer, start) if tty else _frame_end(buffer, start)) is not None:
            yield bytes(buffer[start if tty else start + 8 : end])
            start = end
        del buffer[:start]
    if tty and buffer:
        yield bytes(buffer)


def _line_end(buffer: bytearray, start: int) -> int | None:
    at = buffer.find(b"\n", start)
    if at < 0:
        return len(buffer) if len(buffer) - start > LONGEST_ENTRY else None
    return at + 1


def _frame_end(buffer: bytearray, start: int) -> int | None:
    if len(buffer) - start < 8:
        return None
    end = start + 8 + int.from_bytes(buffer[start + 4 : start + 8], "big")
    return end if end <= len(buffer) else None
