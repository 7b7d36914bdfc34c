import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { install as connectPage, type Status } from "../src/bridge.ts";
import * as extras from "../src/extras.ts";
import { FakeSocket, fire, freshPage, lines, setPermission, settle, tick } from "./page.ts";

const page = globalThis as any;
const server = new URL("http://localhost:8766");
const fn = () => 1;
/** How the page gets the extras. */
let load: () => Promise<typeof extras>;
const install = (from: URL, connect: string) => connectPage(from, connect, () => load());
const welcome = { type: "welcome", connectionId: "c", state: "ready", limits: { frameBytes: 1e6, tools: 512 } };
const registered = { type: "registered", prefix: "notes", tools: [{ name: "a", published: "notes__a" }], problems: [] };

beforeEach(() => {
  freshPage();
  load = async () => extras;
  page.__mcpTools = [{ name: "a", description: "A", fn }];
});

async function connect(tenant = "t1", from = server): Promise<FakeSocket> {
  install(from, tenant);
  await settle();
  const ws = FakeSocket.last;
  ws.open();
  ws.say(welcome);
  ws.say(registered);
  return ws;
}
const status = (): Status => page[Symbol.for("jsbridge")].status();
/** What the bridge tells of its status from now on. */
function listen(): Status[] {
  const heard: Status[] = [];
  page[Symbol.for("jsbridge")].subscribe((status: Status) => heard.push(status));
  return heard;
}
const manifests = (ws = FakeSocket.last) => ws.messages("register_tools");
const names = (ws?: FakeSocket) => manifests(ws).at(-1).tools.map((t: any) => t.name);
const instance = (ws = FakeSocket.last) => new URL(ws.url).searchParams.get("instance")!;

test("connects, sends the manifest first and says so once", async () => {
  const ws = await connect("channel:a b");
  const url = new URL(ws.url);
  assert.equal(url.origin + url.pathname, "ws://localhost:8766/ws");
  assert.equal(url.searchParams.get("tenant"), "channel:a b");
  assert.equal(url.searchParams.get("v"), "1");
  assert.match(instance(), /^[\w-]{16,64}$/);
  assert.deepEqual(ws.messages("register_tools").length, 1);
  ws.say(registered);
  assert.deepEqual(lines, ["info [jsbridge] connected to http://localhost:8766 as notes, tools: 1"]);
});

test("importing again gives no second socket, and reads the tools again", async () => {
  const ws = await connect();
  install(server, "t1");
  await settle();
  assert.equal(FakeSocket.all.length, 1);
  assert.equal(manifests().length, 1);
  Object.defineProperty(page.__mcpTools[0], "description", { value: "B" }); // Unnoticed by itself.
  install(server, "t1");
  await settle();
  assert.equal(manifests(ws).length, 2);
});

test("importing again wakes a wait, and revives an end", async () => {
  const ws = await connect();
  ws.end(1006);
  await settle();
  install(server, "t1");
  assert.equal(FakeSocket.all.length, 2);
  FakeSocket.last.end(4404);
  install(server, "t1");
  assert.equal(FakeSocket.all.length, 3);
});

test("importing for another target leaves the first", async () => {
  const old = await connect();
  const id = instance();
  const fresh = await connect("t2", new URL("http://localhost:9000"));
  assert.deepEqual(old.messages().at(-1), { type: "leave_channel" });
  assert.equal(old.closed?.[0], 1000);
  assert.notEqual(old, fresh);
  assert.equal(instance(fresh), id);
  fire("window", "pagehide");
  assert.equal(fresh.closed?.[0], 4000);
  page.__mcpTools.push({ name: "b", fn });
  await settle();
  assert.equal(manifests(old).length, 1);
});

test("changes of one turn are sent once, and none when nothing differs", async () => {
  const ws = await connect();
  for (let i = 0; i < 50; i++) {
    page.__mcpTools.push({ name: "x", fn });
    page.__mcpTools.pop();
    page.__mcpTools.push({ name: "x", fn });
    page.__mcpTools.splice(1, 1);
  }
  await settle();
  assert.equal(manifests(ws).length, 1);
  page.__mcpTools.push({ name: "b", fn });
  page.__mcpTools.push({ name: "c", fn });
  await settle();
  assert.equal(manifests(ws).length, 2);
  assert.deepEqual(names(ws), ["a", "b", "c"]);
});

test("tools declared after the script are sent", async () => {
  delete page.__mcpTools;
  const ws = await connect();
  assert.deepEqual(names(ws), []);
  page.__mcpTools = [{ name: "late", fn }];
  await settle();
  assert.deepEqual(names(ws), ["late"]);
});

test("a server that restarts gets the manifest again", async () => {
  const ws = await connect();
  tick(6_000);
  ws.end(1001, "jsbridge is stopping");
  await settle();
  tick(250);
  FakeSocket.last.open();
  FakeSocket.last.say(welcome);
  FakeSocket.last.say(registered);
  assert.deepEqual(names(), ["a"]);
  assert.deepEqual(lines.slice(1), [
    "warn [jsbridge] http://localhost:8766: no answer (jsbridge is stopping): is jsbridge running? Retrying",
    "info [jsbridge] reconnected to http://localhost:8766 as notes, tools: 1",
  ]);
});

test("a server that stays down gets one line", async () => {
  install(server, "t1");
  for (let i = 0; i < 30; i++) {
    FakeSocket.last.end();
    await settle();
    tick(15_000);
  }
  assert.ok(FakeSocket.all.length > 20);
  assert.equal(lines.length, 1);
});

test("a manifest that was too large is not sent again until it differs", async () => {
  const ws = await connect();
  ws.end(1009, "limit 10 bytes");
  tick(500);
  FakeSocket.last.open();
  assert.equal(manifests().length, 0);
  FakeSocket.last.say(welcome);
  page.__mcpTools = [{ name: "small", fn }];
  await settle();
  assert.deepEqual(names(), ["small"]);
});

test("a manifest over the known limit is kept back, with a line", async () => {
  const ws = await connect();
  page.__mcpTools.push({ name: "big", description: "x".repeat(2e6), fn });
  await settle();
  assert.equal(manifests(ws).length, 1);
  assert.match(lines.at(-1)!, /over the limit of 1000000 bytes/);
});

test("calls are answered, probes too, unknown types ignored", async () => {
  const ws = await connect();
  ws.say({ type: "call", id: "1", name: "a", args: {} });
  ws.say({ type: "probe", id: "p" });
  for (const odd of [{ type: "later" }, { type: "later" }, "{", "null", "[]", "5"]) ws.say(odd);
  await settle();
  assert.deepEqual(ws.messages(), [
    { type: "alive", id: "p" },
    { type: "call_result", id: "1", result: 1 },
  ]);
  assert.equal(lines.length, 1);
});

test("pagehide tells which call was the last that came over this socket", async () => {
  const first = await connect();
  first.say({ type: "call", id: "1-1", name: "a", args: {} });
  first.say({ type: "call", id: "1-2", name: "a", args: {} });
  fire("window", "pagehide", {});
  assert.deepEqual(first.closed, [4000, "pagehide 1-2"]);
  fire("window", "pageshow", { persisted: true });
  const second = FakeSocket.last;
  second.open();
  fire("window", "pagehide", {});
  assert.notEqual(second, first);
  assert.deepEqual(second.closed, [4000, "pagehide -"]);
});

test("pagehide tells of no call where there was none, and of none from before a reconnect", async () => {
  const idle = await connect();
  fire("window", "pagehide", {});
  assert.deepEqual(idle.closed, [4000, "pagehide -"]);
  fire("window", "pageshow", { persisted: true });
  FakeSocket.last.open();
  FakeSocket.last.say({ type: "call", id: "2-1", name: "gone", args: {} });
  FakeSocket.last.say({ type: "probe", id: "p" });
  FakeSocket.last.end(1001, "stopping");
  await settle();
  tick(500);
  const next = FakeSocket.last;
  next.open();
  fire("window", "pagehide", {});
  assert.equal(FakeSocket.all.length, 3);
  assert.deepEqual(next.closed, [4000, "pagehide -"]);
});

test("pagehide tells of a call that is answered, or that the page has no tool for", async () => {
  const ws = await connect();
  ws.say({ type: "call", id: "1-1", name: "a", args: {} });
  ws.say({ type: "call", id: "1-2", name: "gone", args: {} });
  await settle();
  assert.equal(ws.messages("call_result").length, 2);
  ws.say({ type: "cancel", id: "1-1" });
  fire("window", "pagehide", {});
  assert.deepEqual(ws.closed, [4000, "pagehide 1-2"]);
});

test("problems, the server's and the page's own, are told once each", async () => {
  page.__mcpTools.push({ name: "lame" }, null);
  const ws = await connect();
  const refused = { ...registered, problems: [{ name: "a", index: 0, reason: "description is missing" }] };
  ws.say(refused);
  ws.say(refused);
  ws.say({ type: "error", message: "no such type", of: "x" });
  ws.say({ type: "error", message: "no such type", of: "x" });
  page.__mcpTools.push({ name: "b", fn });
  await settle();
  assert.deepEqual(lines.filter((l) => l.startsWith("warn")), [
    "warn [jsbridge] tool lame: fn is missing or no function",
    "warn [jsbridge] tool 2: not an object",
    "warn [jsbridge] tool a: description is missing",
    "warn [jsbridge] refused: no such type",
  ]);
});

test("pending is told once, with the server's reason, until registered", async () => {
  install(server, "t1");
  const heard = listen();
  FakeSocket.last.open();
  FakeSocket.last.say({ ...welcome, state: "pending", reason: "allow it at http://localhost:8766/" });
  assert.deepEqual(status(), { state: "pending", reason: "allow it at http://localhost:8766/", connect: "t1" });
  FakeSocket.last.say({ type: "approved" });
  assert.equal(status().state, "pending");
  FakeSocket.last.say(registered);
  assert.deepEqual(heard.map(({ state }) => state), ["pending", "connected"]);
  assert.deepEqual(lines, ["warn [jsbridge] pending: allow it at http://localhost:8766/", "info [jsbridge] connected to http://localhost:8766 as notes, tools: 1"]);
});

test("the status follows the socket", async () => {
  const bridge = install(server, "t1");
  assert.deepEqual(bridge.status(), { state: "connecting", connect: "t1" });
  await settle();
  const heard = listen();
  const told = () => heard.splice(0).map(({ state, reason }) => [state, reason]);
  FakeSocket.last.open();
  FakeSocket.last.say(welcome);
  assert.deepEqual(told(), []);
  FakeSocket.last.say(registered);
  FakeSocket.last.say(registered);
  assert.deepEqual(heard, [{ state: "connected", connect: "t1", prefix: "notes" }]);
  told();
  FakeSocket.last.end(1001, "stopping");
  await settle();
  tick(500);
  assert.deepEqual(told(), [["connecting", "no answer (stopping): is jsbridge running? Retrying"]]);
  FakeSocket.last.open();
  FakeSocket.last.say(registered);
  FakeSocket.last.end(1013, "busy");
  FakeSocket.last.end(4404, "no");
  assert.deepEqual(told().map(([state]) => state), ["connected", "connecting"]);
  install(server, "t1");
  FakeSocket.last.end(4404, "names nothing");
  assert.deepEqual(told(), [["disconnected", "ended (names nothing); __mcpReconnect() connects again"]]);
  install(server, "t1");
  assert.deepEqual(told(), [["connecting", undefined]]);
});

for (const [name, href, state] of [["csp", "http://localhost:8080/"], ["mixed", "https://app.example/"], ["prompt", "https://app.example/", "prompt"], ["denied", "https://app.example/", "denied"]] as const) {
  test(`the status: ${name} ends the attempts`, async () => {
    freshPage(href);
    setPermission(state);
    FakeSocket.throws = name == "mixed";
    install(server, "t1");
    if (name == "csp") fire("document", "securitypolicyviolation", { disposition: "enforce", blockedURI: "ws://localhost:8766/ws", effectiveDirective: "connect-src" });
    // A browser takes longer for that than for the extras.
    await settle();
    if (state) FakeSocket.last.end();
    await settle();
    assert.equal(status().state, "disconnected");
    assert.ok(status().reason);
  });
}

test("the status has the close code that ended it, and no other", async () => {
  const ws = await connect();
  for (const code of [1000, 1003, 1008, 4404, 4409]) {
    FakeSocket.last.end(code, "why");
    assert.deepEqual([status().state, status().code], ["disconnected", code]);
    install(server, "t1");
    assert.deepEqual([status().state, status().code], ["connecting", undefined]);
  }
  assert.notEqual(FakeSocket.last, ws);
  for (const code of [1001, 1009, 1013]) {
    FakeSocket.last.end(code, "why");
    await settle();
    assert.deepEqual([status().state, status().code], ["connecting", undefined], String(code));
    install(server, "t1");
  }
});

test("a listener that changes the status: all hear the last one last", async () => {
  const bridge = install(server, "t1");
  await settle();
  const heard: string[] = [];
  bridge.subscribe(({ state }) => state == "connected" && page.__mcpLeaveChannel());
  bridge.subscribe(({ state }) => heard.push(state));
  FakeSocket.last.open();
  FakeSocket.last.say(registered);
  assert.deepEqual(heard, ["disconnected"]);
});

test("declarations that can't be read keep none of the others back", async () => {
  const unreadable = { configurable: true, get: () => { throw Error("mine"); } };
  const { proxy, revoke } = Proxy.revocable([], {});
  revoke();
  Object.defineProperty(page, "__mcpSummary", unreadable);
  Object.defineProperty(document, "title", unreadable);
  page.__mcpAppName = "Notes";
  const ws = await connect();
  assert.deepEqual([names(ws), manifests(ws)[0].summary, manifests(ws)[0].title, manifests(ws)[0].appLabel], [["a"], undefined, undefined, "Notes"]);
  Object.defineProperty(page, "__mcpTools", unreadable);
  install(server, "t1");
  await settle();
  assert.deepEqual(names(ws), []);
  Object.defineProperty(page, "__mcpTools", { configurable: true, writable: true, value: proxy });
  page.__mcpToolBus.registerTool("b", fn);
  await settle();
  assert.deepEqual(names(ws), ["b"]);
  // A form or picture of that name takes the title's place.
  Object.defineProperty(document, "title", { configurable: true, value: { nodeName: "IMG" } });
  install(server, "t1");
  await settle();
  assert.equal(manifests(ws).at(-1).title, undefined);
});

test("a listener that throws disturbs nobody, and one that went hears nothing", async () => {
  const bridge = install(server, "t1");
  let heard = 0;
  mock.method(console, "error", () => {});
  bridge.subscribe(() => { throw Error("mine"); });
  const stop = bridge.subscribe(() => heard++);
  FakeSocket.last.open();
  FakeSocket.last.say(registered);
  assert.equal(heard, 1);
  stop();
  stop();
  page.__mcpLeaveChannel();
  assert.equal(heard, 1);
  assert.equal(bridge.status().state, "disconnected");
});

test("move_channel leaves and connects under the new string", async () => {
  const ws = await connect();
  const heard = listen();
  ws.say({ type: "move_channel", channel: "channel:b" });
  assert.deepEqual(ws.messages(), [{ type: "leave_channel" }]);
  assert.equal(ws.closed?.[0], 1000);
  assert.equal(new URL(FakeSocket.last.url).searchParams.get("tenant"), "channel:b");
  assert.deepEqual(heard, [{ state: "connecting", connect: "channel:b", prefix: "notes" }]);
  install(server, "channel:b");
  assert.equal(FakeSocket.all.length, 2);
});

test("rename: by argument, by asking, and kept for the next manifest", async () => {
  const ws = await connect();
  page.prompt = () => "  Asked ";
  page.__mcpRename("Given");
  page.__mcpRename();
  page.prompt = () => null;
  page.__mcpRename();
  assert.deepEqual(ws.messages().map((m) => m.appLabel), ["Given", "Asked"]);
  page.__mcpTools.push({ name: "b", fn });
  await settle();
  assert.equal(manifests(ws).at(-1).appLabel, "Asked");
  ws.end(1001, "stopping");
  await settle();
  tick(500);
  FakeSocket.last.open();
  assert.deepEqual(FakeSocket.last.messages(), [{ type: "rename_connection", appLabel: "Asked" }]);
});

test("leaving is for good, until __mcpReconnect", async () => {
  const ws = await connect();
  page.__mcpLeaveChannel();
  assert.deepEqual(ws.messages(), [{ type: "leave_channel" }]);
  assert.equal(ws.closed?.[0], 1000);
  fire("document", "visibilitychange");
  tick(60_000);
  assert.equal(FakeSocket.all.length, 1);
  page.__mcpReconnect();
  assert.equal(FakeSocket.all.length, 2);
});

test("disconnecting takes the bridge off the page", async () => {
  const ws = await connect();
  const heard = listen();
  page.__mcpDisconnect();
  assert.deepEqual(heard.map(({ state }) => state), ["disconnected"]);
  assert.equal(ws.closed?.[0], 1000);
  assert.equal(page[Symbol.for("jsbridge")], undefined);
  for (const name of ["__mcpRename", "__mcpLeaveChannel", "__mcpDisconnect"]) assert.equal(page[name], undefined, name);
  page.__mcpTools.push({ name: "b", fn });
  page.__mcpTools = [];
  fire("window", "pageshow", { persisted: true });
  await settle();
  assert.equal(manifests(ws).length, 1);
  page.__mcpTools = [{ name: "back", fn }];
  page.__mcpReconnect();
  FakeSocket.last.open();
  assert.deepEqual(names(), ["back"]);
});

test("the tab's id: kept through a reload, not seen by a copy of the tab", async () => {
  await connect();
  const id = instance();
  const { stored } = sessionStorage as any;
  assert.equal(stored.size, 0);
  fire("window", "pagehide");
  assert.deepEqual([...stored.values()], [id + " "]);
  fire("window", "pageshow", { persisted: true });
  assert.equal(stored.size, 0);
  assert.equal(instance(), id);
});

test("a bridge that made way can't stop the next", async () => {
  const old = connectPage(server, "t1", load);
  const next = connectPage(server, "t2", load);
  old.stop();
  assert.equal(page[Symbol.for("jsbridge")], next);
  assert.equal(next.status().state, "connecting");
  assert.equal((sessionStorage as any).stored.size, 0);
});

test("the tab's id: made anew without storage", async () => {
  Object.defineProperty(globalThis, "sessionStorage", { configurable: true, get() { throw new DOMException("sandboxed", "SecurityError"); } });
  await connect();
  const first = instance();
  FakeSocket.last.end();
  await settle();
  tick(500);
  assert.equal(instance(), first);
  fire("window", "pagehide");
});

test("identify shows a badge that goes by itself", async () => {
  const ws = await connect();
  const shadow = { textContent: "" };
  let shown = 0;
  const made: any = { style: {}, setAttribute: () => {}, attachShadow: () => shadow, remove: () => shown && shown-- };
  Object.assign(document, { createElement: () => made, body: { append: () => shown++ } });
  const { body } = document as any;
  (document as any).body = null;
  ws.say({ type: "identify" });
  await settle();
  assert.equal(shown, 0);
  (document as any).body = body;
  ws.say({ type: "identify", label: "Notes" });
  await settle();
  assert.equal(shown, 1);
  assert.match(shadow.textContent, /Notes.*notes/);
  tick(5_000);
  assert.equal(shown, 0);
});
