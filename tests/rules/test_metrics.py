"""Metrics: labels without tenants; rules, dashboard and documents name only what exists."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

import pytest
import yaml
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from edgecache.brain.metering import prometheus as brain_metrics
from edgecache.brain.metering.meters import Measure
from edgecache.worker import options
from edgecache.worker.counters import Counters
from edgecache.worker.serving import pages
from tests.cast import Caller
from tests.scrape import scrape

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/rules.yml"
RULE_TESTS = ROOT / "deploy/prometheus/rules_test.yml"
SCRAPES = ROOT / "deploy/prometheus/prometheus.yml"
DASHBOARD = ROOT / "deploy/grafana/zonal.json"
DOCUMENT = ROOT / "docs/observability.md"
NAME: Final = re.compile(r"\bzonal_[a-z_]+\b")
SAMPLES_OF: Final = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
# Each has few values, which are ours.
LABELS: Final = frozenset(
    {
        "method",
        "route",
        "status",
        "outcome",
        "reason",
        "second_factor",
        "purpose",
        "brain",
        "kind",
        "state",
        "queue",
        "subject",
        "le",
    }
)


def brain_text() -> str:
    """Return what a brain without nodes and traffic shows."""
    nodes: Any = SimpleNamespace(nodes=list)
    meters: Any = SimpleNamespace(since_start=Measure, repeated=0)
    return brain_metrics.text(nodes, meters, UUID(int=1)).decode()


def worker_text() -> str:
    """Return what a cache worker shows that holds nothing."""
    held = SimpleNamespace(used_bytes=0, objects=0, evictions=0)
    node: Any = SimpleNamespace(
        store=SimpleNamespace(held=lambda: held),
        options=SimpleNamespace(capacity_bytes=1),
        is_brain_up=True,
        direct_answers=0,
        receipts=(),
        problems=SimpleNamespace(now=list),
        counters=Counters(),
    )
    return pages.metrics_text(node)


def families() -> dict[str, str]:
    """Return the type of each of Zonal's metrics, those without samples too."""
    scrape()
    text = Caller().get("/metrics").raw.content.decode() + brain_text() + worker_text()
    return {
        family.name: family.type
        for family in text_string_to_metric_families(text)
        # Those that a process adds which is alone.
        if family.name.startswith("zonal_") and not family.name.endswith("_created")
    }


def sample_names() -> set[str]:
    """Return the names that a query may use."""
    return {
        name + suffix for name, kind in families().items() for suffix in SAMPLES_OF.get(kind, ("",))
    }


@pytest.mark.django_db
def test_rules_and_dashboard_use_metrics_that_exist() -> None:
    rules = [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    used = set(NAME.findall("\n".join([*queries, *(rule["expr"] for rule in rules)])))

    assert len(rules) > 10
    assert len(queries) > 20
    assert used - sample_names() == set()


@pytest.mark.django_db
def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    rows = re.findall(r"^\| `(zonal_[a-z_]+)`", DOCUMENT.read_text(), re.MULTILINE)

    assert len(rows) == len(set(rows))
    counters = {name for name, kind in families().items() if kind == "counter"}
    assert set(rows) == {f"{name}_total" if name in counters else name for name in families()}


@pytest.mark.django_db
def test_no_label_of_the_platform_is_a_tenants() -> None:
    seen = {label for (name, labels) in scrape().samples for label, _ in labels if "zonal_" in name}
    declared = {
        label
        for metric in {*REGISTRY._collector_to_names}
        if str(getattr(metric, "_name", "")).startswith("zonal_")
        for label in getattr(metric, "_labelnames", ())
    }

    assert {"route", "outcome", "queue"} <= seen | declared
    assert (seen | declared) - LABELS == set()


def test_every_alert_says_what_to_do() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in {"critical", "warning"}
            assert rule["annotations"]["summary"].endswith(".")
            assert rule["annotations"]["action"].endswith(".")
            assert rule["for"]


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    """`make check-deploy` runs them."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    cases = [
        case
        for test in yaml.safe_load(RULE_TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
    ]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == alerts
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == alerts


def test_prometheus_asks_every_process_that_has_metrics() -> None:
    jobs = yaml.safe_load(SCRAPES.read_text())["scrape_configs"]
    ports = {job["static_configs"][0]["targets"][0].rpartition(":")[2] for job in jobs}
    # The defaults of ZBIND, of the first brain's unit and of a worker's --listen.
    assert ports == {"8000", "8401", str(options.PORT)}
