"""What is built of the TypeScript client, run by Node.js against a platform."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from tests import cast
from tests.clients.conftest import Platform
from tests.clients.front import Front
from tests.deploy.tools import program
from tests.twofactor.holder import with_totp
from tests.waiting import LIMIT_S

CLIENT = Path(__file__).resolve().parents[3] / "clients/typescript"
EMAIL = "alice@example.com"
PRINTED = "http://127.0.0.1:8000"
pytestmark = pytest.mark.slow


def node(*arguments: str, **variables: str) -> str:
    """Run Node.js; return what it printed."""
    done = subprocess.run(
        [program("node", package="nodejs"), *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=4 * LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expired(platform: Platform) -> dict[str, object]:
    """Return tokens of a new session, the access token of which has expired."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "ACCOUNTS", replace(settings.ACCOUNTS, access_ttl_s=-60))
        caller = cast.signed_in(platform.alice)
    pair = {"access_token": caller.access_token, "refresh_token": caller.refresh_token}
    return {**pair, "access_expires_at": 0, "refresh_expires_at": 0}


def test_the_client_works_against_a_platform(platform: Platform, front: Front) -> None:
    holder = with_totp(cast.member(platform.home, "ivan@example.com", password=cast.PASSWORD))
    given = {
        "url": front.url,
        "token": cast.signed_in(platform.alice).access_token,
        "email": EMAIL,
        "password": cast.PASSWORD,
        "expired": [expired(platform) for _ in range(3)],
        "codes": {
            "email": "ivan@example.com",
            "wrong": holder.wrong_code(),
            # The next one: as good as the present one, and longer.
            "right": holder.code(steps=1),
        },
    }
    tests = str(CLIENT / "tests/client.test.mjs")
    shown = node("--expose-gc", tests, ZONAL_TEST=json.dumps(given))
    assert "fail 0" in shown
    assert int(re.findall(r"pass (\d+)", shown)[-1]) > 15


def test_the_readmes_code_compiles_and_runs(platform: Platform, tmp_path: Path) -> None:
    cast.member(platform.home, "reader-of-readmes@example.com", password="a long sentence of yours")
    blocks = re.findall(r"```ts\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)
    text = "\n".join(blocks).replace(PRINTED, platform.url)
    text = text.replace("you@example.com", "reader-of-readmes@example.com")
    (tmp_path / "readme.ts").write_text(text)
    (tmp_path / "node_modules").mkdir()
    # As npm installs a folder.
    (tmp_path / "node_modules/zonal").symlink_to(CLIENT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    own = CLIENT / "node_modules/.bin/tsc"
    tsc = str(own) if own.exists() else program("tsc", package="node-typescript")

    def compiled(*arguments: str) -> str:
        done = subprocess.run(
            [tsc, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    major, minor, *_ = map(int, re.findall(r"\d+", compiled("--version")))
    older = ["--module", "nodenext", "--target", "es2022"]
    compiled("--init", *(older if (major, minor) < (5, 9) else []))
    compiled()
    shown = node(str(tmp_path / "readme.js"))
    assert shown.startswith('[{"id":1,"name":"first"}]\n5000050000 100000\n')
    assert "42P01 1 15\n" in shown
    assert shown.endswith("sandbox\n")
