"""How containers got their GPUs: an engine update can cut some of them off.

With the legacy hook (`--gpus`, or the nvidia runtime, without CDI) the GPU's device rules are not
in the container's specification: an update lets the runtime rewrite them, and NVML answers
"Unknown Error" from then on (NVIDIA/nvidia-docker#515, NVIDIA/nvidia-container-toolkit#138). With
CDI or --device they are, and an update is safe.
"""

from __future__ import annotations

from enum import StrEnum

from dltools.engine.containers import Container, Engine
from dltools.errors import DltoolsError

_PROBE = ["sh", "-c", ": < /dev/nvidiactl"]
_NO_SHELL = (126, 127)


class Access(StrEnum):
    """How a container got its GPU."""

    NONE = "none"
    SPECIFIED = "specified"  # CDI or --device: an update keeps it
    HOOK = "hook"  # the legacy hook: an update can cut it off


def access(container: Container) -> Access:
    """Return how an inspected container got its GPU."""
    config = container.host_config
    requests = config.get("DeviceRequests") or []
    environment = container.raw.get("Config", {}).get("Env") or []
    visible = [e.partition("=")[2] for e in environment if e.startswith("NVIDIA_VISIBLE_DEVICES=")]
    asked = bool(visible) and visible[-1] not in ("", "none", "void")
    if any(_is_gpu(request) and request.get("Driver") != "cdi" for request in requests):
        return Access.HOOK
    if config.get("Runtime") == "nvidia" and asked:
        return Access.HOOK
    devices = [d.get("PathOnHost", "") for d in config.get("Devices") or []]
    if requests or any(path.startswith("/dev/nvidia") for path in devices):
        return Access.SPECIFIED
    return Access.NONE


def _is_gpu(request: dict[str, object]) -> bool:
    capabilities = request.get("Capabilities")
    groups = capabilities if isinstance(capabilities, list) else []
    return request.get("Driver") in ("nvidia", "cdi") or any("gpu" in g for g in groups if g)


def is_usable(engine: Engine, container: Container) -> bool | None:
    """Tell whether a container can open its GPU, None if it cannot be asked."""
    try:
        status = engine.run(container.id, _PROBE)
    except DltoolsError:
        return None
    return None if status in _NO_SHELL else status == 0
