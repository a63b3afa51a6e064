"""The proxy that ends TLS accepts its configuration, and finds what it forwards to."""

import re

import msgspec
import yaml

from edgecache.protocol.resources import OriginOptions
from tests.deploy.tools import DEPLOY, NAMES, program, run

FILE = DEPLOY / "Caddyfile"


def test_caddy_accepts_its_configuration() -> None:
    caddy = program("caddy", package="caddy")
    seen = run(caddy, "validate", "--config", FILE, "--adapter", "caddyfile", environ=NAMES)
    assert seen.returncode == 0, seen.stderr
    assert "Valid configuration" in seen.stdout + seen.stderr


def test_caddys_formatter_leaves_the_file_as_it_is() -> None:
    seen = run(program("caddy", package="caddy"), "fmt", FILE)
    assert seen.stdout == FILE.read_text()


def test_it_forwards_to_services_of_the_compose_file() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    forwards = re.findall(r"reverse_proxy (?:@\w+ )?\{\$\w+:(\w+):(\d+)\}", FILE.read_text())
    assert forwards == [("web", "8000"), ("web", "8000"), ("brain", "9000")]
    assert all(name in services for name, _ in forwards)


def test_the_lines_that_limit_bodies_are_where_the_page_has_them() -> None:
    """An operator who raises ZSQL_BODY_LIMIT_BYTES raises these, too."""
    page = (DEPLOY.parent / "docs/production.md").read_text()
    rows = dict(re.findall(r"^\| (Caddy|nginx|HAProxy) \| (.+) \|$", page, re.MULTILINE))
    files = {"Caddy": "Caddyfile", "nginx": "nginx.conf", "HAProxy": "haproxy.cfg"}
    assert rows.keys() == files.keys()
    for proxy, lines in rows.items():
        text = (DEPLOY / files[proxy]).read_text()
        assert [line for line in re.findall("`([^`]+)`", lines) if line not in text] == []


def test_a_quiet_response_lasts_as_long_as_an_origin_may_be_quiet() -> None:
    options = msgspec.json.schema(OriginOptions)["$defs"]["OriginOptions"]["properties"]
    longest_s = options["idle_timeout_s"]["maximum"]
    limits = {"nginx.conf": r"proxy_read_timeout (\d+)m;", "haproxy.cfg": r"timeout server (\d+)m"}
    for name, pattern in limits.items():
        objects = (DEPLOY / name).read_text().split("# The object API")[1]
        (minutes,) = re.findall(pattern, objects)
        assert int(minutes) * 60 > longest_s


def test_the_page_has_the_variable_of_newer_caddies() -> None:
    [printed] = re.findall(
        r'`ZONAL_BUFFER="(.+?)"`', (DEPLOY.parent / "docs/production.md").read_text()
    )
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert services["proxy"]["environment"]["ZONAL_BUFFER"] == printed
