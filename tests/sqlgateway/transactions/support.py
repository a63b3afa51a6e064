"""A caller's transaction, and the process that owns it."""

from dataclasses import dataclass
from typing import Any

from tests.cast import Answer, Caller

PATH = "/v1/sql/transactions"


@dataclass
class Transaction:
    """An open transaction, whose statements are numbered as a client would."""

    caller: Caller
    id: str
    number: int = 0

    @property
    def path(self) -> str:
        """Its path."""
        return f"{PATH}/{self.id}"

    def run(self, query: str, params: list[Any] | None = None, **members: Any) -> Answer:
        """Send the next statement."""
        self.number += 1
        return self.send(self.number, query, params, **members)

    def send(
        self, number: int, query: str, params: list[Any] | None = None, **members: Any
    ) -> Answer:
        """Send a statement with a number."""
        body = {"number": number, "query": query, "params": params or [], **members}
        return self.caller.post(f"{self.path}/statements", body)

    def commit(self) -> Answer:
        """Commit."""
        return self.caller.post(f"{self.path}/commit")

    def roll_back(self) -> Answer:
        """Roll back."""
        return self.caller.call("DELETE", self.path)


def begin(caller: Caller, **members: Any) -> Transaction:
    """Open a transaction."""
    answer = caller.post(PATH, members)
    assert answer.status == 201, answer.body
    return Transaction(caller, answer.body["id"])


def sql(caller: Caller, query: str) -> list[Any]:
    """Run a text outside any transaction and return its rows."""
    answer = caller.post("/v1/sql", {"query": query, "rows": "arrays"})
    assert answer.status == 200, answer.body
    rows: list[Any] = answer.body["rows"]
    return rows
