"""The pages' files as production serves them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.test import Client, override_settings

from console import static_files
from console.templatetags import modules
from tests.packages import ROOT

FILES = ROOT / "console" / "static"
PAGE = "console/overview/overview.js"


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with the collected files of the console alone."""
    root = tmp_path_factory.mktemp("static")
    storages = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "console.static_files.HashedFiles"},
    }
    finder = "django.contrib.staticfiles.finders.FileSystemFinder"
    changed = {
        "STATIC_ROOT": str(root),
        "STORAGES": storages,
        "STATICFILES_DIRS": [FILES, *settings.STATICFILES_DIRS],
        "STATICFILES_FINDERS": [finder],
        # As with a STATIC_ROOT from the beginning.
        "WHITENOISE_USE_FINDERS": False,
        "WHITENOISE_AUTOREFRESH": False,
    }
    with override_settings(**changed):
        assert static_files.collect_if_changed()
        assert not static_files.collect_if_changed()
        yield root


def test_modules_import_each_other_by_hashed_names_and_are_compressed(collected: Path) -> None:
    url = staticfiles_storage.url(PAGE)
    path = collected / url.removeprefix(settings.STATIC_URL)
    assert re.search(r"overview\.[0-9a-f]{12}\.js$", path.name)
    for source in collected.glob("console/**/*.js"):
        for name in re.findall(r'^[^*]*"(\.[^"]+\.js)";', source.read_text(), re.MULTILINE):
            assert re.search(r"\.[0-9a-f]{12}\.js$", name), f"{source.name} imports {name}"
            target = source.parent / name
            assert target.is_file()
            assert target.with_name(target.name + ".gz").is_file()
    assert not (collected / PAGE).exists()


def test_a_page_names_every_module_that_it_will_import() -> None:
    named = modules.imported(PAGE)
    assert all((FILES / name).is_file() for name in named)
    # One that the page imports, and one that is imported by others only.
    assert {"console/frame/shell.js", "console/lib/tabs.js"} < set(named)
    assert PAGE not in named
    assert "console/cache/cache.js" not in named


def test_hashed_files_are_cached_permanently_and_others_revalidated(collected: Path) -> None:
    (collected / "unhashed.js").write_text("1;")
    client = Client()
    for name in (PAGE, "console/css/parts.css", "vendor/codemirror.js"):
        answer = client.get(staticfiles_storage.url(name), headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "max-age=315360000, public, immutable"
        assert answer.headers["Content-Encoding"] == "gzip"
        assert b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # of a file
    answer = client.get(f"{settings.STATIC_URL}unhashed.js")
    assert answer.status_code == 200
    assert "immutable" not in answer.headers["Cache-Control"]
    assert b"".join(answer.streaming_content) == b"1;"  # type: ignore[attr-defined]  # of a file


def test_without_a_folder_for_them_there_is_nothing_to_collect() -> None:
    with override_settings(STATIC_ROOT=None):
        assert not static_files.collect_if_changed()
