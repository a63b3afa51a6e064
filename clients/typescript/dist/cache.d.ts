/** The edge cache: its state, purges, buckets, objects, access keys. */
import type { Transport } from "./transport.js";
import type { AccessKey, Bucket, CacheMetrics, CacheStatus, DownloadUrl, ListedObject, NewAccessKey, ObjectVersion, Purge, SignedLink, StoredObject, UploadForm, UploadUrls } from "./types.js";
/** The cache as the environment sees it. */
export declare class Cache {
    private readonly transport;
    constructor(transport: Transport);
    /** Return its health and size. */
    status(): Promise<CacheStatus>;
    /** Return its counters. */
    metrics(): Promise<CacheMetrics>;
    /**
     * Remove cached copies; each name begins with the bucket: `assets/logo.png`. Tags are those of the origin's
     * responses, or those of objects as `assets/key=value`.
     */
    purge(what: {
        prefix?: string;
        keys?: string[];
        tags?: string[];
        all?: boolean;
    }, options?: {
        preview?: boolean;
    }): Promise<Purge>;
}
/** The environment's buckets; bodies of objects go over the S3 API or over signed URLs. */
export declare class Buckets {
    private readonly transport;
    constructor(transport: Transport);
    /** Return all of them. */
    list(): AsyncGenerator<Bucket>;
    /** Return one. */
    get(bucket: string): Promise<Bucket>;
    /** Make one; without an origin the platform keeps its objects. */
    create(name: string, options?: {
        isPublic?: boolean;
        origin?: string;
        originPrefix?: string;
    }): Promise<Bucket>;
    /** Change fields, such as `{ is_public: true }`. */
    update(bucket: string, changes: Partial<Omit<Bucket, "name" | "public_name" | "public_url" | "origin" | "origin_prefix" | "created_at">>): Promise<Bucket>;
    /** Delete one that is empty. */
    delete(bucket: string): Promise<void>;
    /** Return the objects whose keys begin with a prefix, in the order of their keys. */
    objects(bucket: string, prefix?: string): AsyncGenerator<ListedObject>;
    /** Return what is known of one object. */
    object(bucket: string, key: string): Promise<StoredObject>;
    /** Return versions and delete markers, of each key the newest first. */
    versions(bucket: string, prefix?: string): AsyncGenerator<ObjectVersion>;
    /** Delete a version for good, or a delete marker, which brings the object back. */
    deleteVersion(bucket: string, key: string, versionId: string): Promise<void>;
    /** Make a copy of a version the current one; return its id. */
    restoreVersion(bucket: string, key: string, versionId: string): Promise<string>;
    /** Delete objects; those that do not exist are no error. */
    deleteObjects(bucket: string, keys: string[]): Promise<void>;
    /** Return a signed URL that a browser may GET without a token. */
    downloadUrl(bucket: string, key: string, options?: {
        expiresInS?: number;
        disposition?: "attachment" | "inline";
        versionId?: string;
    }): Promise<DownloadUrl>;
    /**
     * Return a link that opens a key, or all keys that begin with a prefix, for up to a year. `query`: of the key's
     * URL, if the bucket has an origin; `host`: one of the bucket's.
     */
    signedLink(bucket: string, opens: {
        key: string;
        query?: string;
    } | {
        prefix: string;
    }, options?: {
        expiresInS?: number;
        host?: string;
    }): Promise<SignedLink>;
    /** End all signed links of a bucket. */
    revokeSignedLinks(bucket: string): Promise<void>;
    /** Return a signed URL to PUT one object at: `urls[0]`. */
    uploadUrl(bucket: string, key: string, options?: {
        expiresInS?: number;
        contentType?: string;
    }): Promise<UploadUrls>;
    /**
     * Return a signed form with which a browser uploads a file of a key, or below a prefix: its fields
     * come before the `file`. It can be used more than once until it expires.
     */
    uploadForm(bucket: string, where: {
        key: string;
    } | {
        prefix: string;
    }, options?: {
        maxBytes?: number;
        contentType?: string;
        redirectUrl?: string;
        expiresInS?: number;
    }): Promise<UploadForm>;
}
/** Keys of the S3 API. */
export declare class AccessKeys {
    private readonly transport;
    constructor(transport: Transport);
    /** Return the environment's, without their secrets. */
    list(): AsyncGenerator<AccessKey>;
    /** Make one; only this answer has its secret. */
    create(label?: string, access?: "read" | "write"): Promise<NewAccessKey>;
    /** Delete one; requests that it signed are refused at once. */
    delete(accessKeyId: string): Promise<void>;
}
