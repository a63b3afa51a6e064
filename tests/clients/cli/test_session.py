"""Sign-in of the command, and where it keeps what it signed in with."""

import json
import re
import shlex
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from tests import cast
from tests.clients.cli.conftest import Run
from tests.clients.conftest import Platform
from tests.clients.front import Front
from tests.ports import free_port
from zonal.cli.arguments import parser

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/clients.md"


def kept(folder: Path) -> Path:
    """Return the file of credentials."""
    return folder / "config/zonal/credentials.json"


def test_a_session_is_kept_for_its_owner_alone(alice: Run, folder: Path, front: Front) -> None:
    shown = alice("whoami")
    assert "alice@example.com" in shown.out
    assert json.loads(alice("whoami", "--json").out)["roles"] == ["admin"]
    assert stat.S_IMODE(kept(folder).stat().st_mode) == 0o600
    assert stat.S_IMODE(kept(folder).parent.stat().st_mode) == 0o700
    assert alice("logout").status == 0
    assert "access_token" not in kept(folder).read_text()
    refused = alice("whoami")
    assert (refused.status, "zonal login" in refused.err) == (4, True)


def test_a_wrong_password_is_refused_without_a_trace(run: Run, front: Front, folder: Path) -> None:
    outcome = run(
        "login",
        "alice@example.com",
        "--url",
        front.url,
        "--password-stdin",
        stdin="a wrong sentence\n",
    )
    assert outcome.status == 4
    assert "invalid_credentials" in outcome.err
    assert "Traceback" not in outcome.err
    assert "a wrong sentence" not in outcome.err
    assert not kept(folder).exists()


def test_an_expired_session_is_refreshed_and_kept(
    alice: Run, folder: Path, front: Front, platform: Platform
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "ACCOUNTS", replace(settings.ACCOUNTS, access_ttl_s=-60))
        caller = cast.signed_in(platform.alice)
    data = json.loads(kept(folder).read_text())
    tokens = data["platforms"][front.url]["tokens"]
    tokens |= {"access_token": caller.access_token, "refresh_token": caller.refresh_token}
    kept(folder).write_text(json.dumps(data))
    front.seen.clear()
    for _ in range(2):
        assert alice("whoami").status == 0
    assert front.seen.count(("POST", "/v1/auth/refresh")) == 1
    assert stat.S_IMODE(kept(folder).stat().st_mode) == 0o600


def test_a_token_comes_from_the_input_or_the_environment(
    run: Run, front: Front, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = cast.signed_in(platform.alice).access_token
    stored = run("login", "--url", front.url, "--token-stdin", stdin=f"{token}\n")
    assert (stored.status, token in stored.out + stored.err) == (0, False)
    assert run("whoami").status == 0
    assert run("env", "use", "sandbox").status == 2
    assert run("logout").status == 0
    monkeypatch.setenv("ZONAL_URL", front.url)
    monkeypatch.setenv("ZONAL_TOKEN", token)
    assert run("whoami").status == 0


def test_a_session_goes_to_its_own_platform_only(alice: Run, front: Front) -> None:
    front.seen.clear()
    other = alice("whoami", "--url", front.url.replace("127.0.0.1", "localhost"))
    assert (other.status, front.seen) == (4, [])
    assert alice("whoami", "--url", "http://zonal.example.com").status == 2


def test_a_file_that_others_can_read_is_not_used(alice: Run, folder: Path) -> None:
    kept(folder).chmod(0o644)
    outcome = alice("whoami")
    assert (outcome.status, "chmod 600" in outcome.err) == (2, True)
    kept(folder).write_text("{")
    kept(folder).chmod(0o600)
    assert alice("whoami").status == 2
    shutil.rmtree(kept(folder).parent)


def test_exit_statuses_tell_the_kind_of_failure(alice: Run, folder: Path) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    assert alice("env", "delete", "nothing", "--yes").status == 1
    assert alice("nonsense").status == 2
    assert alice("env", "delete", "nothing").status == 2
    assert alice("login", "--token-stdin", "--url", gone, stdin="t\n").status == 3
    assert alice("login", "alice@example.com", "--url", gone).status == 2


def test_secrets_are_no_arguments(run: Run) -> None:
    for option in ("--password", "--token"):
        assert run("login", option, "secret").status == 2


def test_completion_knows_every_command(run: Run) -> None:
    bash = run("completion", "bash").out
    assert '"/cache/buckets") echo "--help list create delete"' in bash
    assert '"/keys/create") echo "--help --url --json --role --scope --days"' in bash
    fish = run("completion", "fish").out
    assert "complete -c zonal -f -n '__zonal_at cache buckets' -a 'list create delete'" in fish
    assert "complete -c zonal -n '__zonal_at keys create' -l scope" in fish
    assert run("completion", "zsh").out.startswith("autoload -U +X bashcompinit")


def test_the_documented_commands_are_commands() -> None:
    lines = re.findall(r"^ {4}(zonal .*)$", DOCUMENT.read_text(), re.MULTILINE)
    assert len(lines) > 10
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])
        assert parser().parse_args(words[1:]).run
