/** What the compiler is to accept and to refuse; never run. */

import { Client, ProblemError } from "../src/index.js";
import type { Member, SqlAnswer, TokenStore } from "../src/index.js";

declare const client: Client;
declare const store: TokenStore;

export async function accepted(): Promise<void> {
  const answer = await client.sql.query<{ n: number }>("SELECT 1 AS n");
  const n: number | undefined = answer.rows[0]?.n;
  const whole: Pick<SqlAnswer, "row_count" | "truncated"> = answer;
  const rows = await client.sql.stream<{ id: string }>("SELECT id FROM items", [1]);
  for await (const row of rows) row.id.toUpperCase();
  const member: Member | undefined = (await client.members.list().next()).value as Member;
  const made: string = await client.sql.transaction(async (one) => (await one.query("")).command);
  new Client("https://zonal.example.com", { store, retries: { most: 0 } });
  void [n, whole, member, made];
}

export async function refused(): Promise<void> {
  const answer = await client.sql.query<{ n: number }>("SELECT 1 AS n");
  // @ts-expect-error No such column.
  void answer.rows[0]?.m;
  // @ts-expect-error A role that does not exist.
  await client.members.invite("bob@example.com", ["owner"]);
  // @ts-expect-error A scope that does not exist.
  await client.apiKeys.create("nightly", { role: "reader", scopes: ["sql:everything"] });
  // @ts-expect-error Values come as an array.
  await client.sql.query("SELECT $1", "a");
  // @ts-expect-error The status is a number.
  const status: string = new ProblemError(400, {}).status;
  void status;
}
