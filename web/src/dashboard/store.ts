/** What the server told, as signals. A hidden tab keeps up, but renders nothing. */

import { batch, signal } from "@preact/signals";
import type { Link, StreamEvent } from "./stream.ts";
import type { Call, Change, Channel, Connection, Counters, Diff, Notice, Origins, Server, Session, State, Workspace } from "./types.ts";

const MAX_CALLS = 1000;

export type Listed<T> = ReadonlyMap<string, T>;

const readOrigins = ({ allowed, waiting }: Origins): Origins => ({ allowed: allowed ?? [], waiting: waiting ?? [] });

const NO_COUNTERS: Counters = { calls: 0, failed: 0, running: 0, refused: 0, dropped: 0 };

export function createStore(onNotices: (notices: Notice[]) => void = () => {}) {
  const signals = {
    server: signal<Server | undefined>(undefined),
    sessions: signal<Listed<Session>>(new Map()),
    connections: signal<Listed<Connection>>(new Map()),
    channels: signal<Listed<Channel>>(new Map()),
    workspaces: signal<Listed<Workspace>>(new Map()),
    origins: signal<Origins>({ allowed: [], waiting: [] }),
    counters: signal<Counters>(NO_COUNTERS),
    /** Oldest first. */
    calls: signal<Listed<Call>>(new Map()),
  };
  const link = signal<Link>({ state: "connecting" });
  type Key = keyof typeof signals;
  /** What signals become once they may. */
  let next: { [K in Key]?: (typeof signals)[K]["value"] } = {};
  let hidden = false;
  let known = false;

  const latest = <K extends Key>(key: K): (typeof signals)[K]["value"] => next[key] ?? signals[key].peek();

  function merge<K extends "sessions" | "connections" | "channels" | "workspaces" | "calls">(key: K, diff: Diff<{ id: string }> | undefined): void {
    if (!diff) return;
    const map = new Map<string, { id: string }>(latest(key));
    for (const id of diff.gone ?? []) map.delete(id);
    for (const item of diff.set ?? []) map.set(item.id, item); // What is known keeps its place.
    if (key == "calls") {
      for (const id of map.keys()) {
        if (map.size <= MAX_CALLS) break;
        map.delete(id);
      }
    }
    (next as Record<string, unknown>)[key] = map;
  }

  function publish(): void {
    if (hidden) return;
    const now = next;
    next = {};
    batch(() => {
      for (const [key, value] of Object.entries(now)) signals[key as Key].value = value as never;
    });
  }

  function snapshot(state: State): void {
    const map = <T extends { id: string }>(items: T[] | null) => new Map((items ?? []).map((item) => [item.id, item])); // Go's empty list may be null.
    next = {
      server: state.server,
      sessions: map(state.sessions),
      connections: map(state.connections),
      channels: map(state.channels),
      workspaces: map(state.workspaces),
      origins: readOrigins(state.origins),
      counters: state.counters,
      calls: map(state.calls?.slice(-MAX_CALLS)),
    };
    known = true;
  }

  function change(c: Change): void {
    if (!known) throw Error("a change before any snapshot");
    if (c.server) next.server = c.server;
    if (c.origins) next.origins = readOrigins(c.origins);
    if (c.counters) next.counters = c.counters;
    merge("sessions", c.sessions);
    merge("connections", c.connections);
    merge("channels", c.channels);
    merge("workspaces", c.workspaces);
    merge("calls", c.calls);
    if (c.notices?.length) onNotices(c.notices);
  }

  return {
    ...signals,
    link,
    /** Throws at what it can't read. Events of other names are for later versions. */
    apply(event: StreamEvent): void {
      if (event.name == "snapshot") snapshot(JSON.parse(event.data));
      else if (event.name == "change") change(JSON.parse(event.data));
      publish();
    },
    hide(now: boolean): void {
      hidden = now;
      publish();
    },
  };
}

export type Store = ReturnType<typeof createStore>;
