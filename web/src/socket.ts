/** The socket's life: when to connect, when to wait, when to stop. */

import { isLasting, socketOrigin, type Cause } from "./diagnose.ts";

/** What the owner does with the socket's events. */
export interface SocketHooks {
  /** An attempt begins. */
  opening(): void;
  opened(): void;
  frame(data: unknown): void;
  /** The socket is gone, for whatever reason. */
  ended(): void;
  /** The page goes, maybe to return. Gives the last call that was taken, for the server: later ones did not run here. */
  hiding(): string;
  /** The page is back, as it was. */
  returned(): void;
  /** Why an attempt failed. `opened`: one did not. `keep` takes the browser's permission and gives it back; it is watched while it is in the way. */
  cause(opened: boolean, keep: Keep): Promise<Cause>;
  /** Trouble that explain() knows, or a close code. `lasting`: there is no retry. */
  tell(kind: Cause | number, detail?: string, lasting?: boolean): void;
}

export type Keep = (found: PermissionStatus | undefined) => PermissionStatus | undefined;

/** Nothing is queued here: what can't be sent now is not sent. */
export interface Socket {
  connect(): void;
  send(frame: string): void;
  /** Closes and stays closed until the next connect(). */
  close(): void;
}

const CAP_MS = 30_000;

/** What may start the next attempt. */
const enum Wait {
  /** Only connect(), or a change of the browser's permission. */
  Held,
  /** Also a timer, and what wakes a page. */
  Free,
  /** Only connect() and the timer. */
  Slow,
}

/** Full jitter, so that many tabs don't return in step. */
export const backoff = (attempt: number): number => Math.max(100, Math.random() * Math.min(CAP_MS, 500 * 2 ** attempt));

/** Does nothing before connect(). Listeners live until `signal` aborts. */
export function createSocket(server: URL, path: () => string, signal: AbortSignal, hooks: SocketHooks): Socket {
  let ws: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout>;
  let attempt = 0;
  /** When the server first spoke: it took us in. */
  let welcomedAt = 0;
  let opened = false;
  let resumed = false;
  let wait = Wait.Held;
  let parked = Wait.Held;
  let permission: PermissionStatus | undefined;
  /** Counts decisions, so that a slow diagnosis can't overrule a later one. */
  let round = 0;

  function decide(next: Wait): number {
    clearTimeout(timer);
    if (permission) permission.onchange = null;
    wait = next;
    return ++round;
  }

  function connect(): void {
    decide(Wait.Free);
    if (ws) return;
    hooks.opening();
    let socket: WebSocket;
    try {
      socket = ws = new WebSocket(socketOrigin(server) + path());
    } catch {
      return void diagnose("mixed");
    }
    welcomedAt = 0;
    const current = (handle: (event: any) => void) => (event: unknown) => void (socket == ws && handle(event));
    socket.onopen = current(() => {
      opened = true;
      resumed = false;
      hooks.opened();
    });
    socket.onmessage = current((event) => {
      welcomedAt ||= Date.now();
      hooks.frame(event.data);
    });
    socket.onclose = current((event) => end(event.code, ` (${event.reason || event.code})`));
    // What a policy blocks never gets as far as a close event.
    socket.onerror = current(() => socket.readyState == 3 && end(1006));
  }

  function drop(): WebSocket | undefined {
    const socket = ws;
    ws = undefined;
    if (socket) hooks.ended();
    return socket;
  }

  function end(code: number, detail?: string): void {
    drop();
    // A server that accepts and hangs up must not be asked ever faster.
    if (welcomedAt && Date.now() - welcomedAt >= 5_000) attempt = 0;
    if (/^(100[038]|440[49])$/.test(code as any)) {
      decide(Wait.Held);
      hooks.tell(code, detail, true);
    } else if (code == 1009 || code == 1013) {
      hooks.tell(code, detail);
      retry(code == 1013 ? Wait.Slow : Wait.Free);
    } else if (code == 1006 && resumed) {
      // The browser dropped it while the page was frozen: the server is likely well.
      resumed = false;
      connect();
    } else diagnose(undefined, detail);
  }

  async function diagnose(cause?: Cause, detail?: string): Promise<void> {
    // Until the cause is known nothing may connect: each try could cost a prompt.
    const mine = decide(Wait.Held);
    cause ||= await hooks.cause(opened, (found) => (permission = found));
    if (mine != round) return;
    hooks.tell(cause, detail, isLasting(cause));
    if (!isLasting(cause)) retry(Wait.Free);
    else if (permission) permission.onchange = () => (permission!.state == "granted" ? connect() : diagnose());
  }

  function retry(next: Wait): void {
    decide(next);
    timer = setTimeout(due, backoff(attempt++) + (next == Wait.Slow ? 10_000 : 0));
  }

  function due(): void {
    decide(Wait.Free);
    if (document.hidden) return;
    if (navigator.onLine) connect();
    // A server on this machine needs no network, so being offline only slows things down.
    else timer = setTimeout(connect, CAP_MS);
  }

  function wake(): void {
    if (!ws && wait == Wait.Free && !document.hidden && navigator.onLine) connect();
  }

  const on = (target: EventTarget, type: string, handle: (event: any) => void) => target.addEventListener(type, handle, { signal });

  on(document, "visibilitychange", wake);
  on(window, "online", wake);
  on(window, "pagehide", () => {
    // In the back/forward cache an open socket would answer pings and no calls.
    parked = wait;
    if (parked) decide(Wait.Held);
    const reason = "pagehide " + hooks.hiding();
    // Over 123 bytes it would throw, and stay open.
    drop()?.close(4000, reason.slice(0, 40));
  });
  on(window, "pageshow", (event) => {
    if (event.persisted) {
      hooks.returned();
      if (parked) connect();
    }
    wake();
  });
  on(document, "resume", () => {
    // Its socket is lost, which it learns now or has just learned. It may be used while hidden.
    resumed = true;
    if (!ws && wait == Wait.Free) connect();
  });
  on(document, "securitypolicyviolation", ({ disposition, blockedURI, effectiveDirective }) => {
    if (ws?.readyState == 1 || disposition == "report" || !blockedURI?.startsWith(socketOrigin(server))) return;
    drop();
    diagnose("csp", effectiveDirective);
  });

  return {
    connect,
    send(frame) {
      if (ws?.readyState == 1) ws.send(frame);
    },
    close() {
      decide(Wait.Held);
      drop()?.close(1000);
    },
  };
}
