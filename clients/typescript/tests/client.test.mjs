/**
 * The client against a running platform behind a proxy with faults (tests/clients/front.py), which
 * `tests/clients/typescript` of the platform starts. Runs what is built: dist/.
 */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { runInNewContext } from "node:vm";

import {
  AuthenticationError,
  Client,
  ConnectionFailedError,
  MemoryStore,
  NotFoundError,
  ProblemError,
  RateLimitError,
  SecondFactorRequiredError,
  ServerError,
  SqlError,
  StreamCutError,
  UnexpectedAnswerError,
  UnreadableAnswerError,
  ValueError,
  ZonalError,
} from "../dist/index.js";

const { url, token, email, password, expired, codes } = JSON.parse(process.env.ZONAL_TEST);
const retries = { firstPauseS: 0.001 };
const client = new Client(url, { token, retries });

async function front(path) {
  return (await fetch(`${url}/_front/${path}`, { method: "POST" })).json();
}

const refuse = (status, code, after) => front(`refuse/${status}/${code}/${after ?? ""}`);
const count = (seen, path) => seen.filter((each) => each === path).length;

async function listed(generator) {
  const found = [];
  for await (const each of generator) found.push(each);
  return found;
}

beforeEach(() => front("reset"));

test("a query returns rows and takes values", async () => {
  const values = [41, 2n ** 60n, new Date(0), new Uint8Array([0, 255]), [1, 2], { a: null }, null];
  const answer = await client.sql.query(
    "SELECT $1::int + 1 AS n, $2::int8, $3::timestamptz AS at, $4::bytea, $5::int[] AS list, " +
      "$6::jsonb, $7::text",
    values,
  );
  assert.deepEqual(answer.rows, [
    {
      n: 42,
      int8: "1152921504606846976",
      at: "1970-01-01T00:00:00+00:00",
      bytea: "\\x00ff",
      list: [1, 2],
      jsonb: '{"a": null}',
      text: null,
    },
  ]);
  assert.equal(answer.row_count, 1);
  await assert.rejects(client.sql.query("SELECT $1::float", [NaN]), /no JSON/);
});

test("bytes of every sort are sent as bytes", async () => {
  const bytes = new Uint8Array([9, 0, 255, 9]);
  const sorts = [
    Buffer.from([0, 255]),
    bytes.slice(1, 3).buffer,
    new DataView(bytes.buffer, 1, 2),
    bytes.subarray(1, 3),
    new Uint8ClampedArray([0, 255]),
    new Int8Array([0, -1]),
    new Uint16Array(new Uint8Array([0, 255]).buffer),
    runInNewContext("new Uint8Array([0, 255])"),
    runInNewContext("new Uint8Array([0, 255]).buffer"),
  ];
  for (const sort of sorts) {
    const { rows } = await client.sql.query("SELECT $1::bytea AS v", [sort]);
    assert.deepEqual(rows, [{ v: "\\x00ff" }]);
  }
  const { rows } = await client.sql.query("SELECT $1::bytea[] AS v", [[sorts[0], null, sorts[1]]]);
  assert.deepEqual(rows, [{ v: ["\\x00ff", null, "\\x00ff"] }]);
});

test("numbers and dates are stored as they are", async () => {
  const cases = [
    ["int8", 2n ** 63n - 1n, "9223372036854775807"],
    ["numeric", 2n ** 70n, "1180591620717411303424"],
    ["jsonb", 2n ** 70n, "1180591620717411303424"],
    ["int8[]", [-(2n ** 63n), 1n, 7], "{-9223372036854775808,1,7}"],
    ["jsonb", [2n ** 60n, { n: 2n ** 60n }], '[1152921504606846976, {"n": 1152921504606846976}]'],
    ["int8", 2 ** 60, "1152921504606846976"],
    ["float8", 1e300, "1e+300"],
    ["float8", -0, "-0"],
    ["float8[]", [-0, 0.1], "{-0,0.1}"],
    ["int4", -0, "0"],
    ["timestamptz", new Date(Date.UTC(9999, 11, 31)), "9999-12-31 00:00:00+00"],
    ["timestamptz", runInNewContext("new Date(0)"), "1970-01-01 00:00:00+00"],
    ["jsonb", { at: new Date(0), left: undefined }, '{"at": "1970-01-01T00:00:00.000Z"}'],
    ["jsonb", runInNewContext("({ a: [null] })"), '{"a": [null]}'],
    ["jsonb", Object.assign(Object.create(null), { a: 1 }), '{"a": 1}'],
    ["text", "\u{1F525}", "\u{1F525}"],
  ];
  for (const [type, value, text] of cases) {
    const { rows } = await client.sql.query(`SELECT $1::${type}::text AS v`, [value]);
    assert.deepEqual(rows, [{ v: text }], `${type} ${text}`);
  }
});

class Money {
  toJSON() {
    return 1;
  }
}

test("what SQL and JSON do not have is refused before anything is sent", async () => {
  const self = [];
  self.push(self);
  const alone = [undefined, () => 1, Symbol("a"), NaN, Infinity, new Date(NaN), self, "\ud83d"];
  alone.push(new Date("+012026-01-01"), new Date(-62135596800001), new Map(), new Set(["a"]));
  alone.push(new Number(1), new String("a"), new Boolean(false), Object(1n), new Money(), /a/);
  alone.push(new URL("http://a.example"), new Error("a"), new Blob(["a"]), Promise.resolve(1));
  alone.push({ [Symbol("a")]: 1 }, { "\udc00": 1 }, { toJSON: () => 1 }, new WeakMap(), [, 1]);
  const inside = [...alone.slice(1), Buffer.from([1]), new Uint8Array([1]).buffer, 2n ** 64n];
  await front("reset");
  for (const value of [...alone, ...alone.map((each) => [1, each]), ...inside.map((a) => ({ a }))]) {
    const named = (error) => error instanceof ValueError && /^Parameter \$2\b/.test(error.message);
    await assert.rejects(client.sql.query("SELECT $1, $2", [1, value]), named);
    await assert.rejects(client.sql.stream("SELECT $1, $2", [1, value]), named);
    await assert.rejects(client.sql.export("SELECT $1, $2", [1, value]), named);
  }
  await assert.rejects(client.sql.query("SELECT 1", new Set([1])), /array of values/);
  await assert.rejects(client.sql.query("SELECT $1", [{ a: [new Map()] }]), /\$1\.a\[0\]: .*Map/);
  await assert.rejects(
    client.sql.batch(["SELECT 1", { query: "SELECT $1", params: [[new Set()]] }]),
    /^ValueError: Statement 2, parameter \$1\[0\]: an object of the class Set cannot be sent/,
  );
  await assert.rejects(client.sql.importCsv("t", "\ud83d"), ValueError);
  await assert.rejects(client.request("POST", "/v1/members", { body: { a: new Map() } }), ValueError);
  assert.deepEqual(await front("seen"), []);
});

test("a refused value takes no number of a transaction's statements", async () => {
  const answer = await client.sql.transaction(async (transaction) => {
    await assert.rejects(transaction.query("SELECT $1", [new Map()]), ValueError);
    return transaction.query("SELECT 1 AS n");
  });
  assert.deepEqual(answer.rows, [{ n: 1 }]);
});

const parsed = { json: "parsed" };

test("json is its text unless it is to be parsed", async () => {
  const text = '{"b": 1.10, "a": 2, "a": 9007199254740993, "c": 1e400}';
  const query = `SELECT '${text}'::json AS v, 'null'::jsonb AS n, NULL::jsonb AS w`;
  const expected = [{ v: text, n: "null", w: null }];
  assert.deepEqual((await client.sql.query(query)).rows, expected);
  assert.deepEqual((await client.sql.batch(["SELECT 1", query])).results[1].rows, expected);
  assert.deepEqual(await listed(await client.sql.stream(query)), expected);
  const inside = await client.sql.transaction((transaction) => transaction.query(query));
  assert.deepEqual(inside.rows, expected);
  await assert.rejects(client.sql.query(query, [], { json: "value" }), ValueError);
});

test("parsed json has the numbers that were stored, or their text", async () => {
  const query =
    `SELECT '[9007199254740993, 1e400, 0.12345678901234567890, 1.10, 1e2, "9007199254740993"]'::json v,` +
    `'null'::jsonb n, NULL::jsonb w, ARRAY['{"a": 1}', NULL]::jsonb[] AS l, '{}' AS t`;
  const list = ["9007199254740993", "1e400", "0.12345678901234567890", 1.1, 100];
  list.push("9007199254740993");
  const expected = [{ v: list, n: null, w: null, l: [{ a: 1 }, null], t: "{}" }];
  assert.deepEqual((await client.sql.query(query, [], parsed)).rows, expected);
  assert.deepEqual((await client.sql.batch(["SELECT 1", query], parsed)).results[1].rows, expected);
  assert.deepEqual(await listed(await client.sql.stream(query, [], parsed)), expected);
  const inside = await client.sql.transaction((one) => one.query(query, [], parsed));
  assert.deepEqual(inside.rows, expected);
  const floats = "SELECT 5e-324::float8 a, 0.1::float4 b, 0.30000000000000004::float8 c";
  assert.deepEqual((await client.sql.query(floats)).rows, [{ a: 5e-324, b: 0.1, c: 0.30000000000000004 }]);
});

test("a repeated key is an error that says so", async () => {
  const query = `SELECT '{"a": {"x": 1, "\\u0078": 2}}'::json AS v`;
  await assert.rejects(client.sql.query(query, [], parsed), UnreadableAnswerError);
  const streamed = async () => listed(await client.sql.stream(query, [], parsed));
  await assert.rejects(streamed, UnreadableAnswerError);
});

test("an answer that was cut or cannot be held is no other error", async () => {
  await front("cut/20");
  await assert.rejects(client.sql.query("SELECT 1"), ConnectionFailedError);
  const full = async (...request) => {
    const response = await fetch(...request);
    response.text = () => Promise.reject(new RangeError("Invalid string length"));
    return response;
  };
  const one = new Client(url, { token, retries, fetch: full });
  await assert.rejects(one.sql.query("SELECT 1"), UnreadableAnswerError);
});

test("a batch is one transaction", async () => {
  const answer = await client.sql.batch([
    "CREATE TABLE ts_batched (id int)",
    { query: "SELECT $1::int AS n", params: [7] },
  ]);
  assert.deepEqual(answer.results.map((each) => each.command), ["CREATE TABLE", "SELECT"]);
});

test("an error of PostgreSQL says where and what", async () => {
  const error = await client.sql.query("SELECT 1,\n  nothing FROM missing").catch((each) => each);
  assert.ok(error instanceof SqlError && error instanceof ProblemError);
  assert.deepEqual([error.status, error.code, error.sqlstate], [400, "sql_error", "42P01"]);
  assert.deepEqual([error.line, error.column], [2, 16]);
  assert.ok(error.message.includes(error.requestId) && error.requestId !== "");
  assert.equal(error.name, "SqlError");
});

test("a stream has all rows in constant memory", async () => {
  const query = "SELECT n, repeat('x', 1000) AS text FROM generate_series(1, $1::int) n";
  const rows = await client.sql.stream(query, [20_000]);
  assert.deepEqual(rows.columns.map((column) => column.name), ["n", "text"]);
  let seen = 0;
  let most = 0;
  for await (const row of rows) {
    assert.equal(row.n, ++seen);
    if (seen % 4_000 === 0) {
      globalThis.gc();
      most = Math.max(most, process.memoryUsage().heapUsed);
    }
  }
  assert.equal(rows.end.row_count, 20_000);
  // The rows are 20 MB of text.
  assert.ok(most < 16_000_000, `${most} bytes`);
});

test("rows that look like other records are rows", async () => {
  const query = "SELECT 1 AS error, 2 AS \"end\", 3 AS \"end\", E'a\\u2028b\\x0bc' AS line";
  const rows = await listed(await client.sql.stream(query));
  assert.deepEqual(rows, [{ error: 1, end: 2, end_2: 3, line: "a\u2028b\x0bc" }]);
  assert.deepEqual(await listed((await client.sql.stream(query)).arrays()), [
    [1, 2, 3, "a\u2028b\x0bc"],
  ]);
});

test("an error within a stream is thrown after its rows", async () => {
  const late = "SELECT repeat('x', 1000), 1 / (3000 - n) FROM generate_series(1, 3000) n";
  const rows = await client.sql.stream(late);
  let seen = 0;
  const reading = async () => {
    for await (const _row of rows) seen++;
  };
  await assert.rejects(reading(), (error) => error instanceof SqlError && error.sqlstate === "22012");
  assert.ok(seen > 0 && seen < 3000);
  await assert.rejects(client.sql.stream("SELECT 1/0"), SqlError);
});

test("a stream that was cut is not taken for complete", async () => {
  await front("cut/20000");
  const rows = await client.sql.stream("SELECT repeat('x', 100) FROM generate_series(1, 5000)");
  await assert.rejects(listed(rows), StreamCutError);
  assert.equal(rows.end, undefined);
});

test("a stream may be left early, and results exported", async () => {
  const rows = await client.sql.stream("SELECT n FROM generate_series(1, 100000) n");
  for await (const row of rows) if (row.n === 3) break;
  await (await client.sql.stream("SELECT 1")).close();
  const decoder = new TextDecoder();
  let csv = "";
  for await (const piece of await client.sql.export("SELECT 1 AS a, 'x,y' AS b")) {
    csv += decoder.decode(piece, { stream: true });
  }
  assert.equal(csv, 'a,b\n1,"x,y"\n');
});

test("a file is imported whole or not at all", async () => {
  await client.sql.query('CREATE TABLE ts_imported (id int PRIMARY KEY, "a ""b" text)');
  const options = { columns: ["id", 'a "b'], header: false };
  await refuse(503, "busy", "0");
  const done = await client.sql.importCsv("ts_imported", "1,x\n2,y\n", options);
  assert.equal(done.row_count, 2);
  const body = new Blob(["3;z\n1;z\n"]);
  await assert.rejects(
    client.sql.importCsv("ts_imported", body, { ...options, delimiter: ";" }),
    (error) => error instanceof SqlError && error.sqlstate === "23505",
  );
  const counted = await client.sql.query("SELECT count(*) FROM ts_imported");
  assert.deepEqual(counted.rows, [{ count: 2 }]);
  await client.sql.query("DROP TABLE ts_imported");
});

test("a transaction is committed or rolled back, and a lost statement runs once", async () => {
  await client.sql.query("CREATE TABLE ts_items (id int)");
  const count = await client.sql.transaction(
    async (transaction) => {
      await front("lose");
      await transaction.query("INSERT INTO ts_items VALUES ($1)", [1]);
      await refuse(400, "invalid_request");
      await assert.rejects(transaction.query("INSERT INTO ts_items VALUES (2)"), ProblemError);
      const answer = await transaction.query("SELECT count(*)::int AS n FROM ts_items");
      await front("lose");
      return answer.rows[0].n;
    },
    { isolation: "serializable" },
  );
  assert.equal(count, 1);
  const failing = client.sql.transaction(async (transaction) => {
    await transaction.query("INSERT INTO ts_items VALUES (3)");
    throw new RangeError("mine");
  });
  await assert.rejects(failing, RangeError);
  assert.deepEqual((await client.sql.query("SELECT id FROM ts_items")).rows, [{ id: 1 }]);
});

test("what the platform did not run is sent again, some times", async () => {
  await client.sql.query("CREATE TABLE ts_written (n int)");
  await refuse(429, "too_many_queries", 0);
  await refuse(503, "sql_busy", 0);
  await client.sql.query("INSERT INTO ts_written VALUES (1)");
  assert.deepEqual((await client.sql.query("SELECT n FROM ts_written")).rows, [{ n: 1 }]);
  await refuse(503, "sql_busy", 0);
  assert.equal((await listed(await client.sql.stream("SELECT n FROM ts_written"))).length, 1);
  await front("reset");
  for (let time = 0; time < 5; time++) await refuse(429, "too_many_requests", 0);
  await assert.rejects(client.whoami(), RateLimitError);
  assert.equal((await front("seen")).length, 4);
});

test("a long pause is left to the caller", async () => {
  await refuse(429, "too_many_requests", 3600);
  await assert.rejects(client.whoami(), (error) => error.retryAfterS === 3600 && error.isRetryable);
});

test("a write whose answer was lost is repeated with a key only", async () => {
  await client.sql.query("CREATE TABLE ts_lost (n int)");
  await front("lose");
  await assert.rejects(client.sql.query("INSERT INTO ts_lost VALUES (1)"), ConnectionFailedError);
  await front("answer/503/0");
  await assert.rejects(
    client.sql.query("INSERT INTO ts_lost VALUES (2)"),
    (error) => error instanceof ServerError && error.code === "http_503",
  );
  await front("lose");
  const idempotencyKey = "ts-once";
  await client.sql.query("INSERT INTO ts_lost VALUES (3)", [], { idempotencyKey });
  const { rows } = await client.sql.query("SELECT n FROM ts_lost ORDER BY n");
  assert.deepEqual(rows, [{ n: 1 }, { n: 3 }]);
  await front("lose");
  assert.deepEqual((await client.sql.query("SELECT 1 AS n", [], { readOnly: true })).rows, [{ n: 1 }]);
});

test("a password signs in to an environment and out again", async () => {
  const one = new Client(url);
  await one.signIn(email, password, { environment: "sandbox" });
  assert.equal((await one.whoami()).environment.id, "sandbox");
  await one.switch("live");
  assert.equal((await one.whoami()).environment.id, "live");
  assert.deepEqual((await one.permissions()).roles, ["admin"]);
  await one.signOut();
  await assert.rejects(one.whoami(), AuthenticationError);
  await assert.rejects(one.signOut(), ZonalError);
  await assert.rejects(one.signIn(email, "wrong"), /invalid_credentials/);
});

test("a second factor is asked for", async () => {
  const one = new Client(url);
  await assert.rejects(one.signIn(codes.email, password), SecondFactorRequiredError);
  const left = [codes.wrong, codes.right];
  const asked = [];
  const secondFactor = (challenge) => {
    asked.push(challenge.method);
    return left.shift();
  };
  await one.signIn(codes.email, password, { secondFactor, method: "totp", attempts: 2 });
  assert.deepEqual(asked, ["totp", "totp"]);
  assert.equal((await one.whoami()).aal, 2);
});

test("an expired token is refreshed once for all that wait", async () => {
  const kept = [];
  const store = new MemoryStore(expired[0], (tokens) => void kept.push(tokens));
  const one = new Client(url, { store, retries });
  const found = await Promise.all(Array.from({ length: 8 }, () => one.whoami()));
  assert.deepEqual(new Set(found.map((each) => each.email)), new Set([email]));
  assert.equal(count(await front("seen"), "POST /v1/auth/refresh"), 1);
  assert.deepEqual(kept, [store.load()]);
  assert.equal((await new Client(url, { store }).whoami()).email, email);
});

test("a refresh whose answer was lost is repeated, and an ended session is not", async () => {
  await refuse(401, "token_expired");
  await front("lose");
  const store = new MemoryStore(expired[1]);
  const one = new Client(url, { store, retries });
  assert.deepEqual((await one.sql.query("SELECT 1 AS n")).rows, [{ n: 1 }]);
  assert.equal(count(await front("seen"), "POST /v1/auth/refresh"), 2);
  await one.signOut();
  const ended = new Client(url, { store: new MemoryStore(expired[1]), retries });
  await assert.rejects(ended.whoami(), AuthenticationError);
});

test("a session that another process has refreshed or switched goes on", async () => {
  const shared = new MemoryStore(expired[2]);
  const [one, other] = [0, 1].map(() => new Client(url, { store: shared, retries }));
  for (let refreshes = 0; refreshes < 3; refreshes += 1) {
    await other.whoami();
    await refuse(401, "token_expired");
  }
  await other.whoami();
  const before = shared.load();
  await one.switch("sandbox");
  assert.equal((await other.whoami()).environment.id, "sandbox");
  const stored = [before, before, shared.load()];
  const store = { load: () => stored.shift(), save: () => {} };
  const late = new Client(url, { store, retries });
  await refuse(401, "token_expired");
  assert.equal((await late.whoami()).environment.id, "sandbox");
  await one.signOut();
  await assert.rejects(other.whoami(), AuthenticationError);
});

test("resources are typed, paged and escaped", async () => {
  assert.deepEqual((await listed(client.environments.list())).map((each) => each.id), ["live", "sandbox"]);
  await assert.rejects(client.environments.get("a/b"), NotFoundError);
  const bucket = await client.buckets.create("ts-files", { isPublic: true });
  const upload = await client.buckets.uploadUrl(bucket.name, "a b/ü.txt");
  const put = await fetch(upload.urls[0], { method: upload.method, body: "hello" });
  assert.ok(put.ok, await put.text());
  const [found] = await listed(client.buckets.objects(bucket.name, "a b/"));
  assert.deepEqual([found.key, found.size], ["a b/ü.txt", 5]);
  assert.equal((await client.buckets.object(bucket.name, found.key)).size, 5);
  const form = await client.buckets.uploadForm(bucket.name, { prefix: "in/" }, { maxBytes: 5 });
  const body = new FormData();
  for (const [name, value] of Object.entries(form.fields)) body.append(name, value);
  body.append("file", new Blob(["hello"]), "c.txt");
  assert.ok((await fetch(form.url, { method: "POST", body })).ok);
  await client.buckets.deleteObjects(bucket.name, ["in/c.txt"]);
  const link = await client.buckets.downloadUrl(bucket.name, found.key);
  assert.equal(await (await fetch(link.url)).text(), "hello");
  const signed = await client.buckets.signedLink(bucket.name, { key: found.key }, { expiresInS: 86400 });
  assert.equal(await (await fetch(signed.url)).text(), "hello");
  await client.buckets.revokeSignedLinks(bucket.name);
  assert.equal((await fetch(signed.url)).status, 403);
  await client.cache.purge({ keys: [`${bucket.name}/${found.key}`], tags: [`${bucket.name}/none`] });
  await client.buckets.deleteObjects(bucket.name, [found.key]);
  await client.buckets.update(bucket.name, { versioning: "Enabled" });
  for (const text of ["first", "second"]) {
    const { urls } = await client.buckets.uploadUrl(bucket.name, "k");
    assert.ok((await fetch(urls[0], { method: "PUT", body: text })).ok);
  }
  const [second, first] = await listed(client.buckets.versions(bucket.name, "k"));
  assert.deepEqual([second.is_latest, first.is_latest], [true, false]);
  const older = await client.buckets.downloadUrl(bucket.name, "k", { versionId: first.version_id });
  assert.equal(await (await fetch(older.url)).text(), "first");
  const restored = await client.buckets.restoreVersion(bucket.name, "k", first.version_id);
  const kept = await listed(client.buckets.versions(bucket.name));
  assert.equal(kept[0].version_id, restored);
  for (const each of kept) await client.buckets.deleteVersion(bucket.name, each.key, each.version_id);
  await client.buckets.delete(bucket.name);
  const key = await client.accessKeys.create("ts");
  await client.accessKeys.delete(key.access_key_id);
  assert.ok((await client.cache.status()).brain_healthy);
  assert.equal((await client.usage({ since: "2026-11-01", until: "2026-11-02" })).since, "2026-11-01");
  assert.ok((await listed(client.members.list({ role: "admin" }))).length > 0);
});

test("tokens go to the platform only", async () => {
  for (const bad of ["http://zonal.example.com", "zonal", "ftp://localhost", "https://me@a.example"]) {
    assert.throws(() => new Client(bad, { token }), ZonalError);
  }
  for (const path of ["//evil.example.com/v1", "https://evil.example.com/", "v1/whoami"]) {
    await assert.rejects(client.request("GET", path), /one slash/);
  }
  await front("redirect");
  await assert.rejects(client.whoami(), /http_302/);
});

test("an answer of something else is said to be one", async () => {
  await front("answer/200/");
  await assert.rejects(client.whoami(), UnexpectedAnswerError);
});

test("a request is aborted by its signal and not repeated", async () => {
  await front("hold");
  const controller = new AbortController();
  const asked = client.sql.query("SELECT 1", [], { readOnly: true, signal: controller.signal });
  while (count(await front("seen"), "POST /v1/sql") === 0) await new Promise(setImmediate);
  controller.abort(new RangeError("mine"));
  await assert.rejects(asked, RangeError);
  assert.equal(count(await front("seen"), "POST /v1/sql"), 1);
});
