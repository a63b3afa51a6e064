"""The platform's processes, forked from one that has imported everything: each costs milliseconds.

Reads commands from standard input, a JSON list each, and answers each with one line: ``["fork",
…]`` with the new process's id, ``["wait", id]`` with its exit code. A forked process runs one of
``COMMANDS``. Where a file named ``wait-MOMENT`` lies in the bank's folder it halts at that moment,
inside its transaction, and makes a file ``waits-MOMENT``.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final

import django
from procrastinate.exceptions import AlreadyEnqueued

from tests.billing.kills.bank import request_payout, wait_at

# Small, so that few lines take many transactions.
PAGE_LINES: Final = 100
BATCH_LINES: Final = 150
TIMEOUT_S: Final = 180


def halting(module: str, name: str, moment: str, *, from_call: int = 1) -> None:
    """Make a function halt at its end, when its transaction is not committed yet.

    from_call: the first of its calls that does.
    """
    owner = importlib.import_module(module)
    real: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        done = real(*args, **kwargs)
        calls += 1
        if calls >= from_call:
            wait_at(moment)
        return done

    setattr(owner, name, run)


def prepare() -> None:
    """Import everything, and no connection to the database."""
    django.setup()
    from billing.usage import charges_and_shares, usage_import

    usage_import.PAGE_LINES = PAGE_LINES  # type: ignore[misc]  # smaller here
    charges_and_shares.BATCH_LINES = BATCH_LINES  # type: ignore[misc]  # smaller here
    charges_and_shares.settle_batch.__defaults__ = (BATCH_LINES,)
    # Not the first time: some of the work is committed.
    halting("billing.usage.usage_import", "store", "importing", from_call=2)
    halting("billing.usage.charges_and_shares", "_charge", "settling", from_call=2)
    # The last steps of the transactions that debit a payout, and that record its confirmation.
    halting("billing.payouts.requests", "_emit", "booking")


def command(*words: str) -> None:
    """Run a command of manage.py."""
    from django.core.management import call_command

    call_command(*words)


def queue_settling() -> None:
    """Have the task worker settle, as it does every five minutes."""
    from procrastinate.contrib.django import app

    # One that waits already will do.
    with contextlib.suppress(AlreadyEnqueued):
        app.configure_task("billing.tasks.settle", queueing_lock="billing_settle").defer(
            timestamp=0
        )


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "manage": command,
    "queue settling": queue_settling,
    "request payout": request_payout,
}


def fork(name: str, *words: str) -> int:
    """Run a command in a new process; return its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    # However a test ends, no process stays.
    signal.alarm(TIMEOUT_S)
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        COMMANDS[name](*words)
        code = 0
    except SystemExit as exc:
        code = int(exc.code or 0)
    except BaseException:  # noqa: BLE001 - the process ends with it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Serve commands until standard input ends."""
    prepare()
    for line in sys.stdin:
        verb, *words = json.loads(line)
        if verb == "fork":
            answer = fork(*words)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(words[0], 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
