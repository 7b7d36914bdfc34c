/** Entry of /connect.js: for a page that connects by itself, and lets its user see and choose where. */

import { install, type Bridge, type ConnectionState, type Status } from "./bridge.ts";
import { formatConnect, parseConnect } from "./connect-string.ts";
import { start as startExtras } from "./extras.ts";
import { messageOf } from "./readable.ts";
import { keepErrors } from "./thrown.ts";

export { parseConnect, type Connect } from "./connect-string.ts";
export type { ConnectionState } from "./bridge.ts";

export interface ConnectOptions {
  /** Names the page's app, and with it what is remembered. Not empty. */
  appName: string;
  /**
   * Address of the jsbridge server, http or https; its path is ignored. Default: where
   * this script was loaded from; http://localhost:8766 for the npm package.
   */
  server?: string | URL | undefined;
  /** Connect string until the user chooses another. Default: `appName`, a root connection of that name. */
  defaultChannel?: string | undefined;
  /**
   * Runs once, before the first connection: the place to declare tools. May be async.
   * If it fails there is no connection, and the next click or `init()` runs it again.
   */
  beforeConnect?: (() => unknown) | undefined;
  /** As `onConnectionStateChange`, from the start. */
  onStateChange?: StateListener | undefined;
}

/** `channel`, `appLabel` and `reason` are those of {@link ConnectionInfo}. */
export type StateListener = (state: ConnectionState, channel: string, appLabel: string, reason?: string) => void;

export interface ConnectionInfo {
  /**
   * `disconnected`: it is not tried, until a click or `init()`; `connecting`: it is tried, again and
   * again; `pending`: the server waits for a human to allow this origin; `connected`: tools can be called.
   */
  state: ConnectionState;
  /** The connect string in use. */
  channel: string;
  /** The connection's name: that of the connect string if it has one, else the app's. */
  appLabel: string;
  /** Why it is not connected, for people; absent where there is nothing to say. */
  reason?: string;
}

/** A page's connection. Its functions need no `this`, don't throw, and do nothing outside a browser. */
export interface McpConnect {
  /** Connects. Does nothing more when it is connected or about to be. */
  init(): void;
  /** For a button: connects at once; when connected or pending, asks for another connect string. */
  handleConnectClick(): void;
  /** Leaves, until a click, `init()` or a reload. */
  disconnect(): void;
  /** Has `cb` called after each change, not for the present state. Gives a function that ends it. */
  onConnectionStateChange(cb: StateListener): () => void;
  getConnectionState(): ConnectionInfo;
}

/** What was chosen for an app. */
type Choice = Pick<ConnectionInfo, "channel" | "appLabel">;

const page = globalThis as unknown as Window & { [key: symbol]: any };

/** Tells the other connections of this page, which may come from other copies of this script, to look again. */
const EVENT = "jsbridge-connect";

/** How often one click asks: a prompt() that a script answers must not hang the page. */
const MAX_ASKED = 5;

const QUESTION = 'Where to connect to jsbridge: a name, "channel:name", or the id from a snippet';

/**
 * Makes the connection of an app; `init()` starts it. Make it once, at the top of a module: what
 * is made twice for the same app shares one socket and shows the same states.
 *
 * The chosen connect string and name are remembered in localStorage, as `<appName>_mcp_channel` and
 * `<appName>_mcp_app_label`.
 *
 * @throws TypeError for an `appName`, `server` or callback that is none.
 */
export function createMcpConnect(options: ConnectOptions): McpConnect {
  const { appName, beforeConnect } = options;
  if (typeof appName != "string" || !appName) throw new TypeError("appName must be a text that is not empty");
  if (beforeConnect) mustBeFunction("beforeConnect", beforeConnect);
  const server = serverAddress(options.server ?? home());
  const inBrowser = typeof window == "object" && typeof document == "object";
  const initial = String(options.defaultChannel ?? appName);
  const listeners = new Set<StateListener>();
  let now: ConnectionInfo = { state: "disconnected", ...(inBrowser ? recall() : toChoice(initial)) };
  /** The page's bridge, while it is ours. */
  let bridge: Bridge | undefined;
  let unsubscribe: (() => void) | undefined;
  /** beforeConnect, while it runs; a stop does not end it. */
  let preparing: Promise<unknown> | undefined;
  let prepared = !beforeConnect;
  let starting = false;
  /** Counts starts and stops, so that a slow beforeConnect can't undo a disconnect(). */
  let round = 0;

  function show(state: ConnectionState, { channel, appLabel }: Choice, reason?: string): void {
    const next: ConnectionInfo = { state, channel, appLabel, ...(reason && { reason }) };
    if (same(now, next)) return;
    now = next;
    for (const listener of [...listeners]) {
      // Whoever changed the state in its turn has told everybody.
      if (now != next) return;
      if (!listeners.has(listener)) continue;
      try {
        listener(state, channel, appLabel, reason);
      } catch (e) {
        console.error("[jsbridge] a listener of the connection state threw:", e);
      }
    }
  }

  function toChoice(text: string, appLabel = appName): Choice {
    const parsed = parseConnect(text);
    return { channel: formatConnect(parsed), appLabel: ("name" in parsed && parsed.name) || appLabel };
  }

  /** What this page chose last, else what one before it did, else the default. */
  function recall(): Choice {
    const choice = choices().get(appName);
    if (choice) return choice;
    const stored = toChoice(load("channel"), load("app_label").trim().slice(0, 64) || appName);
    return stored.channel ? stored : toChoice(initial);
  }

  function remember(choice: Choice): void {
    const last = choices().get(appName)?.appLabel;
    // The page's own name stays, ours follows the label.
    if (!page.__mcpAppName || page.__mcpAppName === last) page.__mcpAppName = choice.appLabel;
    choices().set(appName, choice);
    store("channel", choice.channel);
    store("app_label", choice.appLabel);
  }

  function load(key: string): string {
    try {
      return localStorage.getItem(`${appName}_mcp_${key}`) ?? "";
    } catch {
      return ""; // Sandboxed, or forbidden by the user.
    }
  }

  function store(key: string, value: string): void {
    try {
      localStorage.setItem(`${appName}_mcp_${key}`, value);
    } catch {
      // As above, or full.
    }
  }

  /** Takes up the page's bridge if it is ours, whoever made it, and shows its state. */
  function follow(): void {
    const found: Bridge | undefined = page[Symbol.for("jsbridge")];
    if (found && found == bridge) return tell(found.status());
    const lost = bridge;
    release();
    const choice = recall();
    if (found?.matches(server.origin, choice.channel)) {
      bridge = found;
      unsubscribe = found.subscribe(hear);
      tell(found.status());
    } else if (lost) show("disconnected", choice, found && "another script connected this page elsewhere");
  }

  function release(): void {
    unsubscribe?.();
    unsubscribe = bridge = undefined;
  }

  function hear(status: Status): void {
    // At its end it may make way for one that is there in a moment, and ours too.
    if (status.state == "disconnected") queueMicrotask(follow);
    else tell(status);
  }

  function tell({ state, reason, connect }: Status): void {
    let choice = recall();
    // The server may have moved the page.
    const current = toChoice(connect);
    if (current.channel && current.channel != choice.channel) remember((choice = current));
    show(state, choice, reason);
  }

  function start(choice?: Choice): void {
    if (!inBrowser || starting) return;
    const mine = ++round;
    if (!bridge || now.state == "disconnected") show("connecting", choice ?? recall());
    if (prepared) return connect(choice);
    starting = true;
    preparing ??= (async () => beforeConnect!())();
    preparing.then(
      () => {
        prepared = true;
        if (mine == round) connect(choice);
      },
      (e) => {
        preparing = undefined;
        if (mine == round) fail("beforeConnect failed: " + messageOf(e));
      },
    );
  }

  function connect(choice = recall()): void {
    starting = false;
    if (!choice.channel) return fail(`"${initial}" has no character of a connect string: A-Z a-z 0-9 _ -`);
    remember(choice);
    try {
      install(server, choice.channel, () => Promise.resolve({ start: startExtras }));
    } catch (e) {
      return fail(messageOf(e));
    }
    follow();
    window.dispatchEvent(new Event(EVENT));
  }

  function fail(reason: string): void {
    starting = false;
    console.error(`[jsbridge] ${appName}: ${reason}`);
    // Another connection of this app may do well.
    follow();
    if (!bridge) show("disconnected", now, reason);
  }

  /** Asks for a connect string, until one is whole. `undefined` when there is no other. */
  function ask(text: string): string | undefined {
    let question = QUESTION;
    for (let asked = 0; asked < MAX_ASKED; asked++) {
      let given: string | null | undefined;
      try {
        given = window.prompt(question, text)?.trim();
      } catch (e) {
        console.error("[jsbridge] this browser can't ask:", e); // Some embedders have no prompt().
      }
      if (!given) return;
      const mended = formatConnect(parseConnect(given));
      if (mended == given || (mended && mended == given.toLowerCase())) return mended;
      text = mended || text;
      question = "Each part may have A-Z a-z 0-9 _ - and 64 characters. " + QUESTION;
    }
  }

  if (inBrowser) {
    // Now, not when it connects: tools that the page registers until then would lose what they throw.
    keepErrors();
    window.addEventListener(EVENT, follow);
    // Not at once: a listener may use what is being made here.
    queueMicrotask(follow);
  }
  const connection: McpConnect = {
    init: () => start(),
    handleConnectClick() {
      if (!inBrowser || starting) return;
      follow();
      // A session that the server does not know never comes back: only another string helps.
      const spent = bridge?.status().code == 4404 && parseConnect(now.channel).kind == "session";
      if (!spent && now.state != "connected" && now.state != "pending") return start();
      const given = ask(spent ? toChoice(initial).channel : now.channel);
      if (given && (spent || given != now.channel)) start(toChoice(given));
    },
    disconnect() {
      if (!inBrowser) return;
      round++;
      starting = false;
      follow();
      const own = bridge;
      release();
      own?.stop();
      show("disconnected", now);
    },
    onConnectionStateChange(cb) {
      mustBeFunction("cb", cb);
      const listener: StateListener = (...args) => cb(...args);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    getConnectionState: () => ({ ...now }),
  };
  if (options.onStateChange) connection.onConnectionStateChange(options.onStateChange);
  return connection;
}

/** What this page chose, by app: shared by all copies of this script, and there without storage too. */
const choices = (): Map<string, Choice> => (page[Symbol.for("jsbridge.connect")] ??= new Map());

/** The server that this script came from, unless it was bundled into the page's own. */
function home(): string {
  const from = /^https?:/.test(import.meta.url) && new URL(import.meta.url).origin;
  return from || "http://localhost:8766";
}

function serverAddress(given: string | URL): URL {
  try {
    const url = new URL(given);
    if (/^https?:$/.test(url.protocol)) return url;
  } catch {
    // Said below.
  }
  throw new TypeError(`server must be an address such as http://localhost:8766, not ${given}`);
}

function mustBeFunction(name: string, value: unknown): void {
  if (typeof value != "function") throw new TypeError(name + " must be a function");
}

const same = (a: ConnectionInfo, b: ConnectionInfo) =>
  a.state == b.state && a.channel == b.channel && a.appLabel == b.appLabel && a.reason == b.reason;
