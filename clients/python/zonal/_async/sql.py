"""SQL over HTTP: queries, streams of rows, transactions."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, Optional, Union
from urllib.parse import quote

from zonal import types
from zonal._async.rows import AsyncRows, pieces
from zonal._async.transport import AsyncTransport, Call
from zonal.bodies import Parameters, given, parameters
from zonal.decoding import decode
from zonal.errors import ProblemError, ZonalError
from zonal.files import Source
from zonal.numbers import Json, Numeric, chosen, has_decimals, restore_floats
from zonal.types import Import, Schema, SqlAnswer, Usage

Isolation = Literal["read committed", "repeatable read", "serializable"]
# A text alone, or a text with the values of $1, $2 and so on.
Statement = Union[str, tuple[str, Sequence[Any]]]
PATH = "/v1/sql"
OVER = f"{PATH}/transactions"
# The platform ends one after ten minutes by itself.
IMPORT_TIMEOUT_S = 660.0


class AsyncSql:
    """The database of the session's environment."""

    def __init__(self, transport: AsyncTransport) -> None:
        """Send through a transport."""
        self._transport = transport

    async def query(
        self,
        query: str,
        params: Optional[Sequence[Any]] = None,
        *,
        rows: Literal["objects", "arrays"] = "objects",
        read_only: bool = False,
        isolation: Optional[Isolation] = None,
        timeout_ms: Optional[int] = None,
        max_rows: Optional[int] = None,
        numeric: Optional[Numeric] = None,
        json: Json = "string",
        explain: Union[bool, Literal["analyze"], None] = None,
        idempotency_key: Optional[str] = None,
        request_id: Optional[str] = None,
    ) -> SqlAnswer:
        """Run a text and return its result.

        params: the values of ``$1``, ``$2`` …; the text holds one statement then. json: as
        PostgreSQL's text, or parsed into dicts, lists, Decimals and so on. numeric: as text, or as
        ints and Decimals. idempotency_key: a write with one happens once, so it is repeated when
        its answer is lost. request_id: what ``cancel`` takes.
        """
        body = {
            "query": query,
            "rows": rows,
            **given(
                params=_values(params),
                read_only=read_only or None,
                isolation=isolation,
                timeout_ms=timeout_ms,
                max_rows=max_rows,
                explain=explain,
            ),
            **chosen(json, numeric),
        }
        return await self._run(body, idempotency_key, request_id, has_decimals(json, numeric))

    async def batch(
        self,
        statements: Sequence[Statement],
        *,
        rows: Literal["objects", "arrays"] = "objects",
        read_only: bool = False,
        isolation: Optional[Isolation] = None,
        timeout_ms: Optional[int] = None,
        json: Json = "string",
        idempotency_key: Optional[str] = None,
    ) -> SqlAnswer:
        """Run statements as one transaction; ``results`` of the answer has one for each."""
        body = {
            "queries": [_statement(each, at) for at, each in enumerate(statements, 1)],
            "rows": rows,
            **given(read_only=read_only or None, isolation=isolation, timeout_ms=timeout_ms),
            **chosen(json),
        }
        return await self._run(body, idempotency_key, None, has_decimals(json))

    @asynccontextmanager
    async def stream(
        self,
        query: str,
        params: Optional[Sequence[Any]] = None,
        *,
        read_only: bool = False,
        timeout_ms: Optional[int] = None,
        numeric: Optional[Numeric] = None,
        json: Json = "string",
        request_id: Optional[str] = None,
    ) -> AsyncIterator[AsyncRows]:
        """Run one statement and yield its rows as they come, without a cap, in constant memory.

        Leaving the block ends the statement if it still runs.
        """
        body = {
            "query": query,
            "format": "ndjson",
            # In arrays no column's name can be taken for the record of an error or of the end.
            "rows": "arrays",
            **given(
                params=_values(params),
                read_only=read_only or None,
                timeout_ms=timeout_ms,
            ),
            **chosen(json, numeric),
        }
        headers = {"Accept": "application/x-ndjson", **_named(None, request_id)}
        call = Call("POST", "/v1/sql", body, headers=headers, is_repeatable=read_only)
        response = await self._transport.send(call, is_stream=True)
        try:
            yield await AsyncRows.opened(response, has_decimals=has_decimals(json, numeric))
        finally:
            await response.aclose()

    @asynccontextmanager
    async def export(
        self,
        query: str,
        params: Optional[Sequence[Any]] = None,
        *,
        file_format: Literal["csv", "arrow"] = "csv",
        read_only: bool = False,
        timeout_ms: Optional[int] = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Run one statement and yield the pieces of its result as a file, in constant memory.

        Raises StreamCutError if it was cut, within the iteration.
        """
        body = {
            "query": query,
            "format": file_format,
            **given(params=_values(params), read_only=read_only or None, timeout_ms=timeout_ms),
        }
        headers = {"Accept": "*/*"}
        call = Call("POST", "/v1/sql", body, headers=headers, is_repeatable=read_only)
        response = await self._transport.send(call, is_stream=True)
        try:
            yield pieces(response)
        finally:
            await response.aclose()

    async def import_csv(
        self,
        table: str,
        source: Source,
        *,
        columns: Optional[Sequence[str]] = None,
        skip: Optional[Sequence[str]] = None,
        header: Union[bool, Literal["match"]] = "match",
        delimiter: Literal[",", ";", "\t", "|"] = ",",
        is_gzip: bool = False,
        on_sent: Optional[Callable[[int], None]] = None,
    ) -> Import:
        """Put the rows of a CSV file into a table: all of them, or none.

        table: as in SQL, such as ``items`` or ``public."Line items"``. source: a ``Path``, or the
        text in bytes. columns: of the body, in its order; the table's without them. skip: columns
        of the body that are not imported. header: whether the first line names the columns
        (``match``), is skipped (True) or is a row (False). on_sent: called with the number of bytes
        sent so far, less again if all are sent again.
        """
        headers = {"Content-Type": "text/csv"}
        if is_gzip:
            headers["Content-Encoding"] = "gzip"
        params = {
            "table": table,
            "header": header if header == "match" else str(header).lower(),
            "delimiter": delimiter,
            **given(columns=_identifiers(columns), skip=_identifiers(skip)),
        }
        call = Call(
            "POST",
            f"{PATH}/import",
            params=params,
            headers=headers,
            content=source,
            timeout_s=IMPORT_TIMEOUT_S,
            on_sent=on_sent,
        )
        return decode(Import, await self._transport.call(call))

    @asynccontextmanager
    async def transaction(
        self, *, isolation: Optional[Isolation] = None, read_only: bool = False
    ) -> AsyncIterator["AsyncTransaction"]:
        """Begin a transaction, commit it after the block, roll it back after an exception."""
        body = given(isolation=isolation, read_only=read_only or None)
        begun = decode(types.Transaction, await self._transport.call(Call("POST", OVER, body)))
        opened = AsyncTransaction(self._transport, begun.id)
        try:
            yield opened
        except BaseException:
            # Nothing may hide the first error; the platform rolls back by itself after seconds.
            with suppress(ZonalError):
                await opened.rollback()
            raise
        if not opened.is_over:
            await opened.commit()

    async def schema(self, schema: Optional[str] = None) -> Schema:
        """Return what the caller's role may see of the database."""
        call = Call("GET", "/v1/sql/schema", params=given(schema=schema))
        return decode(Schema, await self._transport.call(call))

    async def usage(self) -> Usage:
        """Return what the environment uses of its disk and what the other limits are."""
        return decode(Usage, await self._transport.call(Call("GET", "/v1/sql/usage")))

    async def cancel(self, request_id: str) -> None:
        """Cancel a running request by the id that it was sent with."""
        await self._transport.call(Call("DELETE", f"/v1/sql/{quote(request_id, safe='')}"))

    async def _run(
        self,
        body: dict[str, Any],
        idempotency_key: Optional[str],
        request_id: Optional[str],
        is_exact: bool,
    ) -> SqlAnswer:
        call = Call(
            "POST",
            "/v1/sql",
            body,
            headers=_named(idempotency_key, request_id),
            is_repeatable=idempotency_key is not None or "read_only" in body,
            has_decimals=is_exact,
        )
        return restore_floats(decode(SqlAnswer, await self._transport.call(call)))


class AsyncTransaction:
    """An open transaction; its statements are numbered, so one with a lost answer runs once."""

    def __init__(self, transport: AsyncTransport, transaction_id: str) -> None:
        """Go on with a transaction that has begun."""
        self._transport = transport
        self.id = transaction_id
        self.is_over = False
        self._number = 0
        self._is_number_certain = True

    async def query(
        self,
        query: str,
        params: Optional[Sequence[Any]] = None,
        *,
        rows: Literal["objects", "arrays"] = "objects",
        timeout_ms: Optional[int] = None,
        max_rows: Optional[int] = None,
        numeric: Optional[Numeric] = None,
        json: Json = "string",
    ) -> SqlAnswer:
        """Run the next statement."""
        body = {
            "query": query,
            "rows": rows,
            **given(
                params=_values(params),
                timeout_ms=timeout_ms,
                max_rows=max_rows,
            ),
            **chosen(json, numeric),
        }
        is_exact = has_decimals(json, numeric)
        self._number += 1
        try:
            answer = await self._statement(body, is_exact)
        except ProblemError as problem:
            expected = problem.body.get("expected")
            if problem.code != "statement_out_of_order" or self._is_number_certain or not expected:
                self._is_number_certain = False
                raise
            # An earlier statement was refused before it got its number; nothing ran of this one.
            self._number = expected
            answer = await self._statement(body, is_exact)
        except (TypeError, ValueError):
            # Nothing was sent: the text is none.
            self._number -= 1
            raise
        self._is_number_certain = True
        return answer

    async def commit(self) -> None:
        """Commit; the request is repeated until the platform says what happened."""
        await self._transport.call(Call("POST", f"{OVER}/{self.id}/commit", is_repeatable=True))
        self.is_over = True

    async def rollback(self) -> None:
        """Roll back."""
        self.is_over = True
        await self._transport.call(Call("DELETE", f"{OVER}/{self.id}"))

    async def _statement(self, body: dict[str, Any], is_exact: bool) -> SqlAnswer:
        numbered = {**body, "number": self._number}
        path = f"{OVER}/{self.id}/statements"
        call = Call("POST", path, numbered, is_repeatable=True, has_decimals=is_exact)
        return restore_floats(decode(SqlAnswer, await self._transport.call(call)))


def _identifiers(names: Optional[Sequence[str]]) -> Optional[str]:
    """Return names of columns as SQL quotes them, so that they are taken as they are."""
    if names is None:
        return None
    return ",".join('"' + name.replace('"', '""') + '"' for name in names)


def _values(params: Optional[Sequence[Any]]) -> Optional[Parameters]:
    return None if params is None else parameters(params)


def _statement(statement: Statement, at: int) -> dict[str, Any]:
    if isinstance(statement, str):
        return {"query": statement}
    query, params = statement
    return {"query": query, "params": parameters(params, statement=at)}


def _named(idempotency_key: Optional[str], request_id: Optional[str]) -> dict[str, str]:
    named = {"Idempotency-Key": idempotency_key, "X-Request-Id": request_id}
    return {name: value for name, value in named.items() if value is not None}
