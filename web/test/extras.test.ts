import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { install as connectPage } from "../src/bridge.ts";
import * as extras from "../src/extras.ts";
import { FakeSocket, fire, freshPage, lines, settle, tick } from "./page.ts";

const page = globalThis as any;
const server = new URL("http://localhost:8766");
const fn = () => 1;
const registered = { type: "registered", prefix: "notes", tools: [], problems: [] };
let load: () => Promise<typeof extras>;
let loads = 0;

beforeEach(() => {
  freshPage();
  loads = 0;
  load = async () => extras;
});

async function connect(): Promise<FakeSocket> {
  connectPage(server, "t1", () => (loads++, load()));
  await settle();
  return accept();
}
async function accept(): Promise<FakeSocket> {
  const ws = FakeSocket.last;
  ws.open();
  ws.say({ type: "welcome", connectionId: "c", state: "ready", limits: { frameBytes: 1e6, tools: 512 } });
  ws.say(registered);
  await settle();
  return ws;
}
const manifest = () => FakeSocket.last.messages("register_tools").at(-1);
const tools = () => manifest().tools.map((tool: any) => `${tool.source} ${tool.name}`);
async function call(name: string, args: object = {}): Promise<any> {
  const id = String(Math.floor(FakeSocket.last.sent.length));
  FakeSocket.last.say({ type: "call", id, name, args });
  await settle();
  return FakeSocket.last.messages("call_result").find((m) => m.id == id);
}

/** A page's WebMCP with these tools. */
function withModel(names: string[], listing = Promise.resolve()): EventTarget {
  const context: any = new EventTarget();
  context.getTools = async () => (await listing, names.map((name) => ({ name, description: "W", inputSchema: { type: "object" } })));
  context.executeTool = async ({ name }: any) => `model ${name}`;
  (document as any).modelContext = context;
  (document as any).querySelector = () => null;
  page.CSS = { escape: String };
  return context;
}

test("the tools of all sources are one list, whoever comes first", async () => {
  page.__mcpTools = [{ name: "a", fn }];
  await connect();
  assert.deepEqual(tools(), ["host a"]);
  page.__mcpToolBus.registerTool("b", () => "bus", { description: "B", origin: { kind: "path", path: "x" } });
  page.__mcpToolBus.registerTool("c", fn);
  await settle();
  assert.deepEqual(tools(), ["host a", "dynamic b", "dynamic c"]);
  assert.deepEqual(manifest().tools[1], { source: "dynamic", origin: { kind: "path", path: "x" }, name: "b", description: "B" });
  assert.equal(FakeSocket.last.messages("register_tools").length, 2);
  assert.equal((await call("b")).result, "bus");
});

test("a bus from before the bridge is used, also one of the page's own that fails", async () => {
  let fails = true;
  page.__mcpToolBus = {
    registerTool() {},
    registerProvider() {},
    onChange: () => () => {},
    getTools: () => {
      if (fails) throw Error("broken bus");
      return [null, { name: "x", fn }];
    },
  };
  page.__mcpTools = [{ name: "a", fn }];
  await connect();
  assert.deepEqual(tools(), ["host a"]);
  fails = false;
  page.__mcpTools.push({ name: "b", fn });
  await settle();
  assert.deepEqual(tools(), ["host a", "host b", "dynamic x"]);
  assert.deepEqual(manifest().problems, [{ name: "", index: 2, reason: "not an object" }]);
});

test("equal names: __mcpTools, then the bus, then WebMCP; the rest is reported", async () => {
  withModel(["a", "b", "c"]);
  page.__mcpTools = [{ name: "a", fn: () => "own" }];
  await connect();
  page.__mcpToolBus.registerTool("a", () => "bus");
  page.__mcpToolBus.registerTool("b", () => "bus");
  page.__mcpToolBus.registerTool("__register_tool_by_path__", fn);
  await settle();
  assert.deepEqual(tools(), ["host a", "dynamic b", "host c"]);
  assert.deepEqual(manifest().problems, [
    { name: "a", index: 1, reason: "the name is taken by a tool of __mcpTools" },
    { name: "__register_tool_by_path__", index: 3, reason: "the name is reserved" },
    { name: "a", index: 4, reason: "the name is taken by a tool of __mcpTools" },
    { name: "b", index: 5, reason: "the name is taken by a tool of the tool bus" },
  ]);
  for (const [name, result] of [["a", "own"], ["b", "bus"], ["c", "model c"]] as const) assert.equal((await call(name)).result, result);
});

test("a tool that can't be called takes no name", async () => {
  page.__mcpTools = [{ name: "a" }];
  await connect();
  page.__mcpToolBus.registerTool("a", () => "bus");
  await settle();
  assert.deepEqual(tools(), ["dynamic a"]);
  assert.equal((await call("a")).result, "bus");
});

test("WebMCP is in the first manifest, and followed", async () => {
  const names = ["a"];
  const context = withModel(names);
  await connect();
  assert.deepEqual(FakeSocket.last.messages("register_tools").map((m) => m.tools.length), [1]);
  names.push("b");
  context.dispatchEvent(new Event("toolchange"));
  await settle();
  assert.deepEqual(tools(), ["host a", "host b"]);
});

test("a WebMCP that does not answer keeps the others waiting for a second only", async () => {
  let answer!: () => void;
  withModel(["slow"], new Promise((done) => (answer = done)));
  page.__mcpTools = [{ name: "a", fn }];
  connectPage(server, "t1", load);
  await settle();
  assert.equal(FakeSocket.all.length, 0);
  tick(1_000);
  await settle();
  await accept();
  assert.deepEqual(tools(), ["host a"]);
  answer();
  await settle();
  assert.deepEqual(tools(), ["host a", "host slow"]);
});

test("leaving before the extras are there is leaving", async () => {
  withModel(["a"]);
  const bridge = connectPage(server, "t1", load);
  page.__mcpLeaveChannel();
  await settle();
  assert.equal(FakeSocket.all.length, 0);
  assert.equal(bridge.status().state, "disconnected");
  page.__mcpReconnect();
  await settle();
  assert.equal(FakeSocket.all.length, 1);
});

test("the first connection does not wait without need", () => {
  load = () => new Promise(() => {});
  connectPage(server, "t1", load);
  assert.equal(FakeSocket.all.length, 1);
});

test("without extras the page's tools work, and a later reconnect tries again", async () => {
  page.__mcpTools = [{ name: "a", fn }];
  const unloaded = async () => { throw TypeError("Failed to fetch"); };
  load = unloaded;
  await connect();
  const before = loads;
  assert.deepEqual(tools(), ["host a"]);
  assert.equal((await call("a")).result, 1);
  assert.equal((await call("__register_tool_by_path__", {})).error.message, "extras.js failed: Failed to fetch");
  assert.equal(loads, before + 1, "the call tried as well");
  FakeSocket.last.say({ type: "identify", label: "Notes" });
  await settle();
  assert.equal(lines.at(-1), "warn [jsbridge] Notes · notes");
  load = async () => extras;
  const now = loads;
  FakeSocket.last.end(1001);
  await settle();
  tick(500);
  await accept();
  assert.equal(loads, now + 1);
  page.__mcpToolBus.registerTool("b", fn);
  await settle();
  assert.deepEqual(tools(), ["host a", "dynamic b"]);
  FakeSocket.last.end(1001);
  await settle();
  tick(2_000);
  await accept();
  assert.equal(loads, now + 1, "once they are there, they stay");
});

test("trouble that comes before the words for it is told once they are there, or bare", async () => {
  let arrive!: (module: typeof extras) => void;
  load = () => new Promise((done) => (arrive = done));
  const bridge = connectPage(server, "t1", load);
  await settle();
  FakeSocket.last.end(4404, "names nothing");
  await settle();
  assert.deepEqual(lines, []);
  arrive(extras);
  await settle();
  assert.deepEqual(lines, ["warn [jsbridge] http://localhost:8766: ended (names nothing); __mcpReconnect() connects again"]);
  assert.equal(bridge.status().state, "disconnected");
  assert.match(bridge.status().reason!, /names nothing/);

  load = async () => { throw TypeError("Failed to fetch"); };
  const other = connectPage(server, "t2", load);
  await settle();
  FakeSocket.last.end(4404, "names nothing");
  await settle();
  assert.match(lines.at(-1)!, /4404 \(names nothing\)/);
  assert.equal(other.status().state, "disconnected");
});

test("trouble that is over before the words for it are there is not told", async () => {
  let arrive!: (module: typeof extras) => void;
  load = () => new Promise((done) => (arrive = done));
  const bridge = connectPage(server, "t1", load);
  await settle();
  FakeSocket.last.end(1006);
  await settle();
  tick(3_000); // the cause is not waited for any longer
  await settle();
  tick(500);
  await accept();
  arrive(extras);
  await settle();
  assert.equal(bridge.status().state, "connected");
  assert.ok(lines.every((line) => !line.startsWith("warn")), lines.join());
});

test("leaving while the words for a trouble are awaited is no trouble", async () => {
  for (const leave of ["__mcpLeaveChannel", "__mcpDisconnect"]) {
    let arrive!: (module: typeof extras) => void;
    load = () => new Promise((done) => (arrive = done));
    const bridge = connectPage(server, "t1", load);
    FakeSocket.last.end(1006);
    await settle();
    assert.equal(bridge.status().state, "connecting");
    page[leave]();
    arrive(extras);
    await settle();
    tick(60_000);
    assert.deepEqual(bridge.status(), { state: "disconnected", connect: "t1" }, leave);
    assert.deepEqual(lines, [], leave);
    page.__mcpDisconnect?.();
  }
});

test("the state does not wait for the words, and connecting again drops them", async () => {
  let arrive!: (module: typeof extras) => void;
  load = () => new Promise((done) => (arrive = done));
  const bridge = connectPage(server, "t1", load);
  FakeSocket.last.end(4404, "names nothing");
  assert.deepEqual(bridge.status(), { state: "disconnected", code: 4404, connect: "t1" });
  connectPage(server, "t1", load);
  arrive(extras);
  await settle();
  assert.equal(bridge.status().state, "connecting");
  assert.deepEqual(lines, []);
});

test("nothing is tried again before the extras could say why", async () => {
  let arrive!: (module: typeof extras) => void;
  load = () => new Promise((done) => (arrive = done));
  connectPage(server, "t1", load);
  const first = FakeSocket.last;
  first.end(1006);
  await settle();
  tick(2_999);
  await settle();
  tick(500);
  assert.equal(FakeSocket.last, first);
  arrive(extras);
  await settle();
  tick(500);
  assert.notEqual(FakeSocket.last, first);
});

test("troubles of two kinds before the words are there are told in order", async () => {
  let fail!: () => void;
  load = () => new Promise((_, reject) => (fail = () => reject(Error("no"))));
  connectPage(server, "t1", load);
  FakeSocket.last.end(1006);
  await settle();
  tick(3_000);
  await settle();
  tick(500);
  FakeSocket.last.end(1013, "full");
  await settle();
  fail();
  await settle();
  assert.deepEqual(lines, ["warn [jsbridge] http://localhost:8766: down", "warn [jsbridge] http://localhost:8766: 1013 (full)"]);
});

test("extras that come after the end bring nothing back", async () => {
  const kept = JSON.stringify([{ name: "old", description: "D", origin: { kind: "path", path: "x" } }]);
  for (const model of [false, true]) {
    freshPage();
    sessionStorage.setItem("jsbridge/", "id " + kept);
    page.top = {}; // Or the key has no path.
    let answer = () => {};
    if (model) withModel(["slow"], new Promise((done) => (answer = done)));
    connectPage(server, "t1", load);
    if (model) await settle();
    page.__mcpDisconnect();
    answer();
    await settle();
    assert.deepEqual(page.__mcpToolBus?.getTools() ?? [], []);
    assert.equal(sessionStorage.getItem("jsbridge/"), "id " + kept);
    connectPage(server, "t1", load);
    await settle();
    await accept();
    assert.ok(tools().includes("dynamic old"), tools().join());
  }
});

test("a page's own bus that can't even be listened to keeps nothing back", async () => {
  page.__mcpTools = [{ name: "a", fn }];
  page.__mcpToolBus = { registerTool() {}, registerProvider() {}, getTools: () => [{ name: "b", fn }], onChange() { throw Error("mine"); } };
  withModel(["c"]);
  await connect();
  assert.deepEqual(tools(), ["host a", "dynamic b", "host c"]);
});

test("a name that can be read only sometimes takes down no other tool", async () => {
  let reads = 0;
  page.__mcpTools = [{ name: "a", fn }, { get name() { if (++reads % 2) return "odd"; throw Error("mine"); }, fn }];
  await connect();
  for (let i = 0; i < 5; i++) {
    page.__mcpToolBus.registerTool("b" + i, fn);
    await settle();
    assert.ok(tools().includes("host a") && tools().includes("dynamic b" + i), tools().join());
  }
});

test("a polyfill that comes after the extras is noticed when the page has loaded", async () => {
  Object.defineProperty(document, "readyState", { value: "interactive", configurable: true });
  await connect();
  assert.deepEqual(tools(), []);
  withModel(["late"]);
  fire("window", "load");
  await settle();
  assert.deepEqual(tools(), ["host late"]);
});

test("waiting for extras that fail ends with a connection", async () => {
  withModel(["a"]);
  load = async () => { throw Error("no"); };
  await connect();
  assert.deepEqual(tools(), []);
});

test("a bridge that is gone hears no bus", async () => {
  const ws = await connect();
  page.__mcpDisconnect();
  const sent = ws.sent.length;
  page.__mcpToolBus.registerTool("b", fn);
  await settle();
  assert.equal(ws.sent.length, sent);
  page.__mcpReconnect();
  await settle();
  await accept();
  assert.deepEqual(tools(), ["dynamic b"]);
});
