/** The bridge of a page: wires the socket to the tools, and gives the page its controls. */

import { explain } from "./diagnose.ts";
import { createDispatch } from "./dispatch.ts";
import { showBadge } from "./identify.ts";
import { leaveInstance, takeInstance } from "./instance.ts";
import { createSocket } from "./socket.ts";
import { readManifest, readTools, watchPage } from "./tools.ts";
import { byteLength, decode, encode, type PageMessage, type Problem } from "./wire.ts";

/** What copies of this script, whichever server they came from, know of each other. */
export interface Bridge {
  matches(origin: string, tenant: string): boolean;
  /** The page's declarations may have changed. */
  changed(): void;
  /** Connects at once if it is waiting or has ended. */
  connect(): void;
  /** Leaves and takes everything off the page but `__mcpReconnect`. */
  stop(): void;
}

/** Where the page's only bridge is found. */
const KEY = Symbol.for("jsbridge");

const page = globalThis as unknown as Window & { [KEY]?: Bridge | undefined };

/** Connects the page, or wakes the bridge it has. A bridge to elsewhere makes way. */
export function install(server: URL, tenant: string): void {
  if (!page[KEY]?.matches(server.origin, tenant)) {
    page[KEY]?.stop();
    page[KEY] = createBridge(server, tenant);
  }
  page[KEY]!.changed();
  page[KEY]!.connect();
}

function createBridge(server: URL, tenant: string): Bridge {
  const life = new AbortController();
  const { signal } = life;
  const instance = takeInstance();
  /** Lines that are printed once. */
  const told = new Set<string>();
  let trouble: unknown;
  let limit = Infinity;
  let label = "";
  let prefix = "";
  let connected = "";
  /** The manifest that this socket has, and one that was too large for it. */
  let sent = "";
  let refused = "";
  let planned = false;
  /** The newest call that came over this socket. */
  let seen = "-";

  const log = (text: string, level: "info" | "warn" = "warn") => console[level]("[jsbridge] " + text);
  const once = (text: string) => void (told.has(text) || log(text), told.add(text));
  const send = (message: PageMessage) => void transmit(encode(message));
  const complain = (problems?: Problem[]) => problems?.forEach(({ name, index, reason }) => once(`tool ${name || index}: ${reason}`));

  const dispatch = createDispatch(transmit, readTools, () => limit);

  const socket = createSocket(server, () => `/ws?tenant=${encodeURIComponent(tenant)}&v=1&instance=${instance}`, signal, {
    opened() {
      sent = connected = "";
      seen = "-";
      register();
    },
    frame: receive,
    ended: dispatch.reset,
    seen: () => seen,
    tell,
  });

  /** One line for each kind of trouble, until there was a connection in between. */
  function tell(kind: Parameters<typeof explain>[0], detail?: string): void {
    // All is measured before it goes, but the first manifest goes before the limit is known.
    if (kind == 1009) refused = sent;
    if (kind != trouble) log(explain((trouble = kind), server, detail));
  }

  /** Sends the manifest if it differs from what this socket has seen. */
  function register(): void {
    planned = false;
    const { frame, problems } = readManifest(label);
    complain(problems);
    if (frame == sent || frame == refused) return;
    transmit((sent = frame));
  }

  function transmit(frame: string): boolean {
    const fits = byteLength(frame) <= limit;
    if (fits) socket.send(frame);
    else once(`not sent: over the limit of ${limit} bytes: ${frame.slice(0, 60)}`);
    return fits;
  }

  function announce(as: string, tools?: unknown[]): void {
    if (!connected) log(`${prefix && "re"}connected to ${server.origin} as ${as}, tools: ${tools?.length}`, "info");
    prefix = connected = as;
    trouble = 0;
  }

  function receive(data: unknown): void {
    const message = decode(data);
    switch (message?.type) {
      case "welcome":
        limit = message.limits?.frameBytes || Infinity;
        if (message.state == "pending") tell("pending");
        return;
      case "registered":
        complain(message.problems);
        return announce(message.prefix, message.tools);
      case "call":
        seen = message.id;
        return void dispatch.call(message);
      case "cancel":
        return dispatch.cancel(message.id, message.reason);
      case "identify":
        return showBadge(`${message.label || label || document.title} · ${prefix}`);
      case "move_channel":
        leave();
        tenant = message.channel;
        return socket.connect();
      case "approved":
        return log("approved", "info");
      case "probe":
        return send({ type: "alive", id: message.id });
      case "error":
        return once("refused: " + message.message);
      default:
        // No message, or one of a later version.
        message satisfies null | undefined;
    }
  }

  function leave(): void {
    send({ type: "leave_channel" });
    socket.close();
  }

  watchPage(() => page[KEY]?.changed());
  page.addEventListener("pagehide", () => leaveInstance(instance), { signal });
  page.addEventListener("pageshow", ({ persisted }) => persisted && takeInstance(), { signal });
  page.__mcpRename = (given = prompt("Tab name:", label || document.title) || "") => {
    given = given.trim();
    if (given) send({ type: "rename_connection", appLabel: (label = given) });
  };
  page.__mcpLeaveChannel = leave;
  page.__mcpReconnect = () => install(server, tenant);

  function stop(): void {
    leave();
    life.abort();
    leaveInstance(instance);
    page[KEY] = page.__mcpRename = page.__mcpLeaveChannel = page.__mcpDisconnect = undefined;
  }
  page.__mcpDisconnect = stop;

  return {
    matches: (origin, name) => origin == server.origin && name == tenant,
    changed() {
      // Once for all changes of a turn. Not by a timer: hidden tabs throttle those.
      if (!planned) queueMicrotask(register);
      planned = true;
    },
    connect: socket.connect,
    stop,
  };
}
