"""Certificates of an authority of the test's own, and engines behind TLS that ask for them."""

import shutil
import subprocess
import sys
from pathlib import Path

OPENSSL = shutil.which("openssl")

# One thread serves a connection: before Python 3.13 two that read and write one TLS socket
# at once garble it, and the engine answered "400 Bad Request".
_PROXY = """
import asyncio, ssl, sys
folder, address, port, engine = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
context.load_verify_locations(f"{folder}/ca.pem")
context.verify_mode = ssl.CERT_REQUIRED
async def pump(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    sink.close()
async def serve(client, answers):
    requests, engines = await asyncio.open_unix_connection(engine)
    await asyncio.gather(pump(client, engines), pump(requests, answers))
async def listen():
    server = await asyncio.start_server(serve, address, int(port), ssl=context)
    print("listens", flush=True)
    await server.serve_forever()
asyncio.run(listen())
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
