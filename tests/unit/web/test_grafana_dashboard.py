"""The dashboard for Grafana asks for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rekindle.web.prometheus_text import prometheus_text
from tests.support.recorded_jobs import RecordedJob

DASHBOARD = Path(__file__).resolve().parents[3] / "examples" / "grafana" / "rekindle.json"
METRIC = re.compile(r"\b(?:flink|rekindle)_\w+")


def test_every_metric_of_the_dashboard_exists():
    job = RecordedJob().run()
    job.epoch()
    job.checkpoint(1)
    known = set(re.findall(r"^# TYPE (\w+)", prometheus_text([job.recorder.view()]), re.MULTILINE))
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for name in METRIC.findall(target["expr"])
    }
    assert len(asked) > 15
    assert asked <= known


def test_the_dashboard_can_be_imported():
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    (source,) = dashboard["__inputs"]
    sources = {panel["datasource"]["uid"] for panel in dashboard["panels"] if panel["type"] != "row"}
    assert sources == {f"${{{source['name']}}}"}
