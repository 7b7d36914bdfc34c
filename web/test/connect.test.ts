import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { install } from "../src/bridge.ts";
import { createMcpConnect, type ConnectOptions } from "../src/connect.ts";
import * as extras from "../src/extras.ts";
import { FakeSocket, freshPage, lines, settle, tick } from "./page.ts";

const page = globalThis as any;
const uuid = "3f2b8c1e-9a4d-4e57-b1c6-0d2f7a8e5b93";
const welcome = { type: "welcome", connectionId: "c", state: "ready", limits: { frameBytes: 1e6, tools: 512 } };
const registered = { type: "registered", prefix: "notes", tools: [], problems: [] };

/** What prompt() was asked, and what it answers in turn. */
let asked: [string, string][];
let answers: unknown[];
let stored: Map<string, string>;

beforeEach(() => {
  freshPage();
  delete page[Symbol.for("jsbridge.connect")];
  stored = new Map();
  define("localStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
  });
  asked = [];
  answers = [];
  define("prompt", (question: string, text: string) => (asked.push([question, text]), answers.shift() ?? null));
});

const define = (name: string, value: unknown) => Object.defineProperty(page, name, { value, writable: true, configurable: true });

/** A connection, and the states that it told of. */
function make(options: Partial<ConnectOptions> = {}) {
  const told: unknown[][] = [];
  const connection = createMcpConnect({ appName: "notes", onStateChange: (...args) => void told.push(args), ...options });
  return { ...connection, told, states: () => told.map(([state]) => state) };
}

async function accept(): Promise<FakeSocket> {
  await settle();
  const ws = FakeSocket.last;
  ws.open();
  ws.say(welcome);
  ws.say(registered);
  await settle();
  return ws;
}

async function connected(options?: Partial<ConnectOptions>) {
  const connection = make(options);
  connection.init();
  const ws = await accept();
  assert.equal(connection.getConnectionState().state, "connected");
  return { ...connection, ws };
}

const tenant = (ws = FakeSocket.last) => new URL(ws.url).searchParams.get("tenant");
const open = () => FakeSocket.all.filter((ws) => !ws.closed && ws.readyState < 2);

test("connects under the app's name, and the state follows the socket", async () => {
  const { init, told, getConnectionState } = make();
  assert.deepEqual(getConnectionState(), { state: "disconnected", channel: "notes", appLabel: "notes" });
  await settle();
  assert.equal(told.length, 0);
  init();
  assert.equal(getConnectionState().state, "connecting");
  assert.equal(new URL(FakeSocket.last.url).origin, "ws://localhost:8766");
  assert.equal(tenant(), "notes");
  assert.equal(page.__mcpAppName, "notes");
  FakeSocket.last.open();
  FakeSocket.last.say(welcome);
  assert.equal(getConnectionState().state, "connecting");
  FakeSocket.last.say(registered);
  assert.deepEqual(told, [
    ["connecting", "notes", "notes", undefined],
    ["connected", "notes", "notes", undefined],
  ]);
  FakeSocket.last.end(1001, "stopping");
  await settle();
  const [state, , , reason] = told.at(-1)!;
  assert.equal(state, "connecting");
  assert.match(String(reason), /stopping/);
  tick(500);
  await accept();
  assert.deepEqual(getConnectionState(), { state: "connected", channel: "notes", appLabel: "notes" });
});

test("a server that is not there: connecting, with a reason, and a click asks it at once", async () => {
  const { init, handleConnectClick, getConnectionState } = make();
  init();
  FakeSocket.last.end();
  await settle();
  assert.equal(getConnectionState().state, "connecting");
  assert.match(getConnectionState().reason!, /is jsbridge running/);
  handleConnectClick();
  assert.equal(FakeSocket.all.length, 2);
  assert.deepEqual(asked, []);
});

test("pending shows the server's reason, and ends with the approval", async () => {
  const { init, told } = make();
  init();
  await settle();
  FakeSocket.last.open();
  FakeSocket.last.say({ ...welcome, state: "pending", reason: "run: jsbridge allow http://localhost:8080" });
  assert.deepEqual(told.at(-1), ["pending", "notes", "notes", "run: jsbridge allow http://localhost:8080"]);
  FakeSocket.last.say({ type: "approved" });
  FakeSocket.last.say(registered);
  assert.deepEqual(told.at(-1), ["connected", "notes", "notes", undefined]);
});

test("an end for good is disconnected, with a reason, until a click", async () => {
  const { ws, getConnectionState, handleConnectClick } = await connected();
  ws.end(1008, "origin refused");
  await settle();
  assert.equal(getConnectionState().state, "disconnected");
  assert.match(getConnectionState().reason!, /origin refused/);
  tick(120_000);
  assert.equal(FakeSocket.all.length, 1);
  handleConnectClick();
  await accept();
  assert.equal(FakeSocket.all.length, 2);
  assert.equal(getConnectionState().state, "connected");
});

test("options: server, defaultChannel, and what is wrong with them", () => {
  make({ server: "https://bridge.example:9/some/path", defaultChannel: "team:" }).init();
  assert.match(FakeSocket.last.url, /^wss:\/\/bridge\.example:9\/ws\?/);
  assert.equal(tenant(), "team:");
  make({ appName: "other", server: new URL("http://127.0.0.1:1"), defaultChannel: "my app" }).init();
  assert.equal(tenant(), "my-app");
  for (const server of ["", "localhost:8766", "ws://localhost", "file:///x"]) assert.throws(() => make({ server }), { name: "TypeError", message: /http:\/\/localhost:8766/ });
  for (const appName of ["", undefined, 5] as any[]) assert.throws(() => make({ appName }), { name: "TypeError", message: /appName/ });
  assert.throws(() => make({ beforeConnect: "x" as any }), /beforeConnect must be a function/);
  assert.throws(() => make({ onStateChange: {} as any }), TypeError);
});

test("a name that is no connect string: disconnected with the reason", async () => {
  const { init, getConnectionState } = make({ appName: "日本語" });
  init();
  assert.equal(FakeSocket.all.length, 0);
  assert.equal(getConnectionState().state, "disconnected");
  assert.match(getConnectionState().reason!, /日本語/);
  assert.equal(lines.length, 1);
});

test("the chosen string and its name survive a reload", async () => {
  const { handleConnectClick, getConnectionState } = await connected();
  answers = ["team:bob"];
  handleConnectClick();
  assert.deepEqual(Object.fromEntries(stored), { notes_mcp_channel: "team:bob", notes_mcp_app_label: "bob" });
  assert.equal(getConnectionState().appLabel, "bob");
  assert.equal(page.__mcpAppName, "bob");
  const kept = new Map(stored);
  freshPage();
  delete page[Symbol.for("jsbridge.connect")];
  stored = kept;
  make().init();
  assert.equal(tenant(), "team:bob");
  assert.equal(page.__mcpAppName, "bob");
});

test("the remembered name serves a string without one; a page's own name stays", async () => {
  stored.set("notes_mcp_channel", "team:").set("notes_mcp_app_label", " My notes ");
  assert.equal(make().getConnectionState().appLabel, "My notes");
  page.__mcpAppName = "Mine";
  const { handleConnectClick, getConnectionState } = await connected();
  assert.equal(page.__mcpAppName, "Mine");
  answers = ["team:"];
  handleConnectClick();
  assert.equal(getConnectionState().appLabel, "My notes");
  page.__mcpAppName = "";
  make().init();
  assert.equal(page.__mcpAppName, "My notes");
});

test("storage that throws or holds rubbish is ignored", async () => {
  for (const rubbish of ["", "!!!", "日本:x", "\0"]) {
    stored.set("notes_mcp_channel", rubbish);
    assert.equal(make().getConnectionState().channel, "notes");
  }
  stored.set("notes_mcp_channel", `a b:${"x".repeat(1e6)}`).set("notes_mcp_app_label", "y".repeat(1e6));
  assert.equal(make().getConnectionState().channel, `a-b:${"x".repeat(64)}`);
  stored.set("notes_mcp_channel", uuid);
  assert.equal(make().getConnectionState().appLabel, "y".repeat(64));
  Object.defineProperty(page, "localStorage", { configurable: true, get() { throw new DOMException("sandboxed", "SecurityError"); } });
  const { handleConnectClick, getConnectionState } = await connected();
  const other = make();
  answers = ["bob"];
  handleConnectClick();
  await accept();
  // Without storage it is the page that remembers.
  assert.equal(getConnectionState().channel, "bob");
  assert.equal(other.getConnectionState().channel, "bob");
  assert.equal(make().getConnectionState().channel, "bob");
  assert.deepEqual(lines.filter((line) => line.startsWith("error")), []);
});

test("a click while connected asks; no answer, an empty one and the same one change nothing", async () => {
  const { handleConnectClick, told } = await connected();
  const before = told.length;
  for (const answer of [null, "", "  ", "notes", " notes "]) {
    answers = [answer];
    handleConnectClick();
  }
  assert.deepEqual(asked.map(([, text]) => text), Array(5).fill("notes"));
  assert.equal(FakeSocket.all.length, 1);
  assert.equal(told.length, before);
});

test("switching: the old socket gets leave_channel and closes at once", async () => {
  const { handleConnectClick, states, getConnectionState, ws } = await connected();
  answers = ["bob"];
  handleConnectClick();
  assert.deepEqual(ws.messages().at(-1), { type: "leave_channel" });
  assert.equal(ws.closed?.[0], 1000);
  assert.equal(tenant(), "bob");
  await accept();
  assert.deepEqual(getConnectionState(), { state: "connected", channel: "bob", appLabel: "bob" });
  assert.deepEqual(states(), ["connecting", "connected", "connecting", "connected"]);
  assert.equal(open().length, 1);
});

test("a string that needs mending is asked again, with the mended one", async () => {
  const { handleConnectClick } = await connected();
  answers = ["my team: bob!", "my-team:bob"];
  handleConnectClick();
  assert.deepEqual(asked.map(([, text]) => text), ["notes", "my-team:bob"]);
  assert.notEqual(asked[0]![0], asked[1]![0]);
  assert.equal(tenant(), "my-team:bob");
  await accept();
  asked = [];
  answers = ["!!!", ":x", null];
  handleConnectClick();
  assert.deepEqual(asked.map(([, text]) => text), Array(3).fill("my-team:bob"));
  assert.equal(tenant(), "my-team:bob");
});

test("a UUID needs no mending, in whatever case; another click may leave it", async () => {
  const { handleConnectClick, getConnectionState } = await connected();
  answers = [uuid.toUpperCase()];
  handleConnectClick();
  assert.equal(asked.length, 1);
  assert.equal(tenant(), uuid);
  assert.equal(getConnectionState().appLabel, "notes");
  await accept();
  answers = [uuid.toUpperCase()];
  handleConnectClick();
  assert.equal(FakeSocket.all.length, 2);
  answers = ["notes"];
  handleConnectClick();
  assert.equal(tenant(), "notes");
});

test("a session that has ended: a click offers the default", async () => {
  stored.set("notes_mcp_channel", uuid);
  const { init, handleConnectClick, getConnectionState } = make({ defaultChannel: "team:me" });
  init();
  await settle();
  FakeSocket.last.open();
  FakeSocket.last.end(4404, "the MCP session of this snippet has ended; ask your agent for a new one");
  await settle();
  assert.match(getConnectionState().reason!, /session of this snippet has ended/);
  answers = [null, "team:me"];
  handleConnectClick();
  assert.equal(FakeSocket.all.length, 1);
  handleConnectClick();
  assert.deepEqual(asked.map(([, text]) => text), ["team:me", "team:me"]);
  assert.equal(tenant(), "team:me");
});

test("a session that was only left, or refused, is tried again by a click", async () => {
  stored.set("notes_mcp_channel", uuid);
  const { handleConnectClick, getConnectionState } = await connected();
  for (const code of [1000, 1008, 4409]) {
    FakeSocket.last.end(code, "why");
    await settle();
    assert.equal(getConnectionState().state, "disconnected");
    handleConnectClick();
    assert.equal(getConnectionState().state, "connecting");
    await accept();
  }
  assert.deepEqual(asked, []);
  assert.equal(tenant(), uuid);
});

test("a string that names nothing, and is no session, is tried again too", async () => {
  const { handleConnectClick } = await connected();
  FakeSocket.last.end(4404, "why");
  await settle();
  handleConnectClick();
  assert.deepEqual(asked, []);
  assert.equal(FakeSocket.all.length, 2);
});

test("what WebMCP tools throw is kept from the start, before it connects", () => {
  const registerTool = () => {};
  const context = { registerTool };
  Object.defineProperty(document, "modelContext", { configurable: true, value: context });
  make();
  assert.notEqual(context.registerTool, registerTool);
});

test("a prompt that always gives the same, or throws, does not hang the page", async () => {
  const { handleConnectClick } = await connected();
  answers = Array(50).fill("a b");
  handleConnectClick();
  assert.ok(asked.length < 10);
  define("prompt", () => { throw Error("not supported"); });
  handleConnectClick();
  assert.match(lines.at(-1)!, /^error \[jsbridge\] this browser can't ask/);
  assert.equal(FakeSocket.all.length, 1);
});

test("beforeConnect runs once, before the first connection, and clicks meanwhile do nothing", async () => {
  let runs = 0;
  let go!: () => void;
  const beforeConnect = () => (runs++, new Promise<void>((done) => (go = done)));
  const { init, handleConnectClick, disconnect, states } = make({ beforeConnect });
  init();
  handleConnectClick();
  handleConnectClick();
  init();
  await settle();
  assert.equal(runs, 1);
  assert.deepEqual(states(), ["connecting"]);
  assert.equal(FakeSocket.all.length, 0);
  page.__mcpTools = [{ name: "a", description: "A", fn: () => 1 }];
  go();
  const ws = await accept();
  assert.equal(FakeSocket.all.length, 1);
  assert.deepEqual(ws.messages("register_tools")[0].tools.map((t: any) => t.name), ["a"]);
  disconnect();
  handleConnectClick();
  assert.equal(runs, 1);
  assert.equal(FakeSocket.all.length, 2);
});

test("beforeConnect that fails, at once or later: the reason, one line, and a click tries again", async () => {
  let fail: (() => unknown) | undefined = () => { throw Error("no tools"); };
  const { init, handleConnectClick, getConnectionState } = make({ beforeConnect: () => fail?.() });
  init();
  await settle();
  assert.deepEqual(getConnectionState(), { state: "disconnected", channel: "notes", appLabel: "notes", reason: "beforeConnect failed: no tools" });
  fail = () => Promise.reject(undefined);
  handleConnectClick();
  await settle();
  assert.equal(getConnectionState().reason, "beforeConnect failed: undefined");
  assert.deepEqual(lines, ["error [jsbridge] notes: beforeConnect failed: no tools", "error [jsbridge] notes: beforeConnect failed: undefined"]);
  fail = undefined;
  handleConnectClick();
  await accept();
  assert.equal(getConnectionState().state, "connected");
});

test("beforeConnect of a second connection, while the first is connected", async () => {
  const first = await connected();
  const failing = make({ beforeConnect: () => Promise.reject(Error("no tools")) });
  failing.init();
  await settle();
  assert.equal(lines.at(-1), "error [jsbridge] notes: beforeConnect failed: no tools");
  assert.deepEqual(failing.getConnectionState(), first.getConnectionState());
  const slow = make({ beforeConnect: () => new Promise(() => {}) });
  await settle();
  slow.init();
  slow.handleConnectClick();
  assert.deepEqual(asked, []);
  assert.equal(slow.getConnectionState().state, "connected");
});

test("a string chosen before beforeConnect is done is not forgotten", async () => {
  stored.set("notes_mcp_channel", uuid);
  make().init();
  await settle();
  FakeSocket.last.open();
  FakeSocket.last.end(4404, "gone");
  let go!: () => void;
  const { handleConnectClick, init } = make({ beforeConnect: () => new Promise<void>((done) => (go = done)) });
  await settle();
  answers = ["team:me"];
  handleConnectClick();
  init();
  await settle();
  go();
  await accept();
  assert.equal(tenant(), "team:me");
});

test("what install throws is the reason", async () => {
  const { handleConnectClick, told } = await connected();
  const crypto = Object.getOwnPropertyDescriptor(page, "crypto")!;
  Object.defineProperty(page, "crypto", { configurable: true, get() { throw Error("no crypto"); } });
  sessionStorage.setItem = () => {}; // Or the next bridge has an id.
  answers = ["bob"];
  try {
    handleConnectClick();
  } finally {
    Object.defineProperty(page, "crypto", crypto);
  }
  assert.deepEqual(told.at(-1), ["disconnected", "bob", "bob", "no crypto"]);
});

test("disconnect while beforeConnect runs: it connects only when asked again, without a second run", async () => {
  let runs = 0;
  let go!: () => void;
  const { init, disconnect, states } = make({ beforeConnect: () => (runs++, new Promise<void>((done) => (go = done))) });
  init();
  disconnect();
  await settle();
  init();
  disconnect();
  go();
  await settle();
  assert.equal(FakeSocket.all.length, 0);
  assert.equal(states().at(-1), "disconnected");
  init();
  await accept();
  assert.equal(runs, 1);
  assert.equal(states().at(-1), "connected");
});

test("disconnect is for good, until a click or init", async () => {
  const { disconnect, handleConnectClick, init, told, getConnectionState, ws } = await connected();
  disconnect();
  assert.deepEqual(ws.messages().at(-1), { type: "leave_channel" });
  assert.equal(ws.closed?.[0], 1000);
  assert.deepEqual(told.at(-1), ["disconnected", "notes", "notes", undefined]);
  disconnect();
  await settle();
  tick(120_000);
  assert.equal(FakeSocket.all.length, 1);
  handleConnectClick();
  await accept();
  assert.equal(getConnectionState().state, "connected");
  disconnect();
  init();
  await accept();
  assert.equal(FakeSocket.all.length, 3);
  assert.equal(open().length, 1);
  assert.deepEqual(asked, []);
});

test("a move by the server is shown and stored", async () => {
  const { told, ws } = await connected();
  ws.say({ type: "move_channel", channel: "team:bob" });
  await accept();
  assert.deepEqual(told.at(-1), ["connected", "team:bob", "bob", undefined]);
  assert.deepEqual(Object.fromEntries(stored), { notes_mcp_channel: "team:bob", notes_mcp_app_label: "bob" });
  FakeSocket.last.say({ type: "move_channel", channel: "!!!" });
  await settle();
  assert.equal(stored.get("notes_mcp_channel"), "team:bob");
});

test("__mcpLeaveChannel and __mcpDisconnect are seen, and a click connects again", async () => {
  const { getConnectionState, handleConnectClick } = await connected();
  for (const leave of ["__mcpLeaveChannel", "__mcpDisconnect"]) {
    page[leave]();
    await settle();
    assert.deepEqual(getConnectionState(), { state: "disconnected", channel: "notes", appLabel: "notes" }, leave);
    handleConnectClick();
    await accept();
    assert.equal(getConnectionState().state, "connected", leave);
  }
  assert.equal(open().length, 1);
});

test("init twice, and a second connection of the app: one socket, the same states", async () => {
  const first = await connected();
  first.init();
  const second = make();
  await settle();
  assert.deepEqual(second.getConnectionState(), first.getConnectionState());
  second.init();
  await settle();
  assert.equal(FakeSocket.all.length, 1);
  answers = ["team:"];
  second.handleConnectClick();
  await accept();
  assert.deepEqual(first.getConnectionState(), { state: "connected", channel: "team:", appLabel: "notes" });
  assert.deepEqual(first.states(), ["connecting", "connected", "connecting", "connected"]);
  first.disconnect();
  await settle();
  assert.deepEqual(second.getConnectionState(), { state: "disconnected", channel: "team:", appLabel: "notes" });
  second.handleConnectClick();
  await accept();
  assert.equal(first.getConnectionState().state, "connected");
  FakeSocket.last.end(1008, "no");
  await settle();
  assert.deepEqual(first.getConnectionState(), second.getConnectionState());
  assert.equal(first.getConnectionState().state, "disconnected");
  assert.equal(open().length, 0);
});

test("a second copy of the script shares the socket", async () => {
  const first = await connected();
  const copy: typeof import("../src/connect.ts") = await import("../src/connect.ts?copy" as string);
  assert.notEqual(copy.createMcpConnect, createMcpConnect);
  const second = copy.createMcpConnect({ appName: "notes" });
  second.init();
  second.init();
  await settle();
  assert.equal(FakeSocket.all.length, 1);
  assert.equal(second.getConnectionState().state, "connected");
  answers = ["bob"];
  first.handleConnectClick();
  await accept();
  assert.deepEqual(second.getConnectionState(), first.getConnectionState());
});

test("another script that takes the page over: disconnected with a reason, and no fight", async () => {
  const { getConnectionState, handleConnectClick, ws } = await connected();
  install(new URL("http://localhost:8766"), uuid, async () => extras);
  await accept();
  assert.equal(ws.closed?.[0], 1000);
  assert.deepEqual(getConnectionState(), { state: "disconnected", channel: "notes", appLabel: "notes", reason: "another script connected this page elsewhere" });
  FakeSocket.last.end(1001);
  await settle();
  tick(500);
  assert.equal(tenant(), uuid);
  handleConnectClick();
  await accept();
  assert.equal(tenant(), "notes");
  assert.equal(open().length, 1);
  assert.equal(getConnectionState().state, "connected");
});

test("two apps in one page: the last one has it", async () => {
  const notes = await connected();
  const maps = await connected({ appName: "maps" });
  assert.equal(notes.getConnectionState().state, "disconnected");
  assert.match(notes.getConnectionState().reason!, /another script/);
  notes.disconnect();
  assert.equal(maps.getConnectionState().state, "connected");
  assert.equal(open().length, 1);
});

test("listeners: one that throws does not stop others, and they can end", async () => {
  const { onConnectionStateChange, told, init } = make();
  const heard: string[] = [];
  const cb = (state: string) => void heard.push(state);
  const end = onConnectionStateChange(() => { throw Error("mine"); });
  const endFirst = onConnectionStateChange(cb);
  const endSecond = onConnectionStateChange(cb);
  endFirst();
  endFirst();
  init();
  assert.deepEqual(heard, ["connecting"]);
  assert.match(lines.at(-1)!, /^error \[jsbridge\] a listener of the connection state threw/);
  end();
  await accept();
  assert.equal(lines.filter((line) => line.startsWith("error")).length, 1);
  endSecond();
  FakeSocket.last.end(1008);
  await settle();
  assert.deepEqual(heard, ["connecting", "connected"]);
  assert.equal(told.at(-1)![0], "disconnected");
  assert.throws(() => onConnectionStateChange(undefined as any), TypeError);
});

test("a listener that another one ends is not called any more", () => {
  const { init, onConnectionStateChange } = make();
  onConnectionStateChange(() => end());
  const end = onConnectionStateChange(() => assert.fail());
  init();
  assert.deepEqual(lines, []);
});

test("a listener that changes the state: all hear the last state last", async () => {
  const heard: string[] = [];
  const { init, disconnect, onConnectionStateChange } = make({ onStateChange: (state) => void (state == "connected" && disconnect()) });
  onConnectionStateChange((state) => void heard.push(state));
  init();
  await accept();
  assert.deepEqual(heard, ["connecting", "disconnected"]);
  assert.equal(open().length, 0);
});

test("outside a browser nothing happens, and nothing throws", async () => {
  for (const name of ["window", "document", "localStorage"]) define(name, undefined);
  const { init, handleConnectClick, disconnect, getConnectionState } = make({ beforeConnect: () => assert.fail() });
  init();
  handleConnectClick();
  disconnect();
  await settle();
  assert.deepEqual(getConnectionState(), { state: "disconnected", channel: "notes", appLabel: "notes" });
  assert.equal(FakeSocket.all.length, 0);
});
