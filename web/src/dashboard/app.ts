/** What all views share: the server's data, notices, and what is said to the user. */

import { computed, signal } from "@preact/signals";
import * as api from "./api.ts";
import { createStore } from "./store.ts";
import { openStream, type Stream } from "./stream.ts";
import type { Notice } from "./types.ts";

export const store = createStore(addNotices);

/** Registered tools that the user has not dismissed, oldest first. */
export const toasts = signal<Notice[]>([]);
/** Ids of toasts whose tool was removed since. */
export const outdated = signal<ReadonlySet<string>>(new Set());

const MAX_TOASTS = 100;
const KEPT = "jsbridge-toasts";

function addNotices(notices: Notice[]): void {
  for (const told of notices) {
    const notice = { ...told, id: `${told.at} ${told.id}` }; // Ids begin anew with the server.
    const same = (one: Notice) => one.connection === notice.connection && one.published === notice.published;
    if (notice.kind == "unregistered") {
      outdated.value = new Set([...outdated.value, ...toasts.value.filter(same).map((one) => one.id)]);
    } else if (!toasts.value.some((one) => one.id === notice.id)) {
      setToasts([...toasts.value, notice].slice(-MAX_TOASTS));
      announce(`${notice.client.name || "An agent"} registered the tool ${notice.published} on ${notice.label}.`);
    }
  }
}

/** They outlive a reload: they stay until they are dismissed. */
function setToasts(now: Notice[]): void {
  toasts.value = now;
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(now));
  } catch {
    // Full or forbidden: then a reload loses them.
  }
}

export function dismiss(...ids: string[]): void {
  setToasts(toasts.value.filter((one) => !ids.includes(one.id)));
}

/** What happened to something the user did, shown for a while; failures stay. */
export interface Flash {
  id: number;
  text: string;
  failed: boolean;
}

export const flashes = signal<Flash[]>([]);
let flashId = 0;

export function flash(text: string, failed = false): void {
  const id = ++flashId;
  flashes.value = [...flashes.value.filter((one) => one.text !== text), { id, text, failed }].slice(-4);
  if (!failed) setTimeout(() => unflash(id), 6000);
}

export function unflash(id: number): void {
  flashes.value = flashes.value.filter((one) => one.id !== id);
}

/** For screen readers only. */
export const announcement = signal("");

export function announce(text: string): void {
  // The same text twice would not be read again.
  announcement.value = text === announcement.value ? text + "\u00a0" : text;
}

/** Does what the user asked for, and says how it ended. Gives whether it went well. */
export async function attempt(work: () => Promise<unknown>, done = ""): Promise<boolean> {
  try {
    await work();
    if (done) flash(done);
    return true;
  } catch (error) {
    flash(messageOf(error), true);
    return false;
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The present time, often enough for ages. */
export const now = signal(Date.now());

export const waiting = computed(() => store.origins.value.waiting.length);

let stream: Stream | undefined;
export const wake = (): void => stream?.wake();

/** The version that this page came with. */
let version = "";
/** Another version of jsbridge runs by now: this page may be too old for it. */
export const updated = signal(false);

export function start(): void {
  api.start();
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    if (Array.isArray(kept)) toasts.value = kept;
  } catch {
    // Nothing was kept.
  }
  let epoch = "";
  store.server.subscribe((server) => {
    if (!server) return;
    if (epoch && server.epoch !== epoch) {
      void api.refreshToken().catch(() => {}); // Else the next request does it.
      // Calls and connections of the run before are gone, and so are its tools' toasts.
      dismiss(...toasts.value.filter((one) => !store.connections.peek().has(one.connection)).map((one) => one.id));
    }
    epoch = server.epoch;
    if (version && server.version !== version) updated.value = true;
    version ||= server.version;
  });
  stream = openStream("/api/events", {
    fetch: (url, init) => fetch(url, init),
    headers: api.authorization,
    event: store.apply,
    link(link) {
      const before = store.link.peek().state;
      store.link.value = link;
      if (link.state == "gone" && before == "live") announce("The connection to jsbridge is lost.");
      if (link.state == "live" && before != "live") announce("Connected to jsbridge.");
    },
    unlock: api.unlock,
  });
  addEventListener("online", wake);
  document.addEventListener("visibilitychange", () => {
    store.hide(document.hidden);
    if (document.hidden) return;
    now.value = Date.now();
    wake();
  });
  store.hide(document.hidden);
  // By the second only while something runs: ages are rough.
  setInterval(() => {
    if (!document.hidden && (store.counters.peek().running > 0 || Date.now() - now.peek() > 4500)) now.value = Date.now();
  }, 1000);
}
