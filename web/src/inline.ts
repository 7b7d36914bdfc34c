/**
 * Entry of /inline.js: main.js for pages whose policy forbids import(). It becomes the body
 * of a function, which whoever pastes it calls with SERVER and TENANT.
 */

import { install } from "./bridge.ts";
import { explain } from "./diagnose.ts";
import type { Extras } from "./extras.ts";
import { showBadge } from "./identify.ts";
import { toContent } from "./media.ts";
import { messageOf } from "./readable.ts";

declare const SERVER: string;
declare const TENANT: string;

const server = new URL(SERVER);

/** For where the others can't be loaded. */
const basics = (error: unknown): Extras => ({
  start: async ({ kept }) => ({
    merge: (declared) => declared,
    get reserved(): never {
      throw Error(`this page allows nothing to be added at run time: ${server.origin}/extras.js failed: ${messageOf(error)}`);
    },
    kept: () => kept,
    explain,
    showBadge,
    toContent,
  }),
});

install(server, TENANT, (): Promise<Extras> => import(server.origin + "/extras.js").catch(basics));
