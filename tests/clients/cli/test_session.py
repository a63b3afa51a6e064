"""Sign-in of the command, and where it keeps what it signed in with."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from tests import cast
from tests.clients.cli.conftest import Run
from tests.clients.conftest import Platform
from tests.clients.front import Front
from tests.ports import free_port

pytestmark = pytest.mark.slow

PACKAGE = str(Path(__file__).resolve().parents[3] / "clients/python")


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


def test_a_shell_completes_commands_options_values_and_files(tmp_path: Path) -> None:
    program = tmp_path / "zonal"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zonal "$@"\n')
    program.chmod(0o755)
    (tmp_path / "rows.csv").touch()
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": PACKAGE}

    def completed(*words: str) -> list[str]:
        typed = shlex.join(["zonal", *words])
        script = f"""eval "$(zonal completion bash)"
            COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _zonal_completion zonal
            printf '%s\\n' "${{COMPREPLY[@]}}" """
        command = ["bash", "--norc", "-c", script]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert completed("cache", "b") == ["buckets"]
    assert completed("cache", "buckets", "") == ["list", "create", "delete"]
    assert completed("members", "set", "a@example.com", "--role", "") == [
        "admin",
        "operator",
        "reader",
    ]
    options = completed("keys", "create", "--")
    assert {"--url", "--json", "--role", "--scope", "--days", "--help"} <= {*options}


def test_each_shell_has_a_script(run: Run) -> None:
    for shell, line in (
        ("bash", "complete -o nosort -F _zonal_completion zonal"),
        ("zsh", "#compdef zonal"),
        ("fish", "complete --no-files --command zonal"),
    ):
        assert line in run("completion", shell).out
    assert run("completion", "tcsh").status == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("login", "--token-stdin", "--no-browser"),
        ("members", "set", "a@example.com", "--disable", "--enable"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    run: Run, arguments: tuple[str, ...]
) -> None:
    refused = run(*arguments)
    assert (refused.status, "exclude each other" in refused.err) == (2, True)


@pytest.mark.parametrize("arguments", [["--version"], ["sql", "--help"], ["completion", "zsh"]])
def test_what_needs_no_platform_starts_without_its_libraries(arguments: list[str]) -> None:
    script = (
        "import sys; from zonal.cli.main import main; main(sys.argv[1:]);"
        "slow = {'httpx', 'rich', 'prompt_toolkit', 'pygments', 'asyncio', 'http.server'};"
        "sys.exit(str(slow & {*sys.modules}) if slow & {*sys.modules} else 0)"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
