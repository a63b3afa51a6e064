"""A page's first load is small: what the browser fetches before anything can be used."""

import gzip
import re
from pathlib import Path

import pytest
from django.test import Client

from console import urls
from tests.cast import HANDLER

STATIC = Path(__file__).resolve().parents[2] / "console/static"
# Kilobytes as they are sent, compressed.
MAX_BYTES, MAX_BYTES_WITH_EDITOR = 150_000, 350_000
DYNAMIC = re.compile(r'import\("(\.[^"]+)"\)')


def fetched(html: str) -> set[Path]:
    """Return the files of a page: those that it names, and those that its modules import later."""
    named = re.findall(r'(?:src|href)="/static/([^"#]+)', html)
    files = {STATIC / name for name in named}
    for file in list(files):
        if file.suffix == ".js":
            later = DYNAMIC.findall(file.read_text())
            files |= {(file.parent / name).resolve() for name in later}
    return files


@pytest.mark.parametrize("path", [f"/{page.pattern}" for page in urls.urlpatterns])
def test_the_first_load_of_a_page_is_small(path: str) -> None:
    client = Client()
    client.handler = HANDLER
    html = client.get(path).content
    files = fetched(html.decode())
    assert files
    size = sum(len(gzip.compress(file.read_bytes())) for file in files) + len(gzip.compress(html))
    has_editor = any(file.name == "codemirror.js" for file in files)
    assert size <= (MAX_BYTES_WITH_EDITOR if has_editor else MAX_BYTES)
