/** Finds out why there is no connection, and words it for the console. */

import type { Keep } from "./socket.ts";

/** Why an attempt failed. A browser shows all of them as the same broken socket. */
export type Cause = "csp" | "mixed" | "http" | "denied" | "prompt" | "down";

/** Causes that a retry can't cure: it would be noise, or cost the user a prompt. */
export const isLasting = (cause: Cause): boolean => !/down|http/.test(cause);

/** Also true of no host at all, which is a file. */
const isLoopback = (host: string) => /^(|(.+\.)?localhost\.?|127\.[\d.]+|\[::1\])$/.test(host);

/** For a socket that was let out but not answered. `opened`: one was, earlier in this document. `keep` takes the permission that was looked at. */
export async function findCause(server: URL, opened: boolean, keep: Keep): Promise<Cause> {
  // Loopback pages need no permission, although theirs reads "prompt" as well.
  if (!opened && isLoopback(server.hostname) && !isLoopback(location.hostname)) {
    if (!isSecureContext) return "http";
    const state = keep(await localPermission())?.state;
    if (state && state != "granted") return state;
  }
  return "down";
}

/** The browser's permission for pages to reach this machine, where it has one. */
async function localPermission(): Promise<PermissionStatus | undefined> {
  for (const name of ["loopback-network", "local-network-access"]) {
    try {
      return await navigator.permissions.query({ name: name as PermissionName });
    } catch {
      // A name this browser does not know.
    }
  }
}

/** One sentence: what is wrong, and what to do. */
export function explain(kind: Cause | number, server: URL, detail = ""): string {
  const texts: { [kind: string]: string } = {
    csp: `blocked by this page's CSP: add ${socketOrigin(server)} to ${detail}, reload`,
    mixed: "blocked as mixed content: use http://localhost",
    http: `no answer; public http pages can't reach it`,
    denied: `blocked by the browser: site settings > "Apps on device" > Allow, reload`,
    prompt: "waiting: Allow it in the browser's prompt; __mcpReconnect() asks again",
    down: `no answer${detail}: is jsbridge running? Retrying`,
    1009: `message left out${detail}`,
    1013: `busy${detail}. Retrying slowly`,
  };
  return texts[kind] ?? `ended${detail}; __mcpReconnect() connects again`;
}

/** Where the server takes sockets. */
export const socketOrigin = (server: URL): string => server.origin.replace("http", "ws");
