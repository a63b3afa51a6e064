"""The documents match the code."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.urls import get_resolver

from accounts.reclaim import address_release
from audit.tags import AuditTag
from billing.payouts import methods
from common import errors
from common.settings.env import Env
from common.settings.table import SettingRow, rows
from edgecache.api import failure_causes
from edgecache.brain.directory import hosts
from oauth.domains import verification
from operations import conf_modules
from outbox.webhooks import delivery_queue
from sqlgateway.run import idempotency
from tests.packages import FILES, ROOT, sources
from tests.rules.routes import api_routes
from twofactor.challenges import step_up

DOCS = ROOT / "docs"
_ = get_resolver().url_patterns  # loads every view, and with them every error
# What begins as settings do and is none: ZONAL… are variables of clients, containers and tests; the
# others are variables of the tests, access keys, and names that tests mistype.
NO_SETTINGS = re.compile(
    r"ZONAL\w*|ZFUZZ_EXAMPLES|ZK\w+|ZDOTDIR|ZLOG_LEVLE|ZSECRET_KEY|ZONED?|ZIXYCTJEOLJDQPKC"
)


def test_each_word_for_a_failure_has_a_sentence() -> None:
    """The page of a bucket shows the sentence, docs/cache.md has the word."""
    table = (DOCS / "cache.md").read_text().partition("| status | `detail` |")[2]
    listed, status = set(), ""
    for line in table.splitlines()[2:]:
        if not line.startswith("|"):
            break
        _, number, words, _ = (cell.strip() for cell in line.split("|", 3))
        status = number or status
        if status in {"502", "504", "508"}:
            listed |= set(re.findall(r"`([a-z-]+)`", words))
    assert set(failure_causes.MEANINGS) == listed - {"only-if-cached"}


def test_each_status_of_a_code_is_listed() -> None:
    """`sql_error` has five, and a reader looks up the one at hand."""
    listed = {
        (section[:3], code)
        for section in (DOCS / "errors.md").read_text().split("\n## ")[1:]
        for code in re.findall(r"^- `(\w+)`: \S", section, re.MULTILINE)
    }
    assert listed == {(str(kind.status), kind.code) for kind in errors.every_error()}


@pytest.mark.parametrize("name", ["commands.md", "cli.md"])
def test_every_argument_of_a_command_is_explained(name: str) -> None:
    rows = re.findall(r"^\| (`.+) \| (.*) \|$", (DOCS / name).read_text(), re.MULTILINE)
    assert len(rows) > 40
    assert [argument for argument, text in rows if not text.strip()] == []


def test_each_page_is_in_the_navigation_of_the_site() -> None:
    """`make docs` would refuse it, much later."""
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"([\w-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_audit_tags_are_listed_once() -> None:
    tags = [tag for app in AuditTag.__subclasses__() for tag in app]
    assert len(tags) == len(set(map(str, tags)))
    assert all(
        re.fullmatch(r"(api|admin|cli|sync|sql|system):[a-z_]+:[a-z_]+", tag) for tag in tags
    )


def test_every_audit_tag_is_recorded_somewhere() -> None:
    """A tag that is never recorded misleads readers who filter the trail by it."""
    code = "".join(path.read_text() for path in sources())
    for app in AuditTag.__subclasses__():
        for tag in app:
            assert f"{app.__name__}.{tag.name}" in code, tag


def test_every_table_of_settings_is_documented() -> None:
    """A module with ``TABLES`` of settings belongs to those that docs/settings.md is made from."""
    files = {
        str(path.relative_to(ROOT))
        for path in sources()
        if path.name == "conf.py" or "conf" in path.parts
        if re.search(r"^TABLES\b", path.read_text(), re.MULTILINE)
    }
    listed = {module.__name__.replace(".", "/") + ".py" for module in conf_modules.CONF_MODULES}
    assert files == listed


def test_every_default_of_an_integer_is_within_its_bounds() -> None:
    found = [row for row in _settings_rows() if row.kind == "integer" and row.default is not None]
    assert len(found) > 30
    for row in found:
        assert row.read(Env({row.variable: row.shown_default})) == row.read(Env({})), row.variable


def test_every_setting_that_a_page_or_a_file_names_exists() -> None:
    """A renamed setting would stay in a page, a unit or a template, and be ignored there."""
    known = {name for row in _settings_rows() for name in row.names}
    places = ("docs/", "deploy/", "templates/", "tests/", "README.md", "CONTRIBUTING.md")
    unknown = set()
    for path in (each for each in FILES if each.startswith(places)):
        content = (ROOT / path).read_bytes()
        text = "" if b"\0" in content else content.decode()
        for name in re.findall(r"\bZ[A-Z][A-Z0-9_]{2,}\b", text):
            setting = name.removesuffix("_FILE")
            is_start = name.endswith("_") and any(each.startswith(name) for each in known)
            if not (setting in known or is_start or NO_SETTINGS.fullmatch(setting)):
                unknown.add((path, name))
    assert unknown == set()


STATED = {
    "docs/authentication.md": [
        f"older than {step_up.MAX_AGE_S // 60} minutes",
        f"After {address_release.KEEP.days} days without an address",
    ],
    "docs/cache.md": [f"missing for {hosts.LAPSES_AFTER_DAYS} days"],
    "docs/earnings.md": [f"waits for {methods.REST // timedelta(hours=1)} hours"],
    "docs/sql.md": [f"kept for {idempotency.KEPT_HOURS} hours"],
    "docs/teams.md": [f"after {verification.EXPIRES_AFTER.days} days without it"],
    "docs/webhooks.md": [f"succeeded for {delivery_queue.DISABLE_AFTER.days} days"],
}


@pytest.mark.parametrize("page", STATED)
def test_a_number_whose_neglect_costs_a_reader_is_the_code_s(page: str) -> None:
    """Pages repeat no other numbers: /v1/docs, the settings and the errors have them."""
    text = " ".join((ROOT / page).read_text().split())
    assert [sentence for sentence in STATED[page] if sentence not in text] == []


def test_each_error_has_a_test() -> None:
    tests = (path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))
    tested = {word for path in tests for word in re.findall(r'"(\w+)"', path.read_text())}
    assert [kind.code for kind in errors.every_error() if kind.code not in tested] == []


def test_settings_are_read_in_one_place() -> None:
    """Only settings.py, env.py and modules that run before Django read the environment."""
    allowed = {
        "platform_site/settings.py",
        "common/settings/env.py",
        "platform_site/gunicorn.py",
        # A worker has no Django; the brain's origins only remove variables.
        "edgecache/worker/options.py",
        "edgecache/worker/tracing.py",
        "edgecache/brain/origins/open_origins.py",
    }
    strays = []
    for path in sources():
        name = str(path.relative_to(ROOT))
        if name in allowed or "embedded" in path.parts:
            continue
        if re.search(r"os\.environ\[|os\.getenv|os\.environ\.get\(\"Z", path.read_text()):
            strays.append(name)
    assert not strays


def test_the_schema_holds_every_route() -> None:
    schema = (ROOT / "docs/openapi.yaml").read_text()
    for route in api_routes():
        path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route.path)
        assert f"\n  {path}:" in schema, f"{path} is not in docs/openapi.yaml"


def _settings_rows() -> list[SettingRow]:
    tables = (table for module in conf_modules.CONF_MODULES for table in module.TABLES)
    return [row for table in tables for row in rows(table).values()]
