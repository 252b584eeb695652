"""Requests to the runtime of a node, by gRPC over its local socket.

grpcio and protobuf are an extra of the package, and are imported when an address asks for them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.patience import TIMEOUT_S, Patience
from dltools.errors import AccessError, ConfigError, UnavailableError

SCHEME = "cri://"
_LARGEST = 16 << 20
"""Bytes of the longest answer: as many as kubelet takes."""

_SERVICE = "/runtime.v1.RuntimeService/"
_STOPPING = ("transport is closing", "ttrpc: closed", "server is shutting down")


def socket_path(url: str) -> Path:
    """Return the socket of an address such as cri:///run/containerd/containerd.sock. Raises
    `ConfigError`."""
    text = url.removeprefix(SCHEME)
    if not url.startswith(SCHEME) or not text.startswith("/") or text.endswith("/"):
        raise ConfigError(
            f"{url!r}: no address of a node's runtime; write cri:///PATH, such as "
            "cri:///run/containerd/containerd.sock or cri:///run/crio/crio.sock"
        )
    return Path(text)


class Connection:
    """A connection to one runtime. Methods raise `UnavailableError`, `AccessError`, `GoneError` and
    `RefusedError`."""

    def __init__(self, url: str, patience: Patience) -> None:
        """Nothing is asked yet. Raises `ConfigError` if the extra is missing."""
        self._url = url
        self._path = socket_path(url)
        self._patience = patience
        # A child that is forked runs another program at once, and needs no handlers of gRPC.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
        try:
            import google.protobuf  # noqa: F401
            import grpc
        except ImportError as error:
            raise ConfigError(
                f"{url}: Kubernetes nodes need grpcio and protobuf; pip install 'dltools-cli[cri]'"
            ) from error
        from dltools.engine.cri import runtime_pb2

        self._messages: Any = runtime_pb2
        self._error: type[Exception] = grpc.RpcError
        self._codes = grpc.StatusCode
        self._channel = grpc.insecure_channel(
            f"unix://{self._path}",
            options=[
                ("grpc.max_receive_message_length", _LARGEST),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
                ("grpc.enable_http_proxy", 0),
            ],
        )

    def ask(self, method: str, *, waits: bool = True, **fields: Any) -> Any:
        """Return the answer to a request with these fields; `waits` for a runtime that is away."""
        request = getattr(self._messages, f"{method}Request")(**fields)
        call = self._channel.unary_unary(
            _SERVICE + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(self._messages, f"{method}Response").FromString,
        )

        def once() -> Any:
            try:
                return call(request, timeout=TIMEOUT_S)
            except self._error as error:
                raise self._told(error) from error

        return self._patience.repeat(once) if waits else once()

    def _told(self, error: Any) -> Exception:
        """Return one of our errors for one of gRPC's."""
        code, said = error.code(), " ".join(str(error.details() or "").split())
        if code is self._codes.UNAVAILABLE or any(sign in said for sign in _STOPPING):
            return self._unreachable()
        if code is self._codes.DEADLINE_EXCEEDED:
            return UnavailableError(f"the runtime at {self._url} does not answer in time")
        if code is self._codes.NOT_FOUND:
            return GoneError(said)
        if code is self._codes.UNIMPLEMENTED and "unknown service" in said:
            return UnavailableError(
                f"the runtime at {self._url} has no CRI v1; is containerd's plug-in cri disabled?"
            )
        return RefusedError(said or f"the runtime answers {code.name}")

    def _unreachable(self) -> Exception:
        has_socket = os.access(self._path, os.F_OK)
        if has_socket and not os.access(self._path, os.R_OK | os.W_OK):
            return AccessError(f"no permission to use the runtime at {self._url}; run as root")
        why = "" if has_socket else "no such socket; "
        return UnavailableError(f"no runtime answers at {self._url}: {why}is the runtime running?")
