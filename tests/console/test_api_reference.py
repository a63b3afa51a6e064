"""``/v1/docs`` and ``/v1/schema``: complete, small, made once, nothing of theirs is markup."""

import gzip
import html
import json
import re
from unittest.mock import patch

import pytest
from django.test import Client
from drf_spectacular.views import SpectacularAPIView

from console.api_reference import outline
from tests.cast import HANDLER
from tests.conformance import document

pytestmark = pytest.mark.slow

AS_JSON = "application/vnd.oai.openapi+json"
OPERATIONS = [
    operation for methods in document()["paths"].values() for operation in methods.values()
]


@pytest.fixture
def visitor() -> Client:
    """Return a client without an account."""
    client = Client()
    client.handler = HANDLER
    return client


def test_the_page_shows_every_operation_with_its_examples(visitor: Client) -> None:
    text = html.unescape(visitor.get("/v1/docs").content.decode())
    for operation in OPERATIONS:
        assert text.count(f'id="{operation["operationId"]}"') == 1
    query = document()["paths"]["/v1/sql"]["post"]["requestBody"]["content"]["application/json"]
    assert json.dumps(query["example"], indent=2) in text
    assert 'curl http://localhost:8000/v1/environments \\\n  -H "Authorization' in text


def test_each_tag_belongs_to_one_chapter() -> None:
    grouped = [tag for chapter in document()["x-tagGroups"] for tag in chapter["tags"]]
    assert sorted(grouped) == sorted(tag["name"] for tag in document()["tags"])
    assert {tag for operation in OPERATIONS for tag in operation["tags"]} == {*grouped}


@pytest.mark.parametrize(("path", "most_bytes"), [("/v1/docs", 120_000), ("/v1/schema", 100_000)])
def test_what_travels_is_small_and_travels_once(
    visitor: Client, path: str, most_bytes: int
) -> None:
    plain = visitor.get(path)
    packed = visitor.get(path, headers={"Accept-Encoding": "gzip, br"})
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) < most_bytes
    assert "Accept-Encoding" in packed["Vary"]
    again = visitor.get(path, headers={"If-None-Match": packed["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == packed["ETag"]


def test_the_document_and_the_page_are_made_once(visitor: Client) -> None:
    first = visitor.get("/v1/schema", headers={"Accept": AS_JSON})
    assert first["Content-Type"] == AS_JSON
    assert "/v1/sql" in json.loads(first.content)["paths"]
    visitor.get("/v1/docs")
    # Each takes a second of the processor, and anyone may ask.
    with patch.object(SpectacularAPIView.generator_class, "get_schema", side_effect=AssertionError):
        again = visitor.get("/v1/schema?version=2", headers={"Accept": AS_JSON})
        assert visitor.get("/v1/docs?a=b").status_code == 200
    assert again.content == first.content


def test_a_description_becomes_paragraphs_and_never_markup() -> None:
    text = "One `code`\nline.\n\n* `a` - **b**\n* <script>"
    assert outline.paragraphs(text) == [
        "One <code>code</code>\nline.",
        "<code>a</code> - <strong>b</strong>",
        "&lt;script&gt;",
    ]


def test_no_operation_of_the_page_has_two_requests_or_none(visitor: Client) -> None:
    text = visitor.get("/v1/docs").content.decode()
    assert len(re.findall(r"<pre[^>]*>curl ", text)) == len(OPERATIONS)
