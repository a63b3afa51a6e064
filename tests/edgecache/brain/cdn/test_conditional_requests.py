"""Conditions of plain HTTP requests: lists of ETags."""

from dataclasses import replace

import pytest

from edgecache.brain.cdn.conditional_requests import select
from tests.edgecache.brain.directory.test_index import FOUND

ETAG = [("etag", '"a,b"')]


@pytest.mark.parametrize("text", ['"a,b"', '"x", "a,b"', 'W/"a,b"', '"x","a,b","y"', "*"])
def test_an_etag_may_contain_a_comma(text: str) -> None:
    assert select(FOUND, ETAG, {"if-none-match": text}).status == 304
    if not text.startswith("W/"):
        assert select(replace(FOUND, size=1), ETAG, {"if-match": text}).status == 200
