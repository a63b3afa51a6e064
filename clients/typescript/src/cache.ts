/** The edge cache: its state, purges, buckets, objects, access keys. */

import { listed } from "./listing.js";
import type { Transport } from "./transport.js";
import type {
  AccessKey,
  Bucket,
  CacheMetrics,
  CacheStatus,
  DownloadUrl,
  ListedObject,
  NewAccessKey,
  ObjectVersion,
  Purge,
  SignedLink,
  StoredObject,
  UploadForm,
  UploadUrls,
} from "./types.js";

const BUCKETS = "/v1/cache/buckets";
const KEYS = "/v1/cache/access-keys";

/** The cache as the environment sees it. */
export class Cache {
  constructor(private readonly transport: Transport) {}

  /** Return its health and size. */
  status(): Promise<CacheStatus> {
    return this.transport.call({ method: "GET", path: "/v1/cache/status" });
  }

  /** Return its counters. */
  metrics(): Promise<CacheMetrics> {
    return this.transport.call({ method: "GET", path: "/v1/cache/metrics" });
  }

  /**
   * Remove cached copies; each name begins with the bucket: `assets/logo.png`. Tags are those of the origin's
   * responses, or those of objects as `assets/key=value`.
   */
  purge(
    what: { prefix?: string; keys?: string[]; tags?: string[]; all?: boolean },
    options: { preview?: boolean } = {},
  ): Promise<Purge> {
    const body = { ...what, preview: options.preview };
    return this.transport.call({ method: "POST", path: "/v1/cache/purge", body, isRepeatable: true });
  }
}

/** The environment's buckets; bodies of objects go over the S3 API or over signed URLs. */
export class Buckets {
  constructor(private readonly transport: Transport) {}

  /** Return all of them. */
  list(): AsyncGenerator<Bucket> {
    return listed(this.transport, BUCKETS);
  }

  /** Return one. */
  get(bucket: string): Promise<Bucket> {
    return this.transport.call({ method: "GET", path: at(bucket) });
  }

  /** Make one; without an origin the platform keeps its objects. */
  create(
    name: string,
    options: { isPublic?: boolean; origin?: string; originPrefix?: string } = {},
  ): Promise<Bucket> {
    const { isPublic, origin, originPrefix } = options;
    const body = { name, is_public: isPublic, origin, origin_prefix: originPrefix };
    return this.transport.call({ method: "POST", path: BUCKETS, body });
  }

  /** Change fields, such as `{ is_public: true }`. */
  update(
    bucket: string,
    changes: Partial<Omit<Bucket, "name" | "public_name" | "public_url" | "origin" | "origin_prefix" | "created_at">>,
  ): Promise<Bucket> {
    return this.transport.call({ method: "PATCH", path: at(bucket), body: changes });
  }

  /** Delete one that is empty. */
  delete(bucket: string): Promise<void> {
    return this.transport.call({ method: "DELETE", path: at(bucket) });
  }

  /** Return the objects whose keys begin with a prefix, in the order of their keys. */
  async *objects(bucket: string, prefix?: string): AsyncGenerator<ListedObject> {
    let after: string | undefined;
    do {
      const page: { objects: ListedObject[]; next_after: string | null } =
        await this.transport.call({
          method: "GET",
          path: `${at(bucket)}/objects`,
          params: { prefix, after },
        });
      for (const found of page.objects) yield found;
      after = page.next_after ?? undefined;
    } while (after !== undefined);
  }

  /** Return what is known of one object. */
  object(bucket: string, key: string): Promise<StoredObject> {
    const path = `${at(bucket)}/objects/details`;
    return this.transport.call({ method: "GET", path, params: { key } });
  }

  /** Return versions and delete markers, of each key the newest first. */
  async *versions(bucket: string, prefix?: string): AsyncGenerator<ObjectVersion> {
    const path = `${at(bucket)}/objects/versions`;
    let after: { after?: string; after_version?: string } | null = {};
    while (after !== null) {
      const page: { versions: ObjectVersion[]; next_after: string | null; next_version: string } =
        await this.transport.call({ method: "GET", path, params: { prefix, ...after } });
      for (const found of page.versions) yield found;
      after = page.next_after === null ? null : { after: page.next_after, after_version: page.next_version };
    }
  }

  /** Delete a version for good, or a delete marker, which brings the object back. */
  deleteVersion(bucket: string, key: string, versionId: string): Promise<void> {
    const path = `${at(bucket)}/objects/versions/delete`;
    const body = { key, version_id: versionId };
    return this.transport.call({ method: "POST", path, body, isRepeatable: true });
  }

  /** Make a copy of a version the current one; return its id. */
  async restoreVersion(bucket: string, key: string, versionId: string): Promise<string> {
    const path = `${at(bucket)}/objects/versions/restore`;
    const body = { key, version_id: versionId };
    const made: { version_id: string } = await this.transport.call({ method: "POST", path, body });
    return made.version_id;
  }

  /** Delete objects; those that do not exist are no error. */
  deleteObjects(bucket: string, keys: string[]): Promise<void> {
    const path = `${at(bucket)}/objects/delete`;
    return this.transport.call({ method: "POST", path, body: { keys }, isRepeatable: true });
  }

  /** Return a signed URL that a browser may GET without a token. */
  downloadUrl(
    bucket: string,
    key: string,
    options: { expiresInS?: number; disposition?: "attachment" | "inline"; versionId?: string } = {},
  ): Promise<DownloadUrl> {
    const path = `${at(bucket)}/objects/download-url`;
    const body = {
      key,
      expires_in_s: options.expiresInS,
      disposition: options.disposition,
      version_id: options.versionId,
    };
    return this.transport.call({ method: "POST", path, body, isRepeatable: true });
  }

  /**
   * Return a link that opens a key, or all keys that begin with a prefix, for up to a year. `query`: of the key's
   * URL, if the bucket has an origin; `host`: one of the bucket's.
   */
  signedLink(
    bucket: string,
    opens: { key: string; query?: string } | { prefix: string },
    options: { expiresInS?: number; host?: string } = {},
  ): Promise<SignedLink> {
    const body = { ...opens, expires_in_s: options.expiresInS, host: options.host };
    const path = `${at(bucket)}/signed-links`;
    return this.transport.call({ method: "POST", path, body, isRepeatable: true });
  }

  /** End all signed links of a bucket. */
  revokeSignedLinks(bucket: string): Promise<void> {
    return this.transport.call({ method: "DELETE", path: `${at(bucket)}/signed-links` });
  }

  /** Return a signed URL to PUT one object at: `urls[0]`. */
  uploadUrl(
    bucket: string,
    key: string,
    options: { expiresInS?: number; contentType?: string } = {},
  ): Promise<UploadUrls> {
    const path = `${at(bucket)}/objects/upload-urls`;
    const body = { key, expires_in_s: options.expiresInS, content_type: options.contentType };
    return this.transport.call({ method: "POST", path, body, isRepeatable: true });
  }

  /**
   * Return a signed form with which a browser uploads a file of a key, or below a prefix: its fields
   * come before the `file`. It can be used more than once until it expires.
   */
  uploadForm(
    bucket: string,
    where: { key: string } | { prefix: string },
    options: { maxBytes?: number; contentType?: string; redirectUrl?: string; expiresInS?: number } = {},
  ): Promise<UploadForm> {
    const path = `${at(bucket)}/objects/upload-form`;
    const body = {
      ...where,
      max_bytes: options.maxBytes,
      content_type: options.contentType,
      redirect_url: options.redirectUrl,
      expires_in_s: options.expiresInS,
    };
    return this.transport.call({ method: "POST", path, body, isRepeatable: true });
  }
}

/** Keys of the S3 API. */
export class AccessKeys {
  constructor(private readonly transport: Transport) {}

  /** Return the environment's, without their secrets. */
  list(): AsyncGenerator<AccessKey> {
    return listed(this.transport, KEYS);
  }

  /** Make one; only this answer has its secret. */
  create(label = "", access: "read" | "write" = "write"): Promise<NewAccessKey> {
    return this.transport.call({ method: "POST", path: KEYS, body: { label, access } });
  }

  /** Delete one; requests that it signed are refused at once. */
  delete(accessKeyId: string): Promise<void> {
    const path = `${KEYS}/${encodeURIComponent(accessKeyId)}`;
    return this.transport.call({ method: "DELETE", path });
  }
}

function at(bucket: string): string {
  return `${BUCKETS}/${encodeURIComponent(bucket)}`;
}
