/** The edge cache: its state, purges, buckets, objects, access keys. */
import { listed } from "./listing.js";
const BUCKETS = "/v1/cache/buckets";
const KEYS = "/v1/cache/access-keys";
/** The cache as the environment sees it. */
export class Cache {
    constructor(transport) {
        this.transport = transport;
    }
    /** Return its health and size. */
    status() {
        return this.transport.call({ method: "GET", path: "/v1/cache/status" });
    }
    /** Return its counters. */
    metrics() {
        return this.transport.call({ method: "GET", path: "/v1/cache/metrics" });
    }
    /**
     * Remove cached copies; each name begins with the bucket: `assets/logo.png`. Tags are those of the origin's
     * responses, or those of objects as `assets/key=value`.
     */
    purge(what, options = {}) {
        const body = { ...what, preview: options.preview };
        return this.transport.call({ method: "POST", path: "/v1/cache/purge", body, isRepeatable: true });
    }
}
/** The environment's buckets; bodies of objects go over the S3 API or over signed URLs. */
export class Buckets {
    constructor(transport) {
        this.transport = transport;
    }
    /** Return all of them. */
    list() {
        return listed(this.transport, BUCKETS);
    }
    /** Return one. */
    get(bucket) {
        return this.transport.call({ method: "GET", path: at(bucket) });
    }
    /** Make one; without an origin the platform keeps its objects. */
    create(name, options = {}) {
        const { isPublic, origin, originPrefix } = options;
        const body = { name, is_public: isPublic, origin, origin_prefix: originPrefix };
        return this.transport.call({ method: "POST", path: BUCKETS, body });
    }
    /** Change fields, such as `{ is_public: true }`. */
    update(bucket, changes) {
        return this.transport.call({ method: "PATCH", path: at(bucket), body: changes });
    }
    /** Delete one that is empty. */
    delete(bucket) {
        return this.transport.call({ method: "DELETE", path: at(bucket) });
    }
    /** Return the objects whose keys begin with a prefix, in the order of their keys. */
    async *objects(bucket, prefix) {
        let after;
        do {
            const page = await this.transport.call({
                method: "GET",
                path: `${at(bucket)}/objects`,
                params: { prefix, after },
            });
            for (const found of page.objects)
                yield found;
            after = page.next_after ?? undefined;
        } while (after !== undefined);
    }
    /** Return what is known of one object. */
    object(bucket, key) {
        const path = `${at(bucket)}/objects/details`;
        return this.transport.call({ method: "GET", path, params: { key } });
    }
    /** Return versions and delete markers, of each key the newest first. */
    async *versions(bucket, prefix) {
        const path = `${at(bucket)}/objects/versions`;
        let after = {};
        while (after !== null) {
            const page = await this.transport.call({ method: "GET", path, params: { prefix, ...after } });
            for (const found of page.versions)
                yield found;
            after = page.next_after === null ? null : { after: page.next_after, after_version: page.next_version };
        }
    }
    /** Delete a version for good, or a delete marker, which brings the object back. */
    deleteVersion(bucket, key, versionId) {
        const path = `${at(bucket)}/objects/versions/delete`;
        const body = { key, version_id: versionId };
        return this.transport.call({ method: "POST", path, body, isRepeatable: true });
    }
    /** Make a copy of a version the current one; return its id. */
    async restoreVersion(bucket, key, versionId) {
        const path = `${at(bucket)}/objects/versions/restore`;
        const body = { key, version_id: versionId };
        const made = await this.transport.call({ method: "POST", path, body });
        return made.version_id;
    }
    /** Delete objects; those that do not exist are no error. */
    deleteObjects(bucket, keys) {
        const path = `${at(bucket)}/objects/delete`;
        return this.transport.call({ method: "POST", path, body: { keys }, isRepeatable: true });
    }
    /** Return a signed URL that a browser may GET without a token. */
    downloadUrl(bucket, key, options = {}) {
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
    signedLink(bucket, opens, options = {}) {
        const body = { ...opens, expires_in_s: options.expiresInS, host: options.host };
        const path = `${at(bucket)}/signed-links`;
        return this.transport.call({ method: "POST", path, body, isRepeatable: true });
    }
    /** End all signed links of a bucket. */
    revokeSignedLinks(bucket) {
        return this.transport.call({ method: "DELETE", path: `${at(bucket)}/signed-links` });
    }
    /** Return a signed URL to PUT one object at: `urls[0]`. */
    uploadUrl(bucket, key, options = {}) {
        const path = `${at(bucket)}/objects/upload-urls`;
        const body = { key, expires_in_s: options.expiresInS, content_type: options.contentType };
        return this.transport.call({ method: "POST", path, body, isRepeatable: true });
    }
    /**
     * Return a signed form with which a browser uploads a file of a key, or below a prefix: its fields
     * come before the `file`. It can be used more than once until it expires.
     */
    uploadForm(bucket, where, options = {}) {
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
    constructor(transport) {
        this.transport = transport;
    }
    /** Return the environment's, without their secrets. */
    list() {
        return listed(this.transport, KEYS);
    }
    /** Make one; only this answer has its secret. */
    create(label = "", access = "write") {
        return this.transport.call({ method: "POST", path: KEYS, body: { label, access } });
    }
    /** Delete one; requests that it signed are refused at once. */
    delete(accessKeyId) {
        const path = `${KEYS}/${encodeURIComponent(accessKeyId)}`;
        return this.transport.call({ method: "DELETE", path });
    }
}
function at(bucket) {
    return `${BUCKETS}/${encodeURIComponent(bucket)}`;
}
