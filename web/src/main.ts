/** Entry of /main.js: connects the page that imports it. */

import { install } from "./bridge.ts";

try {
  const { origin, searchParams } = new URL(import.meta.url);
  const server = new URL(searchParams.get("server") || origin);
  const tenant = searchParams.get("tenant");
  if (!tenant || !/^http/.test(server.protocol)) throw 0;
  // Each attempt has an address of its own: some browsers remember a failed import.
  let attempt = 0;
  install(server, tenant, () => import(`${server.origin}/extras.js#${attempt++}`));
} catch {
  console.error("[jsbridge] no tenant: use get_embed_snippet");
}
