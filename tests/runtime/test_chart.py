"""The Helm chart as rendered with everything turned on: its commands and settings exist, and its pods are closed."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import yaml

from dashboard.command_line import QUEUES, SERVICES
from dashboard.environment import VARIABLES
from tests.runtime import render_chart

OBJECTS: list[dict[str, Any]] = [item for item in yaml.safe_load_all(render_chart.RENDERED.read_text()) if item]
PODS = {
    item["metadata"]["name"]: item["spec"]["template"]["spec"]
    for item in OBJECTS
    if item["kind"] in ("Deployment", "Job")
}


def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["containers"]
    return dict(only)


def kinds(kind: str) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in OBJECTS if item["kind"] == kind}


def test_the_rendered_text_is_of_this_chart() -> None:
    text = render_chart.RENDERED.read_text()
    assert render_chart.digest() in text.splitlines()[0], "run python -m tests.runtime.render_chart"
    if shutil.which("helm"):
        assert text.partition("\n")[2] == render_chart.rendered()


def test_every_program_runs_and_beat_once() -> None:
    commands = {name: container(pod)["args"] for name, pod in PODS.items()}
    assert {words[0] for words in commands.values()} == {*SERVICES, "migrate"}
    queues = {words[words.index("--queue") + 1] for words in commands.values() if words[0] == "worker"}
    assert queues == set(QUEUES)
    beat = kinds("Deployment")["schemadesk-beat"]["spec"]
    assert (beat["replicas"], beat["strategy"]) == (1, {"type": "Recreate"})
    job = kinds("Job")["schemadesk-migrate"]["metadata"]["annotations"]
    assert job["helm.sh/hook"] == "pre-install,pre-upgrade", "before anything of the new version starts"


@pytest.mark.parametrize("name", PODS)
def test_its_variables_are_settings_and_secrets_are_references(name: str) -> None:
    variables = {item["name"]: item for item in container(PODS[name])["env"]}
    assert variables.keys() <= VARIABLES.keys()
    for secret in (
        "SECRET_KEY",
        "SECRET_KEY_FALLBACKS",
        "DATABASE_URL",
        "REDIS_URL",
        "SPARK_REMOTE",
        "DATABASE_OWNER_URL",
    ):
        if secret in variables:
            assert variables[secret].keys() == {"name", "valueFrom"}
    assert ("DATABASE_OWNER_URL" in variables) == (name == "schemadesk-migrate")
    assert variables["SCHEMADESK_MAIL_PORT"]["value"] == "587", "a number stays what it is"


@pytest.mark.parametrize("name", PODS)
def test_pods_are_closed(name: str) -> None:
    pod = PODS[name]
    security = container(pod)["securityContext"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert container(pod)["resources"]["limits"]["memory"]
    writable = {mount["mountPath"] for mount in container(pod)["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"/tmp", "/var/lib/schemadesk"}


def test_only_the_web_pods_are_reached() -> None:
    policies = kinds("NetworkPolicy")
    assert policies["schemadesk"]["spec"]["ingress"] == []
    (rule,) = policies["schemadesk-web"]["spec"]["ingress"]
    assert rule["ports"] == [{"port": "http"}]
    selector = policies["schemadesk-web"]["spec"]["podSelector"]["matchLabels"]
    assert selector == kinds("Service")["schemadesk-web"]["spec"]["selector"]
    assert selector.items() <= kinds("Deployment")["schemadesk-web"]["spec"]["template"]["metadata"]["labels"].items()


def test_the_web_pods_are_probed_spread_and_scaled() -> None:
    web = container(PODS["schemadesk-web"])
    asked = {probe: web[f"{probe}Probe"]["httpGet"] for probe in ("startup", "readiness", "liveness")}
    paths = {probe: request["path"] for probe, request in asked.items()}
    # An outage of the database or Valkey makes no pod unready: reads and answers with Retry-After would end with it.
    assert paths == {"startup": "/readyz", "readiness": "/healthz", "liveness": "/healthz"}
    assert asked["startup"]["httpHeaders"] == [{"name": "Host", "value": "schemas.example.com"}]
    scaler = kinds("HorizontalPodAutoscaler")["schemadesk-web"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == "schemadesk-web"
    assert "replicas" not in kinds("Deployment")["schemadesk-web"]["spec"], "the autoscaler's number stays"
    assert kinds("PodDisruptionBudget")["schemadesk-web"]["spec"]["maxUnavailable"] == 1


def test_people_reach_it_by_ingress_or_gateway_and_prometheus_with_a_token() -> None:
    rules = kinds("Ingress")["schemadesk-web"]["spec"]
    assert [rule["host"] for rule in rules["rules"]] == rules["tls"][0]["hosts"]
    assert kinds("HTTPRoute")["schemadesk-web"]["spec"]["hostnames"] == rules["tls"][0]["hosts"]
    (endpoint,) = kinds("ServiceMonitor")["schemadesk-web"]["spec"]["endpoints"]
    assert endpoint["path"] == "/metrics"
    assert endpoint["authorization"]["credentials"] == {"name": "schemadesk-metrics", "key": "token"}
