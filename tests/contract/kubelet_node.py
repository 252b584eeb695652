"""containerd by CRI below a real kubelet, which makes pods as an API server says."""

from contextlib import AbstractContextManager
from dataclasses import replace

from contract.cri_node import TRAITS, CriNode, node
from contract.subject import Subject
from helpers.cluster_pods import ClusterPods


class KubeletNode(CriNode):
    """Each container is a pod's own, as of most trainings: weights do not compare then."""

    traits = replace(TRAITS, weights_compare=False)

    def __init__(self, name: str, address: str, kubeconfig: str) -> None:
        self._cluster = ClusterPods(kubeconfig)
        super().__init__(name, address, self._cluster.namespace)

    def _run(self, name: str, script: str) -> tuple[str, str]:
        self._cluster.start(name, script, annotations={"dltools.pause": "allow"})
        return self._cluster.container_id(name), f"{name}/main"

    def close(self) -> None:
        super().close()
        self._cluster.close()


def subject(name: str) -> AbstractContextManager[Subject]:
    """Give the node that the environment names."""
    return node(name, "kubernetes", KubeletNode, ["CONTAINER_RUNTIME_ENDPOINT", "KUBECONFIG"])
