/**
 * Entry of /inline.js: main.js for pages whose policy forbids import(). It becomes the body
 * of a function, which whoever pastes it calls with SERVER and TENANT.
 */

import { install } from "./bridge.ts";
import { explain, findCause } from "./diagnose.ts";
import type { Extras } from "./extras.ts";
import { showBadge } from "./identify.ts";
import { toContent } from "./media.ts";
import { messageOf } from "./readable.ts";
import { declared } from "./tools.ts";
import { watchPage } from "./watch-page.ts";

declare const SERVER: string;
declare const TENANT: string;

const server = new URL(SERVER);

/** For where the others can't be loaded. */
const basics = (error: unknown): Extras => ({
  async start({ kept }) {
    const because = `${server.origin}/extras.js failed: ${messageOf(error)}`;
    const refuse = (): never => {
      throw Error(`this page can't do that: ${because}`);
    };
    watchPage();
    return {
      merge: (declared) => declared,
      get reserved(): never {
        throw Error(`this page allows nothing to be added at run time: ${because}`);
      },
      declare: () => ({
        members: "",
        problems: (["prompt", "resource"] as const).flatMap((kind) => (declared(kind == "prompt" ? "__mcpPrompts" : "__mcpResources").length ? { kind, name: "", index: 0, reason: `left out: ${because}` } : [])),
      }),
      ask: async () => refuse(),
      answer: async () => refuse(),
      over() {},
      receive() {},
      reset() {},
      kept: () => kept,
      findCause,
      explain,
      showBadge,
      toContent,
    };
  },
});

install(server, TENANT, (): Promise<Extras> => import(server.origin + "/extras.js").catch(basics));
