"""Shows running jobs to people and tools: Flink's REST API, events for pages, metrics for Prometheus, spans.

It reads the views of `rekindle.monitor` and acts through `JobHandle`; nothing below knows of it. The packages of the
extra `web` are imported when the first client comes.

- `attach`: the entry point, called for every job; `rest_settings`, `span_settings`: its settings
- `rest_server`, `listener`: sockets and threads; `application`: the way of a request; `access_rules`, `guard`: who may
  ask; `allowed_directories`: where requests may write
- `endpoints`: what can be asked; `openapi`: the same for machines; `asked`: what was asked; `actions`: what acts
- `job_answers`, `vertex_answers`, `checkpoint_answers`, `failure_answers`, `slot_answers`, `cluster_answers`: Flink's
  answers, functions of a view; `live_answers`: our own
- `metric_values`, `metric_answers`, `prometheus_text`: metrics; `spans`: OpenTelemetry
- `operations`: savepoints, checkpoints and stops under way; `java_throwable`: their failures, for Flink's client
- `served_jobs`: the jobs of this process, or those of a history; `history_server`: serves the latter
- `event_stream`: events for pages; `runtime_directory`: how commands find the servers of this machine
"""

from __future__ import annotations
