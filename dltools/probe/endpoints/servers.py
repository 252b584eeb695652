"""The names of metrics in well-known serving programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Server:
    """One program's series: `total` is the time spent on requests, in `unit` seconds, `count` the
    number of requests; with `histogram` both are a histogram's sum and count. "" for none."""

    name: str
    total: str
    count: str
    unit: float = 1.0
    histogram: str = ""
    queue: str = ""
    tokens: str = ""


SERVERS = (
    Server("triton", "nv_inference_request_duration_us", "nv_inference_request_success", 1e-6,
           queue="nv_inference_pending_request_count"),
    Server("torchserve", "ts_inference_latency_microseconds", "ts_inference_requests_total", 1e-6),
    Server("vllm", "vllm:e2e_request_latency_seconds_sum", "vllm:e2e_request_latency_seconds_count",
           histogram="vllm:e2e_request_latency_seconds", queue="vllm:num_requests_waiting",
           tokens="vllm:generation_tokens_total"),
    Server("tgi", "tgi_request_duration_sum", "tgi_request_duration_count",
           histogram="tgi_request_duration", queue="tgi_queue_size",
           tokens="tgi_request_generated_tokens_sum"),
    Server("tensorflow-serving", ":tensorflow:serving:request_latency_sum",
           ":tensorflow:serving:request_latency_count", 1e-6,
           histogram=":tensorflow:serving:request_latency"),
    Server("bentoml", "bentoml_service_request_duration_seconds_sum",
           "bentoml_service_request_duration_seconds_count",
           histogram="bentoml_service_request_duration_seconds"),
    Server("llama.cpp", "llamacpp:tokens_predicted_seconds_total", "",
           queue="llamacpp:requests_deferred", tokens="llamacpp:tokens_predicted_total"),
)  # fmt: skip
