"""The documentation's pictures are those that the browser tests take."""

import re

from tests.documents.blocks import ROOT, pages

FOLDER = ROOT / "docs/screenshots"
SCHEME = re.compile(r"-(light|dark)\.png$")
LIMIT_BYTES = 2 * 2**20


def test_each_picture_is_taken_by_a_browser_test() -> None:
    tests = (ROOT / "tests/console").rglob("test_browser_*.py")
    taken = {
        name
        for path in tests
        for name in re.findall(r'picture\([\w.]+, "([\w-]+)"\)', path.read_text())
    }
    kept = {SCHEME.sub("", path.name) for path in FOLDER.iterdir()}
    assert kept <= taken


def test_each_picture_is_on_a_page_and_says_what_it_shows() -> None:
    text = "\n".join((ROOT / page).read_text() for page in pages())
    shown = re.findall(r"!\[([^\]]+)\]\((?:docs/)?screenshots/([\w.-]+)\)", text)
    assert {name for _, name in shown} == {path.name for path in FOLDER.iterdir()}
    assert all(len(words) > 20 for words, _ in shown)


def test_the_pictures_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < LIMIT_BYTES
