/** The TypeScript client of Zonal; its README shows how to use it. */

export { AccessKeys, Buckets, Cache } from "./cache.js";
export { Client } from "./client.js";
export type { ClientOptions } from "./client.js";
export {
  AuthenticationError,
  ConflictError,
  ConnectionFailedError,
  EnrolmentRequiredError,
  NotFoundError,
  PermissionDeniedError,
  ProblemError,
  RateLimitError,
  SecondFactorRequiredError,
  ServerError,
  SqlError,
  StreamCutError,
  UnexpectedAnswerError,
  UnreadableAnswerError,
  ZonalError,
} from "./errors.js";
export type { Problem } from "./errors.js";
export { ValueError } from "./json.js";
export { ApiKeys, Environments, Members } from "./organization.js";
export type { Retries } from "./retries.js";
export type { Proof, SecondFactor } from "./signin.js";
export { OpenTransaction, Rows, Sql } from "./sql.js";
export type { Answer, Isolation, QueryOptions, Row, Statement, StatementOptions, StreamEnd } from "./sql.js";
export { MemoryStore } from "./tokens.js";
export type { TokenStore } from "./tokens.js";
export * from "./types.js";
