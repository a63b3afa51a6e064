"""The statements that a piece of code sent, in a form that two runs can be compared by."""

import re

from django.test.utils import CaptureQueriesContext

# Values, and names of savepoints, which Django makes of the thread's number and a counter.
VALUES = re.compile(
    r"""'(?:[^']|'')*'(?:::\w+)?|"s\d+_x\d+"|\b(?:NULL|true|false)\b|(?<![\w$"])-?\d+(?:\.\d+)?\b"""
)


def statements(captured: CaptureQueriesContext) -> list[str]:
    """Return the statements in their order, each value and savepoint's name as ``?``."""
    return [VALUES.sub("?", query["sql"]) for query in captured.captured_queries]
