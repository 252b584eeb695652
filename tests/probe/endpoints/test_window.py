"""Windows over the cumulative series of serving programs, worked by hand."""

import math

import pytest

from dltools.probe.endpoints.window import parse_metrics, quantile, window


def points(before: str, after: str, seconds: float = 10.0) -> dict[str, float]:
    return {p.metric: p.value for p in window(parse_metrics(before), parse_metrics(after), seconds)}


TRITON = """# HELP nv_inference_request_success Number of successful inference requests
# TYPE nv_inference_request_success counter
nv_inference_request_success{{model="a",version="1"}} {a}
nv_inference_request_success{{model="b",version="1"}} {b}
nv_inference_request_duration_us{{model="a",version="1"}} {us}
nv_inference_pending_request_count{{model="a",version="1"}} 4
"""


VLLM = """vllm:e2e_request_latency_seconds_bucket{{le="0.1",model_name="m"}} {a}
vllm:e2e_request_latency_seconds_bucket{{le="0.5",model_name="m"}} {b}
vllm:e2e_request_latency_seconds_bucket{{le="1.0",model_name="m"}} {c}
vllm:e2e_request_latency_seconds_bucket{{le="+Inf",model_name="m"}} {d}
vllm:e2e_request_latency_seconds_count{{model_name="m"}} {d}
vllm:e2e_request_latency_seconds_sum{{model_name="m"}} {s}
vllm:num_requests_waiting{{model_name="m"}} 3
vllm:generation_tokens_total{{model_name="m"}} {t}
"""


TORCHSERVE = """ts_inference_requests_total{{uuid="u",model_version="default",}} {n}
ts_inference_latency_microseconds{{uuid="u",model_version="default",}} {us}
"""
TENSORFLOW = """:tensorflow:serving:request_latency_count{{model_name="m",API="predict"}} {n}
:tensorflow:serving:request_latency_sum{{model_name="m",API="predict"}} {us}
:tensorflow:core:graph_runs{{}} 3
"""
BENTOML = """bentoml_service_request_duration_seconds_sum{{service_name="s"}} {s}
bentoml_service_request_duration_seconds_count{{service_name="s"}} {n}
bentoml_service_request_in_progress 3
"""
UNKNOWN = """go_gc_duration_seconds_sum 1
go_gc_duration_seconds_count 900
http_request_duration_seconds_sum{{path="/"}} {s}
http_request_duration_seconds_count {n}
db_latency_ms_sum 5
db_latency_ms_count 1
"""
SCRAPED = """http_request_duration_seconds_sum{{handler="{h}"}} {s}
http_request_duration_seconds_count{{handler="{h}"}} {n}
"""
TWO_WORKERS = """ts_inference_requests_total{{w="1"}} {a}
ts_inference_requests_total{{w="2"}} {b}
ts_inference_latency_microseconds {us}
"""
FIRST = {"a": 100, "b": 50, "us": 1_000_000}


@pytest.mark.parametrize(
    ("text", "before", "after", "rate", "latency"),
    [
        # Triton counts microseconds over all models.
        (TRITON, FIRST, {"a": 130, "b": 60, "us": 3_000_000}, 4.0, 0.05),
        (TRITON, FIRST, FIRST, 0.0, None),  # no request has no response time
        (TRITON, FIRST, {"a": 3, "b": 0, "us": 1000}, None, None),  # it has started again
        (TORCHSERVE, {"n": 1, "us": 5000}, {"n": 5, "us": 25000}, 0.4, 0.005),
        (TORCHSERVE, {"n": 5, "us": 900_000}, {"n": 8, "us": 100}, None, None),  # by its time alone
        (TWO_WORKERS, {"a": 10, "b": 10, "us": 1000}, {"a": 2, "b": 90, "us": 9000}, None, None),
        (TENSORFLOW, {"n": 0, "us": 0}, {"n": 10, "us": 200_000}, 1.0, 0.02),
        (BENTOML, {"s": 1.0, "n": 10}, {"s": 3.0, "n": 20}, 1.0, 0.2),  # in progress is no queue
        (UNKNOWN, {"s": 1, "n": 10}, {"s": 2, "n": 20}, 1.0, 0.1),  # it is read by its words
        (SCRAPED, {"s": 1, "n": 1, "h": "/v1"}, {"s": 2, "n": 2, "h": "/v1"}, 0.1, 1.0),
        (SCRAPED, {"s": 1, "n": 1, "h": "/metrics"}, {"s": 2, "n": 2, "h": "/metrics"}, None, None),
    ],
)
def test_requests_and_their_time_are_found(text, before, after, rate, latency) -> None:
    found = points(text.format(**before), text.format(**after))
    known = {} if rate is None else {"request_rate": rate}
    known |= {} if latency is None else {"latency_seconds": pytest.approx(latency)}
    assert found == known | ({"queue_length": 4.0} if text is TRITON else {})


def test_other_metrics_are_no_response_times() -> None:
    assert points("process_cpu_seconds_total 5\n", "process_cpu_seconds_total 9\n") == {}
    for name in ("request_latency", "request_runtime_bytes", "response_time"):  # without a unit
        text = f"{name}_sum {{s}}\n{name}_count {{n}}\n"
        assert points(text.format(s=1, n=1), text.format(s=5, n=3)) == {}


def test_vllm_has_a_histogram() -> None:
    before = VLLM.format(a=10, b=10, c=10, d=10, s=0.5, t=100)
    after = VLLM.format(a=20, b=40, c=50, d=50, s=12.5, t=400)
    found = points(before, after)
    # 40 requests: 10 up to 0.1 s, 20 up to 0.5, 10 up to 1. The 20th is half way in (0.1, 0.5].
    assert found["latency_p50_seconds"] == pytest.approx(0.1 + 0.4 * 10 / 20)
    assert found["latency_p99_seconds"] == pytest.approx(0.5 + 0.5 * (39.6 - 30) / 10)
    assert found["latency_seconds"] == pytest.approx(0.3)
    assert (found["request_rate"], found["token_rate"], found["queue_length"]) == (4.0, 30.0, 3.0)


def test_a_model_that_is_unloaded_takes_no_requests_from_the_others() -> None:
    before = (
        'nv_inference_request_success{model="a"} 100\nnv_inference_request_success{model="b"} 50\n'
        'nv_inference_request_duration_us{model="a"} 1000000\n'
        'nv_inference_request_duration_us{model="b"} 900000\n'
    )
    after = (
        'nv_inference_request_success{model="a"} 200\n'
        'nv_inference_request_duration_us{model="a"} 2000000\n'
    )
    assert points(before, after) == {"request_rate": 10.0, "latency_seconds": pytest.approx(0.01)}


def test_broken_lines_harm_no_others() -> None:
    models = "".join(f'nv_inference_request_success{{model="{name}"}} 1\n' for name in "ab")
    text = "garbage {{{\n# HELP x y\n" + models + 'x{y="} 3\n\0\n'
    assert parse_metrics(text).values["nv_inference_request_success"] == 2


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (f"a {'9' * 400}\nb 1\n", {"b": 1.0}),  # found by fuzzing: it stopped the probe
        ("tgi_x{method=\"{'method': 'prefill'}\"} 3\n", {"tgi_x": 3.0}),
        ('a{quantile="0.5"} NaN\na_sum 1\n', {"a_sum": 1.0}),
        ("ts_inference_requests_total +Inf\n", {}),
    ],
)
def test_finite_numbers_are_values(text, values) -> None:
    assert parse_metrics(text).values == values


@pytest.mark.parametrize(
    ("share", "before", "after", "expected"),
    [
        (0.5, {}, {1.0: 10, math.inf: 10}, 0.5),
        (0.5, {}, {1.0: 0, 2.0: 10, math.inf: 10}, 1.5),
        (0.99, {}, {1.0: 5, math.inf: 10}, 1.0),
        (0.5, {1.0: 10, math.inf: 10}, {1.0: 10, math.inf: 10}, None),
        (0.5, {}, {}, None),
        (0.5, {}, {math.inf: 10}, None),
        (0.99, {}, {1.0: 5, 2.0: 10}, None),
    ],
)
def test_quantiles_are_linear_within_a_bucket(share, before, after, expected) -> None:
    rises = {bound: count - before.get(bound, 0) for bound, count in after.items()}
    assert quantile(share, rises) == expected
