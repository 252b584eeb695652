"""Scraping: servers that are slow, endless, huge, redirecting, dying; and a good one."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from dltools.probe.endpoints import scraper
from dltools.probe.endpoints.scraper import EndpointSource

Handler = http.server.BaseHTTPRequestHandler
TEXT = "ts_inference_requests_total {n}\nts_inference_latency_microseconds {us}\n"


def answering(body: bytes, size: int | None = None) -> Callable[[Handler], None]:
    """An answer with a body; it names a size if one is given."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        if size is not None:
            handler.send_header("Content-Length", str(size))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


class Server:
    """A local HTTP server; `answer` is what it does with a request."""

    def __init__(self) -> None:
        self.answer: Callable[[Handler], None] = self.metrics
        self.requests = 0
        server = self

        class Answers(Handler):
            def do_GET(self) -> None:
                server.requests += 1
                with suppress(OSError):
                    server.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/metrics"

    def metrics(self, handler: Handler) -> None:
        body = TEXT.format(n=self.requests * 10, us=self.requests * 200_000).encode()
        answering(body)(handler)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture(autouse=True)
def time_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers does so in time, however busy the machine is."""
    monkeypatch.setattr(scraper, "TIMEOUT_S", 2.0)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def test_the_second_scrape_gives_a_window(server) -> None:
    source = EndpointSource([server.url], wanted=True)
    assert source.read(0) == []
    found = {found.point.metric: found.point.value for found in source.read(5)}
    assert found == {"request_rate": 2.0, "latency_seconds": pytest.approx(0.02)}
    assert source.gap is None


def slow(handler: Handler) -> None:
    time.sleep(600)


def endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"x 1\n")
        time.sleep(0.01)


def redirecting(handler: Handler) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:1/")
    handler.end_headers()


def dying(handler: Handler) -> None:
    handler.connection.close()


def garbage(handler: Handler) -> None:
    handler.wfile.write(b"not http at all\r\n\r\n")


def dripping(handler: Handler) -> None:
    for byte in b"HTTP/1.0 200 OK\r\n" + b"X: y\r\n" * 1000:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.1)


BAD: dict[str, tuple[Callable[[Handler], None], str]] = {
    "slow": (slow, ""),
    "endless": (endless, ""),
    "huge": (answering(b"x" * 65536 * 200), ""),
    "redirecting": (redirecting, ""),
    "dying": (dying, ""),
    "garbage": (garbage, ""),
    "a page": (answering(b"<html>hello</html>"), ""),
    "dripping headers": (dripping, "timed out"),
    "cut short": (answering(b"ts_inference_requests_total 12", 5000), "IncompleteRead"),
    # Metrics that take long to read.
    "quotes": (answering(b'a{x="' + b'\\"' * 1_900_000 + b'"} 1\n'), ""),
    "labels": (answering(b"a{" + b",".join(b'x%d="1"' % n for n in range(300_000)) + b"} 1\n"), ""),
    "lines": (answering(b"a 1\n" * 1_000_000), ""),
}


@pytest.mark.parametrize(("answer", "reason"), BAD.values(), ids=BAD)
@pytest.mark.slow
def test_a_bad_server_is_a_gap_and_holds_up_no_sample(server, answer, reason) -> None:
    server.answer = answer
    source = EndpointSource([server.url], wanted=True)
    begun = time.thread_time()
    assert source.read(0) == []  # the slow one would answer in ten minutes, the endless one never
    assert time.thread_time() - begun < 3.0
    assert (source.gap or "").startswith(f"endpoint {server.url}: ")
    assert reason in (source.gap or "")


def test_one_that_fails_is_not_tried_again_for_a_minute(server) -> None:
    server.answer = redirecting
    source = EndpointSource([server.url], wanted=True)
    for now in (0, 1, 30, 59):
        source.read(now)
    assert server.requests == 1
    server.answer = server.metrics
    source.read(60)
    assert source.gap is None
    assert len(source.read(61)) == 2


def test_ports_that_are_only_guessed_leave_no_gap() -> None:
    source = EndpointSource(["http://127.0.0.1:1/metrics"], wanted=False)
    assert source.read(0) == []
    assert source.gap is None


def test_a_last_line_that_may_be_cut_is_left_out(server) -> None:
    def answer(handler: Handler) -> None:
        text = "nv_inference_pending_request_count {0}\nnv_inference_request_success {0}\n"
        text += "nv_inference_request_duration_us {0}"
        answering(text.format(server.requests).encode())(handler)

    server.answer = answer
    source = EndpointSource([server.url], wanted=True)
    source.read(0)
    found = {found.point.metric: found.point.value for found in source.read(5)}
    assert found == {"request_rate": 0.2, "queue_length": 2.0}


def test_one_that_served_and_fails_is_a_gap_though_guessed(server) -> None:
    source = EndpointSource([server.url], wanted=False)
    source.read(0)
    server.answer = redirecting
    assert source.read(5) == []
    assert source.gap == f"endpoint {server.url}: status 302"
