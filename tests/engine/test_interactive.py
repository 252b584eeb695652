"""Command lines that start a notebook, an editor or an ssh server, and others that do not."""

from __future__ import annotations

import pytest

from dltools.engine.interactive import interactive_program


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["jupyter-lab", "--ip=0.0.0.0"], "jupyter-lab"),
        (["/opt/conda/bin/python3.12", "/opt/conda/bin/jupyter-lab"], "jupyter-lab"),
        (["jupyter", "lab", "--port", "8888"], "jupyter-lab"),
        (["python3", "-m", "jupyter", "--debug", "notebook"], "jupyter-notebook"),
        (["/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "k.json"], "ipykernel_launcher"),
        (["tini", "-g", "--", "start-notebook.py"], "start-notebook"),
        (["jupyterhub-singleuser"], "jupyterhub-singleuser"),
        (["/usr/lib/code-server/lib/node", "/usr/lib/code-server", "--auth"], "code-server"),
        (["/bin/sh", "-c", "exec ${ROOT}/bin/openvscode-server --host 0.0.0.0"],
         "openvscode-server"),
        (["bash", "-lc", "cd /work && PORT=1 jupyter lab"], "jupyter-lab"),
        (["sh", "-c", "python train.py & jupyter-notebook"], "jupyter-notebook"),
        (["/usr/lib/rstudio-server/bin/rserver", "--www-port"], "rserver"),
        (["/usr/sbin/sshd", "-D"], "sshd"),
        (["sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups"], "sshd"),
        (["env", "A=1", "jupyter-lab"], "jupyter-lab"),
        # An argument is not what runs.
        (["python", "train.py", "--name", "jupyter-lab"], ""),
        (["sh", "-c", "pkill jupyter-lab; python train.py"], ""),
        (["jupyter", "nbconvert", "--execute", "train.ipynb"], ""),
        (["postgres"], ""),
        (["/data/sshd/run"], ""),
        (["python3"], ""),
        (["sh", "-c"], ""),
        (["sh", "-c", ""], ""),
        ([""], ""),
        ([], ""),
    ],
)  # fmt: skip
def test_the_program_is_what_runs(words: list[str], expected: str) -> None:
    assert interactive_program(words) == expected
