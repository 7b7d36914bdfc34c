/** Resources that clients watch, and what the page tells of changes. */

import { attempt, isObject } from "./readable.ts";
import { matchTemplate } from "./template.ts";
import type { PageMessage } from "./wire.ts";

export interface Watches {
  /** A client watches that URI, in the page's own form. */
  start(uri: string): void;
  stop(uri: string): void;
  /** Resources may have come, gone or changed. */
  refresh(): void;
  /** Nobody watches any more. */
  reset(): void;
  /** The page says that a resource has changed. Throws for what is no text. */
  updated(uri: unknown): void;
}

interface Watch {
  /** Of the resource, while it has one. */
  subscribe?: unknown;
  end?: () => void;
}

/** More than any server lets clients watch. */
const MAX_WATCHES = 10_000;

/** `resources` gives those of now. */
export function createWatches(resources: () => any[], send: (message: PageMessage) => void): Watches {
  const watches = new Map<string, Watch>();
  const changed = new Set<string>();

  function find(uri: string, all: any[]): [resource: any, variables: object] | undefined {
    const fixed = all.filter((one) => attempt(() => one.uri != null && String(one.uri) === uri)).pop();
    if (fixed) return [fixed, {}];
    for (const one of all) {
      const variables = attempt(() => one.uriTemplate && matchTemplate(String(one.uriTemplate), uri));
      if (variables) return [one, variables];
    }
  }

  /** Has the resource of now tell of changes: a page may replace or remove it while it is watched. */
  function sync(uri: string, watch: Watch, all: any[]): void {
    const [resource, variables] = find(uri, all) ?? [];
    const subscribe = attempt(() => resource.subscribe);
    if (subscribe === watch.subscribe) return;
    watch.end?.();
    watch.subscribe = subscribe;
    if (typeof subscribe == "function") watch.end = follow(uri, (notify) => Reflect.apply(subscribe, resource, [notify, { uri, variables }]));
  }

  /** Gives a function that ends it. */
  function follow(uri: string, subscribe: (notify: () => void) => unknown): () => void {
    const fail = (e: unknown) => console.warn(`[jsbridge] resource ${uri}: subscribe failed:`, e);
    let live = true;
    let end: unknown;
    function finish(): void {
      if (live || typeof end != "function") return;
      try {
        Promise.resolve(end()).catch(fail);
      } catch (e) {
        fail(e);
      }
      end = undefined;
    }
    function take(given: any): void {
      end = given;
      finish();
    }
    try {
      const given: any = subscribe(() => void (live && updated(uri)));
      // At once if it can be: the end may come in this turn.
      if (isObject(given) && attempt(() => given.then)) Promise.resolve(given).then(take, fail);
      else take(given);
    } catch (e) {
      fail(e);
    }
    return () => {
      live = false;
      finish();
    };
  }

  function stop(uri: string): void {
    const watch = watches.get(uri);
    watches.delete(uri);
    watch?.end?.();
  }

  function updated(uri: unknown): void {
    if (typeof uri != "string") throw new TypeError("which resource? Give its uri, a text");
    // Once for all changes of a turn.
    if (!changed.size) queueMicrotask(flush);
    changed.add(uri);
  }

  function flush(): void {
    const all = [...changed];
    changed.clear();
    for (const uri of all) send({ type: "resource_updated", uri });
  }

  return {
    start(uri) {
      if (watches.has(uri) || watches.size >= MAX_WATCHES) return;
      const watch: Watch = {};
      watches.set(uri, watch);
      sync(uri, watch, resources());
    },
    stop,
    refresh() {
      if (!watches.size) return;
      const all = resources();
      for (const [uri, watch] of watches) sync(uri, watch, all);
    },
    reset: () => [...watches.keys()].forEach(stop),
    updated,
  };
}
