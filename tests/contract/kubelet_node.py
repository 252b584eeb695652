"""containerd by CRI below a real kubelet, which makes pods as an API server says."""

import itertools
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from contract.cri_node import TRAITS, CriJob
from contract.subject import Job, Relay, Subject
from helpers.cluster_pods import ClusterPods
from helpers.containers import Job as Made
from helpers.cri_pods import Pods

from dltools.engine.address import Address
from dltools.engine.registry import open_engine
from dltools.errors import DltoolsError


class KubeletNode:
    """Each container is a pod's own, as of most trainings: weights do not compare then."""

    traits = replace(TRAITS, weights_compare=False)

    def __init__(self, name: str, address: str, kubeconfig: str) -> None:
        self.name = name
        self.url = address.replace("unix://", "cri://")
        self.engine = open_engine(Address(self.url, "--host", name=name))
        self.runtime = Pods(address)
        self.pods = ClusterPods(kubeconfig)
        self.only = ["--name", f"^{self.pods.namespace}/"]
        self._numbers = itertools.count(1)

    def start(self, script: str, name: str = "job", *, keeps_on: bool = False) -> Job:
        del keeps_on  # kubelet would make another container
        called = f"{name}-{next(self._numbers)}"
        self.pods.start(called, script, annotations={"dltools.pause": "allow"})
        id_ = self.pods.container_id(called)
        return CriJob(Made(self.engine, id_, f"{self.pods.namespace}/{called}/main"), self.runtime)

    def relay(self) -> AbstractContextManager[Relay]:
        raise NotImplementedError("requests of gRPC are not cut off here")


@contextmanager
def subject(name: str) -> Iterator[Subject]:
    """Give the node that the environment names."""
    address = os.environ.get("CONTAINER_RUNTIME_ENDPOINT", "")
    kubeconfig = os.environ.get("KUBECONFIG", "")
    if not (address and kubeconfig):
        raise LookupError(f"{name} does not run here: see tests/engines/kubernetes")
    try:
        made = KubeletNode(name, address, kubeconfig)
    except DltoolsError as error:
        raise LookupError(str(error)) from error
    try:
        yield made
    finally:
        made.runtime.close()
        made.pods.close()
