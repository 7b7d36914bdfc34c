/** Entry of /extras.js: what few pages need. It is no part of main.js, which loads it, so that that stays small. */

import { installToolBus, type ToolBus } from "./bus.ts";
import { explain, findCause } from "./diagnose.ts";
import type { Tool } from "./dispatch.ts";
import { createDynamic } from "./dynamic.ts";
import { showBadge } from "./identify.ts";
import { toContent } from "./media.ts";
import { merge } from "./merge.ts";
import { createOfferings, type Offerings } from "./offerings.ts";
import { declared, type Offer } from "./tools.ts";
import { watchPage } from "./watch-page.ts";
import { watchWebMCP } from "./webmcp.ts";
import type { PageMessage, Run } from "./wire.ts";

/** What the bridge gives its extras. */
export interface Host {
  /** Aborted when the bridge leaves the page. */
  signal: AbortSignal;
  /** Tools have changed: they are sent at the end of this turn. */
  changed(): void;
  /** Sends changed tools now. False when they are too much for the server. */
  register(): boolean;
  /** Sends a message, if there is a connection. */
  send(message: PageMessage): void;
  /** Runs it, answers it, and takes its `cancel`. */
  run(message: Run): void;
  /** What `kept()` gave before the reload, or `""`. */
  kept: string;
}

/** What the extras add to a bridge. */
export interface Additions extends Offerings {
  /** All tools: those of `__mcpTools`, as given, then those of the tool bus and of WebMCP. Never throws. */
  merge(declared: Offer[]): Offer[];
  /** Answer to the reserved names. */
  reserved: Tool[];
  /** What to keep through a reload, or `""`. Never throws. */
  kept(): string;
  /** Why there is no connection. */
  findCause: typeof findCause;
  /** Words for it. */
  explain: typeof explain;
  /** Shows the human which tab this is. */
  showBadge(text: string): void;
  /** Binary and pictures for the wire. Throws for what is over `limit` bytes, or can't be read. */
  toContent(value: unknown, tag: string, limit: number): Promise<unknown>;
}

/** The exports of this module. */
export interface Extras {
  /** Adds them to a bridge. Resolves once all tools of now are known. */
  start(host: Host): Promise<Additions>;
}

/** How long a registry of the page may take to list its tools, before the others go without them. */
const PATIENCE_MS = 1_000;

export async function start(host: Host): Promise<Additions> {
  const { changed, signal } = host;
  // The bridge may have left while this was loaded.
  signal.throwIfAborted();
  watchPage();
  // Now, since it hears only of tools that are registered later what they throw.
  const watching = watchWebMCP(changed, signal);
  const bus = installToolBus();
  let modelTools = (): Tool[] => [];
  const listen = (watching: Promise<() => Tool[]>) =>
    watching.then((list) => {
      modelTools = list;
      changed();
    });
  const all = (own: Offer[]) => merge(own, busTools(bus), modelTools());
  const dynamic = createDynamic(host, bus, () => all(declared()));
  try {
    signal.addEventListener("abort", bus.onChange(changed));
  } catch (e) {
    tellFailure(e);
  }
  if (watching) await Promise.race([listen(watching), new Promise((done) => setTimeout(done, PATIENCE_MS))]);
  // A polyfill may come later than this, but hardly later than the page.
  else if (document.readyState != "complete") {
    const look = () => {
      const late = watchWebMCP(changed, signal);
      if (late) listen(late);
    };
    addEventListener("load", look, { once: true, signal });
  }
  signal.throwIfAborted();
  // Now, when it is known which names are taken.
  dynamic.replay();
  return { ...createOfferings(host, bus), merge: all, reserved: dynamic.reserved, kept: dynamic.kept, findCause, explain, showBadge, toContent };
}

/** The bus may be the page's own. */
function busTools(bus: ToolBus): unknown[] {
  try {
    return [...bus.getTools()];
  } catch (e) {
    tellFailure(e);
    return [];
  }
}

const tellFailure = (e: unknown) => console.warn("[jsbridge] the tool bus fails:", e);
