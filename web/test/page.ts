/** A page made of fakes: just enough of a browser for the scripts to run in. */

import { mock } from "node:test";

/** A socket whose events the test fires. Scripts can't tell it from a real one. */
export class FakeSocket {
  static all: FakeSocket[] = [];
  static throws = false;
  readyState = 0;
  sent: string[] = [];
  closed: [number | undefined, string | undefined] | undefined;
  onopen?: (event: object) => void;
  onmessage?: (event: object) => void;
  onclose?: (event: object) => void;
  onerror?: (event: object) => void;

  constructor(readonly url: string) {
    if (FakeSocket.throws) throw new DOMException("insecure", "SecurityError");
    FakeSocket.all.push(this);
  }
  static get last(): FakeSocket {
    return FakeSocket.all.at(-1)!;
  }
  send(frame: string): void {
    this.sent.push(frame);
  }
  close(code?: number, reason?: string): void {
    this.readyState = 2;
    this.closed = [code, reason];
  }
  open(): void {
    this.readyState = 1;
    this.onopen?.({});
  }
  say(message: unknown): void {
    this.onmessage?.({ data: typeof message == "string" ? message : JSON.stringify(message) });
  }
  /** As browsers do: `error` comes first when the end was not clean. */
  end(code = 1006, reason = ""): void {
    this.readyState = 3;
    if (code == 1006) this.onerror?.({});
    this.onclose?.({ code, reason });
  }
  /** The messages sent, without the manifests unless asked for. */
  messages(type?: string): any[] {
    return this.sent.map((frame) => JSON.parse(frame)).filter((m) => (type ? m.type == type : m.type != "register_tools"));
  }
}

/** Counts of console lines by level, in order. */
export const lines: string[] = [];

const global = globalThis as any;
const define = (name: string, value: unknown) => Object.defineProperty(global, name, { value, writable: true, configurable: true });

export let permissionState: string | undefined;
/** Sets what the browser says of the permission; undefined for a browser without it. */
export function setPermission(state: string | undefined): void {
  permissionState = state;
  if (status) status.state = state!;
}
let status: { state: string; onchange: null | (() => void) } | undefined;
export const permission = () => status!;

/** Takes everything back to a page just loaded at `href`, with stopped clocks. */
export function freshPage(href = "http://localhost:8080/"): void {
  const listeners = new EventTarget();
  const document: any = new EventTarget();
  Object.assign(document, { hidden: false, title: "Notes" });
  const stored = new Map<string, string>();
  const { origin, hostname, pathname, protocol } = new URL(href);
  for (const key of ["__mcpTools", "__mcpPrompts", "__mcpResources", "__mcpResourceUpdated", "__mcpSummary", "__mcpAppName", "__mcpToolBus", Symbol.for("jsbridge")]) delete global[key];
  for (const name of ["window", "self", "top"]) define(name, global);
  for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"] as const) define(name, listeners[name].bind(listeners));
  define("document", document);
  define("location", { href, origin, hostname, pathname, protocol });
  define("isSecureContext", protocol == "https:" || hostname == "localhost");
  status = undefined;
  permissionState = undefined;
  define("navigator", {
    onLine: true,
    permissions: {
      async query({ name }: { name: string }) {
        if (permissionState === undefined || name != "loopback-network") throw new TypeError(name);
        return (status ??= { state: permissionState, onchange: null });
      },
    },
  });
  define("sessionStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
    removeItem: (key: string) => void stored.delete(key),
    stored,
  });
  define("WebSocket", FakeSocket);
  FakeSocket.all = [];
  FakeSocket.throws = false;
  lines.length = 0;
  mock.reset();
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  mock.method(Math, "random", () => 0.5);
  for (const level of ["debug", "info", "warn", "error"] as const) mock.method(console, level, (text: string) => text.startsWith("[jsbridge]") && lines.push(`${level} ${text}`));
}

/** Fires an event at window or document. */
export function fire(target: "window" | "document", type: string, fields: object = {}): void {
  global[target].dispatchEvent(Object.assign(new Event(type), fields));
}

/** Lets promises run, without any time passing. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await null;
  await new Promise((done) => setImmediate(done));
}

export const tick = (ms: number): void => mock.timers.tick(ms);
