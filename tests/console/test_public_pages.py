"""The pages outside of the console: each has a Content-Security-Policy."""

import re

import pytest
from django.test import Client

from tests.cast import HANDLER


@pytest.fixture
def visitor() -> Client:
    """Return a client without an account."""
    client = Client()
    client.handler = HANDLER
    return client


def test_the_landing_page_links_to_the_services(visitor: Client) -> None:
    response = visitor.get("/")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/html")
    html = response.content.decode()
    for path in ("/console/", "/v1/docs", "/v1/schema", "/admin/"):
        assert f'href="{path}"' in html


@pytest.mark.parametrize("path", ["/", "/v1/docs"])
def test_a_public_page_allows_nothing_inline_and_no_other_server(
    visitor: Client, path: str
) -> None:
    response = visitor.get(path)
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    html = response.content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", html)
    assert not re.search(r"\b(?:src|href|action)=[\"']?(?:https?:)?//", html)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/login/", "/admin/", "/admin/accounts/user/"])
def test_every_page_of_the_admin_has_a_policy(visitor: Client, path: str) -> None:
    policy = visitor.get(path)["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self' 'unsafe-eval'" in policy
    assert "frame-ancestors 'none'" in policy
