/** The API's answers, by the names of the document; a later release may add fields. */

import type { components } from "./schema.js";

type Schemas = components["schemas"];

export type AccessKey = Schemas["AccessKey"];
export type ApiKey = Schemas["ApiKey"];
export type Bucket = Schemas["Bucket"];
export type CacheMetrics = Schemas["CacheMetrics"];
export type CacheStatus = Schemas["CacheStatus"];
export type Challenge = Schemas["Challenge"];
export type Column = Schemas["Column"];
export type DownloadUrl = Schemas["DownloadUrl"];
export type Environment = Schemas["Environment"];
export type EnvironmentDetail = Schemas["EnvironmentDetail"];
export type Import = Schemas["Import"];
export type Invitation = Schemas["Invitation"];
export type ListedObject = Schemas["ListedObject"];
export type LoginAnswer = Schemas["LoginAnswer"];
export type Member = Schemas["Member"];
export type ChangedMember = Schemas["ChangedMember"];
export type RemovedMember = Schemas["RemovedMember"];
export type NewAccessKey = Schemas["NewAccessKey"];
export type NewApiKey = Schemas["NewApiKey"];
export type Notice = Schemas["Notice"];
export type ObjectVersion = Schemas["Version"];
export type OrganizationUsage = Schemas["OrganizationUsage"];
export type Permissions = Schemas["Permissions"];
export type Purge = Schemas["Purge"];
export type Result = Schemas["Result"];
export type Schema = Schemas["Schema"];
export type SignedLink = Schemas["SignedLink"];
export type SqlAnswer = Schemas["SqlAnswer"];
export type Stats = Schemas["Stats"];
export type StoredObject = Schemas["Object"];
export type TokenPair = Schemas["TokenPair"];
export type Transaction = Schemas["Transaction"];
export type UploadForm = Schemas["UploadForm"];
export type UploadUrls = Schemas["UploadUrls"];
export type Usage = Schemas["Usage"];
export type Whoami = Schemas["Whoami"];

export type Role = "admin" | "operator" | "reader";
export type Scope = ApiKey["scopes"][number];
