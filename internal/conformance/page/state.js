// State that is kept by the client and may come back changed, so it is signed.

import { base64, bytes } from "./content.js";

const key = crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
const encoder = new TextEncoder();

/** The signed state of the function with that name: `payload.signature`. */
export async function seal(name, value) {
  // A state is never the same twice: a client can tell rounds apart by it.
  const payload = encoder.encode(JSON.stringify({ name, value, once: crypto.randomUUID() }));
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", await key, payload));
  return `${base64(payload)}.${base64(signature)}`;
}

/** What was sealed for that name. Throws MCP's "invalid params" for anything else. */
export async function open(name, state) {
  try {
    const [payload, signature] = String(state).split(".").map(bytes);
    if (!(await crypto.subtle.verify("HMAC", await key, signature, payload))) throw new Error("wrong signature");
    const kept = JSON.parse(new TextDecoder().decode(payload));
    if (kept.name !== name) throw new Error(`state of ${kept.name}`);
    return kept.value;
  } catch (cause) {
    throw Object.assign(new Error("requestState is not what was given out", { cause }), { code: -32602 });
  }
}
