"""Certificates of an authority of the test's own, and engines behind TLS that ask for them."""

import shutil
import subprocess
import sys
from pathlib import Path

OPENSSL = shutil.which("openssl")

_PROXY = """
import socket, ssl, sys, threading
folder, address, port, engine = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
context.load_verify_locations(f"{folder}/ca.pem")
context.verify_mode = ssl.CERT_REQUIRED
def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
def serve(plain):
    try:
        with context.wrap_socket(plain, server_side=True) as client:
            with socket.socket(socket.AF_UNIX) as inside:
                inside.connect(engine)
                threading.Thread(target=pump, args=(client, inside), daemon=True).start()
                pump(inside, client)
    except OSError:
        pass
with socket.create_server((address, int(port))) as listening:
    print("listens", flush=True)
    while True:
        threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_authority(folder: Path) -> None:
    folder.mkdir()
    made = ("-keyout", f"{folder}/ca-key.pem", "-out", f"{folder}/ca.pem")
    _openssl("req", "-x509", *NEW_KEY, "-days", "2", "-subj", "/CN=test authority", *made)


def make_certificate(authority: Path, folder: Path, address: str = "") -> None:
    """Make cert.pem, key.pem and ca.pem for Docker: for a server at an address, or for a client."""
    folder.mkdir()
    request, subject = f"{folder}/request.pem", f"/CN={address or 'client'}"
    made = ("-keyout", f"{folder}/key.pem", "-out", request)
    _openssl("req", *NEW_KEY, "-subj", subject, *made)
    usage = "serverAuth" if address else "clientAuth"
    names = f"\nsubjectAltName=IP:{address}" if address else ""
    (folder / "extensions").write_text(f"extendedKeyUsage={usage}{names}\n")
    signs = ("-CA", f"{authority}/ca.pem", "-CAkey", f"{authority}/ca-key.pem", "-CAcreateserial")
    more = ("-days", "2", "-extfile", f"{folder}/extensions", "-out", f"{folder}/cert.pem")
    _openssl("x509", "-req", "-in", request, *signs, *more)
    shutil.copy(authority / "ca.pem", folder / "ca.pem")


def begin_proxy(
    folder: Path, address: str, port: int, engine: str, *before: str
) -> subprocess.Popen[bytes]:
    """Put an engine's socket behind TLS, with the certificates in a folder; return when it listens.
    `before` is what comes before the command."""
    words = [*before, sys.executable, "-c", _PROXY, str(folder), address, str(port), engine]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"listens\n"
    return process


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
