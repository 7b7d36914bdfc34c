/** The bridge of a page: wires the socket to the tools, and gives the page its controls. */

import type { ToolBus } from "./bus.ts";
import { createDispatch } from "./dispatch.ts";
import type { Additions, Extras } from "./extras.ts";
import { leave as keep, take } from "./instance.ts";
import { attempt, messageOf } from "./readable.ts";
import { createSocket } from "./socket.ts";
import { keepErrors } from "./thrown.ts";
import { callable, declared, readManifest } from "./tools.ts";
import { byteLength, decode, encode, type PageMessage, type Problem, type Run } from "./wire.ts";

/**
 * `connecting`: from the first attempt until the server has taken the tools, and while a
 * lost connection is retried; `pending`: a human must allow this origin; `disconnected`:
 * nothing is tried any more.
 */
export type ConnectionState = "disconnected" | "connecting" | "connected" | "pending";

export interface Status {
  state: ConnectionState;
  /** Why it is not connected, where there is something to say: one sentence. */
  reason?: string;
  /** The close code, where one ended it. */
  code?: number;
  /** The connect string in use. */
  connect: string;
  /** What the names of this tab's tools begin with, once the server gave it. */
  prefix?: string;
}

/** What copies of this script, whichever server they came from, know of each other. */
export interface Bridge {
  matches(origin: string, connect: string): boolean;
  /** The page's declarations may have changed. */
  changed(): void;
  /** Connects at once if it is waiting or has ended. */
  connect(): void;
  /** Leaves and takes everything off the page but `__mcpReconnect`. */
  stop(): void;
  status(): Status;
  /** Has `listener` called after each change, the last when the bridge stops. Gives a function that ends it. */
  subscribe(listener: (status: Status) => void): () => void;
}

/** Where the page's only bridge is found. */
const KEY = Symbol.for("jsbridge");

const has = (bus: ToolBus) => [...bus.getTools(), ...bus.getPrompts(), ...bus.getResources()].length;

const page = globalThis as unknown as Window & { [KEY]?: Bridge | undefined };

/**
 * Connects the page, or wakes the bridge it has. A bridge to elsewhere makes way.
 * `loadExtras` is called at once, and again at reconnects until it succeeds.
 */
export function install(server: URL, connect: string, loadExtras: () => Promise<Extras>): Bridge {
  let bridge = page[KEY];
  if (!bridge?.matches(server.origin, connect)) {
    bridge?.stop();
    bridge = page[KEY] = createBridge(server, connect, loadExtras);
  }
  bridge.changed();
  bridge.connect();
  return bridge;
}

function createBridge(server: URL, tenant: string, loadExtras: () => Promise<Extras>): Bridge {
  const life = new AbortController();
  const { signal } = life;
  const listeners = new Set<(status: Status) => void>();
  const [id, kept = ""] = take();
  // Not randomUUID, which plain http pages lack.
  const instance = id || crypto.getRandomValues(new Uint32Array(5)).join("-");
  /** Lines that are printed once. There is an end to them. */
  const told = new Set<string>();
  let status: Status = { state: "disconnected", connect: tenant };
  let trouble: unknown;
  let limit = Infinity;
  let label = "";
  let prefix = "";
  /** The manifest that this socket has, or that was too large for the last one. */
  let sent = "";
  let planned = false;
  /** The newest call that came over this socket. */
  let seen = "-";
  let extra: Additions | undefined;
  let loading: Promise<Additions> | undefined;

  const log = (text: string, print = console.warn) => print("[jsbridge] " + text);
  const once = (text: string) => void (told.size > 999 || told.has(text) || (log(text), told.add(text)));
  const send = (message: PageMessage) => void transmit(encode(message));
  const complain = (problems?: Problem[]) => problems?.forEach(({ kind = "tool", name, index, reason }) => once(`${kind} ${name || index}: ${reason}`.replace(/\s+/g, " ")));
  const more = () => (loading ??= start());
  const load = () => more().catch(() => {});
  const offers = () => (extra ? extra.merge(declared()) : declared());

  const dispatch = createDispatch(transmit, () => callable(offers()), more, () => limit, (id) => extra?.over(id));

  const socket = createSocket(server, () => `/ws?tenant=${encodeURIComponent(tenant)}&v=1&instance=${instance}`, signal, {
    opening: () => show("connecting", status.reason),
    opened() {
      // All is measured before it goes, but the first manifest goes before the limit is known.
      if (trouble != 1009) sent = "";
      seen = "-";
      register();
      // A server that has been restarted knows the connect string's name only.
      rename(label);
      load();
    },
    frame: receive,
    ended() {
      dispatch.reset();
      extra?.reset();
    },
    hiding: () => (rest(), seen),
    returned: take,
    // Without extras a page is no poorer: it got this script from the same server, with permission.
    async cause(opened, keep) {
      // A try made too early could cost a prompt; one that never comes, the page.
      await Promise.race([load(), new Promise((done) => setTimeout(done, 3_000))]);
      return extra?.findCause(server, opened, keep) ?? "down";
    },
    tell(kind, detail = "", lasting) {
      // One line for each kind of trouble, until there was a connection in between.
      const first = kind != trouble;
      trouble = kind;
      const say = (text?: string) => {
        if (first && text) log(`${server.origin}: ${text}`);
        show(lasting ? "disconnected" : "connecting", text, lasting && +kind);
      };
      const words = () => extra?.explain(kind, server, detail);
      say(words());
      const { state } = status;
      // It may come before the words for it, which are no longer wanted when it is over.
      if (!extra) load().then(() => status.state == state && say(words() ?? kind + detail));
    },
  });

  /** `code` may be NaN, of a cause. */
  function show(state: ConnectionState, reason?: string, code?: number | false): void {
    const next: Status = { state, connect: tenant, ...(reason && { reason }), ...(code && { code }), ...(prefix && { prefix }) };
    if (JSON.stringify(next) == JSON.stringify(status)) return;
    status = next;
    // Whoever changes it in its turn has told everybody. What they throw is theirs to tell.
    listeners.forEach((listener) => attempt(() => status == next && listener(next)));
  }

  /** Sends the manifest if it differs from what this socket has seen. False when it is too large. */
  function register(): boolean {
    planned = false;
    const { frame, problems } = readManifest(offers(), label, extra?.declare());
    complain(problems);
    if (frame != sent && transmit(frame)) sent = frame;
    return frame == sent;
  }

  function transmit(frame: string): boolean {
    const fits = byteLength(frame) <= limit;
    if (fits) socket.send(frame);
    else once(`over the limit of ${limit} bytes: ${frame.slice(0, 60)}`);
    return fits;
  }

  async function start(): Promise<Additions> {
    try {
      extra = await (await loadExtras()).start({ signal, changed, register, send, run, kept });
      changed();
      return extra;
    } catch (e) {
      loading = undefined;
      throw Error("extras.js failed: " + messageOf(e));
    }
  }

  function receive(data: unknown): void {
    const message = decode(data);
    switch (message?.type) {
      case "welcome":
        limit = message.limits?.frameBytes || Infinity;
        if (message.state == "pending") {
          once("pending: " + message.reason);
          show("pending", message.reason);
        }
        return;
      case "registered":
        complain(message.problems);
        if (status.state != "connected") log(`${prefix && "re"}connected to ${server.origin} as ${message.prefix}, tools: ${message.tools?.length}`, console.info);
        prefix = message.prefix;
        trouble = 0;
        return show("connected");
      case "call":
        return run(message);
      case "cancel":
        return dispatch.cancel(message.id, message.reason);
      case "identify": {
        const text = `${message.label || label || document.title} · ${prefix}`;
        return void load().then(() => (extra?.showBadge ?? log)(text));
      }
      case "move_channel":
        drop();
        tenant = message.channel;
        return socket.connect();
      case "probe":
        return send({ type: "alive", id: message.id });
      case "error":
        return once("refused: " + message.message);
      default:
        // Of what the extras have declared. Or no message, one of a later version, or one that `registered` follows.
        extra?.receive(message);
    }
  }

  function run(message: Run): void {
    seen = message.id;
    dispatch.call(message);
  }

  function drop(): void {
    send({ type: "leave_channel" });
    socket.close();
  }

  function leave(): void {
    drop();
    show("disconnected");
  }

  function changed(): void {
    // Once for all changes of a turn. Not by a timer: hidden tabs throttle those.
    if (!planned) queueMicrotask(register);
    planned = true;
  }

  function rest(): void {
    keep(instance, extra ? extra.kept() : kept);
  }

  const rename = (to: string) => void (to && send({ type: "rename_connection", appLabel: (label = to) }));
  page.__mcpRename = (given = prompt("Tab name:", label || document.title) || "") => rename(given.trim());
  page.__mcpLeaveChannel = leave;
  page.__mcpReconnect = () => void install(server, tenant, loadExtras);

  function stop(): void {
    // Whoever held on to it must not stop the next.
    if (signal.aborted) return;
    // First, so that who hears of the end finds no bridge.
    page[KEY] = page.__mcpRename = page.__mcpLeaveChannel = page.__mcpDisconnect = undefined;
    rest();
    leave();
    life.abort();
  }
  page.__mcpDisconnect = stop;

  load();
  /** There is something that only the extras know, and that must be in the first manifest. */
  const early = keepErrors() || kept || attempt(() => page.__mcpPrompts || page.__mcpResources || has(page.__mcpToolBus!));

  return {
    matches: (origin, name) => origin == server.origin && name == tenant,
    changed,
    async connect() {
      if (status.state == "disconnected") show("connecting");
      if (early) await load();
      // Someone may have left meanwhile.
      if (status.state != "disconnected") socket.connect();
    },
    stop,
    status: () => status,
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
