"""The tests of `make test-scale`, and the figures that they write."""

import os
from collections.abc import Sequence

import pytest

from tests.scale.figures import FIGURES, Figures

collect_ignore_glob = [] if os.environ.get("TEST_SCALE") else ["test_*.py"]


@pytest.fixture(scope="session")
def figures() -> Figures:
    """Return the figures of this run."""
    return FIGURES


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note that this run is not a whole one."""
    FIGURES.is_whole = FIGURES.is_whole and not items


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the page after a run of all these tests in which none failed."""
    is_part = any("::" in word for word in session.config.args)
    FIGURES.modules = {item.path.name for item in session.items}
    if exitstatus == 0 and not is_part:
        FIGURES.write()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures of any run."""
    terminalreporter.write(FIGURES.tables())
