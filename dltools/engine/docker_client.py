"""docker-py's client, which trusts the authority that Docker's settings name."""

from __future__ import annotations

from typing import Any

from docker.api.client import APIClient


class DockerClient(APIClient):  # type: ignore[misc]
    """A client that keeps to its own authority.

    The package requests prefers that of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE to a session's own.
    """

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        """Return what holds for a request: the session's authority, unless it names one."""
        own = self.verify if verify is None else verify
        return super().merge_environment_settings(url, proxies, stream, own, cert)
