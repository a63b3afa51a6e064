/** The TypeScript client of Zonal; its README shows how to use it. */
export { AccessKeys, Buckets, Cache } from "./cache.js";
export { Client } from "./client.js";
export { AuthenticationError, ConflictError, ConnectionFailedError, EnrolmentRequiredError, NotFoundError, PermissionDeniedError, ProblemError, RateLimitError, SecondFactorRequiredError, ServerError, SqlError, StreamCutError, UnexpectedAnswerError, UnreadableAnswerError, ZonalError, } from "./errors.js";
export { ValueError } from "./json.js";
export { ApiKeys, Environments, Members } from "./organization.js";
export { OpenTransaction, Rows, Sql } from "./sql.js";
export { MemoryStore } from "./tokens.js";
export * from "./types.js";
