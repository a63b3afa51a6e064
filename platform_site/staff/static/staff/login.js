// @ts-check
/** Sign in to the admin with a passkey. */

import { offer } from "./passkey.js";

const next = new URLSearchParams(location.search).get("next") ?? "";

offer("finish", { next }, (done) => location.assign(done.next));
