"""A client that openapi-python-client makes of docs/openapi.yaml works against a live server."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from edgecache.api import client as brain_client
from sqlgateway.connection import cache
from sqlgateway.provisioning.placements import CACHE
from tests.cast import PASSWORD
from tests.conformance import DOCUMENT
from tests.edgecache.s3.cluster import Cluster

PACKAGE = "zonal_generated_client"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Generate the client, importable under its package's name."""
    folder = tmp_path_factory.mktemp("client")
    config = folder / "config.yaml"
    # No formatter runs over the generated code: nobody reads it.
    config.write_text("post_hooks: []\n")
    program = Path(sys.executable).with_name("openapi-python-client")
    command = [
        *(str(program), "generate", "--path", str(DOCUMENT), "--config", str(config)),
        *("--output-path", str(folder / PACKAGE), "--meta", "none", "--fail-on-warning"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield PACKAGE
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


@pytest.fixture
def site(live_server: LiveServer, cluster: Cluster, settings: Settings) -> Iterator[str]:
    """Return the URL of a live server over a real brain."""
    url = f"http://127.0.0.1:{cluster.internal_port}"
    settings.CACHE = replace(
        settings.CACHE, brain_url=url, s3_url=cluster.url, secret=cluster.secret, is_enabled=True
    )
    brain_client._sessions.clear()
    yield str(live_server.url)
    brain_client._sessions.clear()
    CACHE.clear()
    cache.CACHE.clear()


def test_it_signs_up_logs_in_runs_sql_and_lists_buckets(generated: str, site: str) -> None:
    models = importlib.import_module(f"{generated}.models")
    clients = importlib.import_module(f"{generated}.client")

    def call(operation: str, client: Any, **arguments: Any) -> Any:
        return importlib.import_module(f"{generated}.api.{operation}").sync(
            client=client, **arguments
        )

    with clients.Client(base_url=site) as anonymous:
        email = "alice@example.com"
        signup = models.SignupRequest(email=email, password=PASSWORD)
        signed_up = call("sign_in.auth_signup_create", anonymous, body=signup)
        assert isinstance(signed_up, models.SignupAnswer), signed_up
        login = models.LoginRequest(email=email, password=PASSWORD)
        signed_in = call("sign_in.auth_login_create", anonymous, body=login)
        assert isinstance(signed_in, models.LoginAnswer), signed_in
        assert signed_in.environment.name == "live"
        wrong = models.LoginRequest(email=email, password="another")
        refused = call("sign_in.auth_login_create", anonymous, body=wrong)
        assert isinstance(refused, models.Problem)
        assert refused.code == "invalid_credentials"
    with clients.AuthenticatedClient(base_url=site, token=signed_in.access_token) as client:
        query = models.SqlRequest(query="SELECT $1::int + $2::int AS sum", params=[2, 3])
        answer = call("sql.sql", client, body=query)
        assert isinstance(answer, models.SqlAnswer), answer
        assert [dict(row) for row in answer.rows] == [{"sum": 5}]
        bucket = models.BucketRequest(name="assets", is_public=True)
        made = call("buckets.cache_buckets_create", client, body=bucket)
        assert isinstance(made, models.Bucket), made
        listed = call("buckets.cache_buckets_list", client)
        assert [each.name for each in listed.results] == ["assets"]
