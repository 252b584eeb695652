"""A runtime that speaks CRI from memory: as many containers as a test adds, and errors."""

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from dltools.engine.cri import runtime_pb2 as messages

SERVICE = "runtime.v1.RuntimeService"


class FakeRuntime:
    """Listens on a socket until it is stopped."""

    def __init__(self, socket: Path) -> None:
        self.url = f"cri://{socket}"
        self.containers: dict[str, Any] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, Any] = {}
        self.updates: list[tuple[str, dict[str, int]]] = []
        self.errors: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.asked: list[str] = []
        self._socket = socket
        self._server: grpc.Server | None = None
        self.start()

    def start(self) -> None:
        """Answer, also after `stop`."""
        self._socket.unlink(missing_ok=True)
        self._server = grpc.server(ThreadPoolExecutor(4))
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._answering(name, answer),
                request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name, request, answer in self._methods()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        self._server.add_insecure_port(f"unix://{self._socket}")
        self._server.start()

    def stop(self) -> None:
        assert self._server is not None
        self._server.stop(None).wait()
        self._socket.unlink(missing_ok=True)

    def add(
        self,
        id_: str,
        *,
        name: str = "main",
        pod: str = "train",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        info: Mapping[str, Any] | None = None,
        **status: Any,
    ) -> Any:
        if pod not in self.pods:
            self.pods[pod] = messages.PodSandboxStatus(
                id=pod,
                metadata=messages.PodSandboxMetadata(name=pod, namespace="lab", uid=f"uid-{pod}"),
                labels=labels or {},
                annotations=annotations or {},
            )
        given = {"state": messages.CONTAINER_RUNNING, "started_at": time.time_ns(), **status}
        made = messages.ContainerStatus(
            id=id_, metadata=messages.ContainerMetadata(name=name), **given
        )
        self.infos[id_] = {"sandboxID": pod, **(info or {})}
        self.containers[id_] = made
        return made

    def end(self, id_: str, code: int = 0, reason: str = "") -> None:
        found = self.containers[id_]
        found.state, found.finished_at = messages.CONTAINER_EXITED, time.time_ns()
        found.exit_code, found.reason = code, reason

    def remove(self, id_: str) -> None:
        del self.containers[id_]

    def _methods(self) -> list[tuple[str, Any, Callable[[Any], Any]]]:
        m = messages
        return [
            ("Version", m.VersionRequest, lambda _: m.VersionResponse(runtime_name="fake")),
            ("Status", m.StatusRequest, self._status),
            ("ListContainers", m.ListContainersRequest, self._list),
            ("ContainerStatus", m.ContainerStatusRequest, self._container),
            ("ListPodSandbox", m.ListPodSandboxRequest, self._list_pods),
            ("PodSandboxStatus", m.PodSandboxStatusRequest, self._pod),
            ("UpdateContainerResources", m.UpdateContainerResourcesRequest, self._update),
        ]

    def _answering(self, name: str, answer: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        def answered(request: Any, context: grpc.ServicerContext) -> Any:
            self.asked.append(name)
            if name in self.errors:
                context.abort(*self.errors[name])
            try:
                return answer(request)
            except KeyError as error:
                context.abort(grpc.StatusCode.NOT_FOUND, f"not found: {error}")

        return answered

    def _status(self, _: Any) -> Any:
        return messages.StatusResponse(info={"config": json.dumps({"containerdRootDir": "/r"})})

    def _list(self, _: Any) -> Any:
        return messages.ListContainersResponse(
            containers=[
                messages.Container(
                    id=one.id,
                    pod_sandbox_id=self.infos[one.id]["sandboxID"],
                    metadata=one.metadata,
                    state=one.state,
                    labels=one.labels,
                )
                for one in self.containers.values()
            ]
        )

    def _container(self, request: Any) -> Any:
        id_ = request.container_id
        info = {"info": json.dumps(self.infos[id_])} if request.verbose else {}
        return messages.ContainerStatusResponse(status=self.containers[id_], info=info)

    def _list_pods(self, _: Any) -> Any:
        return messages.ListPodSandboxResponse(
            items=[
                messages.PodSandbox(
                    id=one.id, metadata=one.metadata, labels=one.labels, annotations=one.annotations
                )
                for one in self.pods.values()
            ]
        )

    def _pod(self, request: Any) -> Any:
        return messages.PodSandboxStatusResponse(status=self.pods[request.pod_sandbox_id])

    def _update(self, request: Any) -> Any:
        fields = {field.name: value for field, value in request.linux.ListFields()}
        self.updates.append((request.container_id, fields))
        return messages.UpdateContainerResourcesResponse()
