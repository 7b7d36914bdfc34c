import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { install } from "../src/bridge.ts";
import * as extras from "../src/extras.ts";
import { FakeSocket, fire, freshPage, lines, settle } from "./page.ts";

const page = globalThis as any;
const server = new URL("http://localhost:8766");
const fn = () => 1;

beforeEach(() => freshPage());

async function connect(limit = 64e6): Promise<FakeSocket> {
  install(server, "t1", async () => extras);
  await settle();
  const ws = FakeSocket.last;
  ws.open();
  ws.say({ type: "welcome", connectionId: "c", state: "ready", limits: { frameBytes: limit, tools: 512 } });
  ws.say({ type: "registered", prefix: "notes", tools: [], problems: [] });
  await settle();
  return ws;
}
let ids = 0;
function start(name: string, args: unknown): string {
  const id = `c${++ids}`;
  FakeSocket.last.say({ type: "call", id, name, args });
  return id;
}
const answer = (id: string) => FakeSocket.last.messages("call_result").find((m) => m.id == id);
async function call(name: string, args: unknown = {}): Promise<any> {
  const id = start(name, args);
  await settle();
  return answer(id);
}
const byPath = (name: string, path: unknown, more: object = {}) => call("__register_tool_by_path__", { name, description: "D", path, ...more });
const byCode = (name: string, code: unknown, more: object = {}) => call("__register_tool_by_code__", { name, description: "D", code, ...more });
const remove = (toolName: unknown) => call("__unregister_tool__", { toolName });
const manifests = () => FakeSocket.last.messages("register_tools");
const tools = () => manifests().at(-1).tools;
const names = () => tools().map((tool: any) => tool.name);
const params = { text: { type: "string" } };

/** A reload, to another address if given. What `also` leaves in the storage is not of this page. */
async function reload(href?: string, also?: (stored: Map<string, string>) => void): Promise<void> {
  fire("window", "pagehide");
  const { stored } = sessionStorage as any;
  freshPage(href);
  for (const [key, value] of stored) sessionStorage.setItem(key, value);
  also?.((sessionStorage as any).stored);
  await connect();
}

test("by path: looked up at each call, with its this, the arguments and the context", async () => {
  page.myApp = { n: 5, inner: { save(args: any, ctx: any) { return [this === page.myApp.inner, args, typeof ctx.progress, page.myApp.n]; } } };
  await connect();
  assert.equal((await byPath("save", "myApp.inner.save", { params })).result, "registered save");
  assert.deepEqual(tools(), [{ source: "dynamic", origin: { kind: "path", path: "myApp.inner.save" }, name: "save", description: "D", params }]);
  assert.deepEqual((await call("save", { text: "x" })).result, [true, { text: "x" }, "function", 5]);
  page.myApp.inner = { save: () => "replaced" };
  assert.equal((await call("save")).result, "replaced");
  delete page.myApp;
  assert.equal((await call("save")).error.message, "myApp.inner.save: window has no myApp: what a script declares with let, const or class is not there");
});

for (const [path, message] of [
  ["gone", /^gone: window has no gone/],
  ["myApp.gone.save", /^myApp.gone.save: myApp has no gone$/],
  ["myApp.nothing.save", /^myApp.nothing.save: myApp.nothing is null$/],
  ["myApp.n", /^myApp.n is no function but number$/],
  ["myApp.n.gone", /myApp.n has no gone$/],
  ["myApp.", /myApp has no $/],
  ["myApp.trap", /^trapped$/],
  ["", /^path is missing/],
  [5, /^path is missing/],
  ["a".repeat(2000), /^path has 2000 characters, the limit is 1024$/],
] as [unknown, RegExp][]) {
  test(`by path: ${String(path).slice(0, 20) || "empty"} is an error`, async () => {
    page.myApp = { n: 5, nothing: null, get trap() { throw Error("trapped"); } };
    await connect();
    assert.match((await byPath("x", path)).error.message, message);
    assert.equal(manifests().length, 1);
    delete page.myApp;
  });
}

test("by code: an async body with the three names", async () => {
  await connect();
  assert.equal((await byCode("title", "await null; return [args.a, document.title, window === globalThis, typeof this]", { params })).result, "registered title");
  assert.deepEqual((await call("title", { a: 1 })).result, [1, "Notes", true, "object"]);
  assert.deepEqual(tools()[0].origin, { kind: "code", code: "await null; return [args.a, document.title, window === globalThis, typeof this]" });
  assert.equal((await byCode("fails", "throw new RangeError('mine')")).result, "registered fails");
  assert.deepEqual((await call("fails")).error, { message: "mine", name: "RangeError" });
});

for (const [name, code, message] of [
  ["a syntax error", "return (", /Unexpected|Invalid/],
  ["an attempt to end the body", "}); alert(1); (async () => {", /Unexpected|function/],
  ["none", undefined, /^code is missing/],
  ["too much", "x".repeat((256 << 10) + 1), /^code has 262145 characters, the limit is 262144$/],
] as [string, unknown, RegExp][]) {
  test(`by code: ${name} is an error`, async () => {
    await connect();
    assert.match((await byCode("x", code)).error.message, message);
    assert.equal(manifests().length, 1);
  });
}

for (const [name, args, message] of [
  ["no name", { description: "D" }, /^name is missing/],
  ["a blank name", { name: " ", description: "D" }, /^name is missing/],
  ["a long name", { name: "x".repeat(129), description: "D" }, /^name has 129/],
  ["a reserved name", { name: "__register_tool_by_path__", description: "D" }, /is reserved/],
  ["no description", { name: "x" }, /^description is missing/],
  ["params that are a list", { name: "x", description: "D", params: [] }, /^params must be/],
  ["params of text", { name: "x", description: "D", params: "{}" }, /^params must be/],
] as [string, object, RegExp][]) {
  test(`refused: ${name}`, async () => {
    await connect();
    assert.match((await call("__register_tool_by_code__", { code: "return 1", ...args })).error.message, message);
    assert.equal(manifests().length, 1);
  });
}

test("the changed list is sent before the answer", async () => {
  await connect();
  const ws = FakeSocket.last;
  await byCode("a", "return 1");
  await remove("a");
  assert.deepEqual(ws.messages("register_tools").map((m) => m.tools.length), [0, 1, 0]);
  const order = ws.sent.map((frame) => JSON.parse(frame).type);
  assert.deepEqual(order, ["register_tools", "register_tools", "call_result", "register_tools", "call_result"]);
});

test("a name that exists is an error that says whose it is", async () => {
  page.__mcpTools = [{ name: "own", fn }];
  await connect();
  page.__mcpToolBus.registerProvider("p", [{ name: "bus", fn }]);
  await byCode("mine", "return 1");
  assert.match((await byCode("own", "return 2")).error.message, /a tool own already, of its own \(__mcpTools\): choose another name/);
  for (const name of ["bus", "mine"]) assert.match((await byCode(name, "return 2")).error.message, /already, added at run time: unregister it first/);
  assert.equal((await call("mine")).result, 1);
});

test("unregister: any tool of the bus, never one of the page's own", async () => {
  page.__mcpTools = [{ name: "own", fn }];
  await connect();
  page.__mcpToolBus.registerProvider("p", [{ name: "bus", fn }, { name: "other", fn }]);
  await byCode("mine", "return 1");
  assert.equal((await remove("bus")).result, "unregistered bus");
  assert.equal((await remove("mine")).result, "unregistered mine");
  assert.deepEqual(names(), ["own", "other"]);
  assert.match((await remove("own")).error.message, /^own is the page's own \(__mcpTools\)/);
  assert.match((await remove("mine")).error.message, /^this page has no tool mine; added at run time: other$/);
  assert.ok((await remove(undefined)).error.message);
  assert.deepEqual(names(), ["own", "other"]);
});

test("a bus that can't remove by name still gives back what was registered through it", async () => {
  await connect();
  delete page.__mcpToolBus.unregisterTool;
  await byCode("mine", "return 1");
  page.__mcpToolBus.registerTool("bus", fn);
  assert.equal((await remove("mine")).result, "unregistered mine");
  assert.match((await remove("bus")).error.message, /can't remove bus/);
});

test("a bus of the page's own may hold anything", async () => {
  const list: any[] = [null, 5, { get name() { throw Error("mine"); }, fn }, { name: "theirs", fn }];
  page.__mcpToolBus = {
    registerTool: (name: string, fn: unknown, options: object) => (list.push({ ...options, name, fn }), () => {}),
    registerProvider() {},
    getTools: () => list,
    onChange: () => () => {},
  };
  page.a = fn;
  await connect();
  await byPath("mine", "a");
  assert.equal((await remove("gone")).error.message, "this page has no tool gone; added at run time: theirs, mine");
  // The page took it back, whatever else there is.
  list.pop();
  await reload();
  assert.deepEqual(page.__mcpToolBus.getTools(), []);
});

test("at most a hundred, and two million characters", async () => {
  await connect();
  for (let i = 0; i < 100; i++) await byCode("t" + i, "return 1");
  assert.match((await byCode("more", "return 1")).error.message, /100 tools added at run time, which is the limit/);
  await remove("t5");
  assert.equal((await byCode("more", "return 1")).result, "registered more");
  for (let i = 0; i < 9; i++) await remove("t" + (10 + i));
  const results = [];
  for (let i = 0; i < 9; i++) results.push(await byCode("big" + i, "return 1;" + " ".repeat(250e3)));
  assert.deepEqual(results.map((r) => !!r.error), [false, false, false, false, false, false, false, false, true]);
  assert.match(results[8].error.message, /more than 2 MiB/);
});

test("a list that grows too large for the server is taken back", async () => {
  await connect(2_000);
  await byCode("small", "return 1");
  assert.match((await byCode("large", "return 1;" + " ".repeat(3_000))).error.message, /too large for the server/);
  assert.equal((await byCode("next", "return 1")).result, "registered next");
  assert.deepEqual(names(), ["small", "next"]);
});

test("a reload has them in its first list, as they were", async () => {
  page.myApp = { save: () => "saved" };
  await connect();
  await byPath("save", "myApp.save", { params });
  await byCode("two", "return args.n + 1", { params });
  page.__mcpToolBus.registerTool("pages", fn);
  await settle();
  const before = tools().slice(0, 2);
  delete page.myApp; // The app boots later.
  await reload();
  assert.equal((sessionStorage as any).stored.size, 0, "a copy of the tab must not find them");
  assert.equal(manifests().length, 1);
  assert.deepEqual(tools(), before);
  assert.equal((await call("two", { n: 1 })).result, 2);
  assert.match((await call("save")).error.message, /window has no myApp/);
  page.myApp = { save: () => "saved" };
  assert.equal((await call("save")).result, "saved");
  await remove("two");
  await reload();
  assert.deepEqual(names(), ["save"]);
  delete page.myApp;
});

test("what the page removed or replaced is not kept", async () => {
  await connect();
  for (const name of ["a", "b", "c"]) await byCode(name, "return 1");
  page.__mcpToolBus.unregisterTool("a");
  page.__mcpToolBus.registerTool("b", fn);
  await reload();
  assert.deepEqual(names(), ["c"]);
});

test("a name that the page took meanwhile stays the page's", async () => {
  await connect();
  await byCode("a", "return 'agent'");
  await byCode("b", "return 1");
  fire("window", "pagehide");
  const { stored } = sessionStorage as any;
  freshPage();
  for (const [key, value] of stored) sessionStorage.setItem(key, value);
  page.__mcpTools = [{ name: "a", fn: () => "page" }];
  await connect();
  assert.deepEqual(tools().map((t: any) => `${t.source} ${t.name}`), ["host a", "dynamic b"]);
  assert.match(lines.join(), /a, added before the reload, is left out: this page has a tool a already/);
});

test("through a disconnect and back, and through the back/forward cache", async () => {
  await connect();
  await byCode("a", "return 1");
  page.__mcpDisconnect();
  page.__mcpReconnect();
  await connect();
  assert.deepEqual(names(), ["a"]);
  fire("window", "pagehide");
  fire("window", "pageshow", { persisted: true });
  assert.equal((sessionStorage as any).stored.size, 0);
  await reload();
  assert.deepEqual(names(), ["a"]);
});

test("a page that fails to load its extras leaves them for the next", async () => {
  await connect();
  await byCode("a", "return 1");
  fire("window", "pagehide");
  const { stored } = sessionStorage as any;
  freshPage();
  for (const [key, value] of stored) sessionStorage.setItem(key, value);
  install(server, "t1", async () => { throw Error("down"); });
  await settle();
  await reload();
  assert.deepEqual(names(), ["a"]);
});

test("an origin that is nobody's keeps nothing", async () => {
  await connect();
  Object.assign(location, { origin: "null" });
  await byCode("a", "return 1");
  fire("window", "pagehide");
  assert.match([...(sessionStorage as any).stored.values()].join(), /^[\w-]+ $/);
  Object.assign(location, { origin: "http://localhost:8080" });
  fire("window", "pagehide");
  await reload("http://localhost:8080/", () => Object.assign(location, { origin: "null" }));
  assert.deepEqual(names(), []);
});

const good = { name: "good", description: "D", origin: { kind: "code", code: "return 1" } };
for (const [name, kept, want] of [
  ["no JSON", "[{", []],
  ["no list", '{"a":1}', []],
  ["null", "null", []],
  ["a list of anything", JSON.stringify([null, 5, "x", [], {}, good]), ["good"]],
  ["a bad name", JSON.stringify([{ ...good, name: { a: 1 } }, { ...good, name: "__unregister_tool__" }, good]), ["good"]],
  ["a bad origin", JSON.stringify([{ ...good, origin: null }, { ...good, origin: { kind: "url", url: "x" } }, { ...good, origin: { kind: "code" } }]), []],
  ["too much", JSON.stringify([{ ...good, origin: { kind: "code", code: "x".repeat(300e3) } }]), []],
  ["the same twice", JSON.stringify([good, good]), ["good"]],
  ["too many", JSON.stringify(Array.from({ length: 300 }, (_, i) => ({ ...good, name: "t" + i }))), Array.from({ length: 100 }, (_, i) => "t" + i)],
  ["fields of its own", JSON.stringify([{ ...good, fn: 1, title: "T", __proto__x: 1, params: { a: {} } }]), ["good"]],
] as [string, string, string[]][]) {
  test(`storage with ${name} harms nobody`, async () => {
    sessionStorage.setItem("jsbridge", "0123456789abcdef " + kept);
    await connect();
    assert.deepEqual(names(), want);
    assert.match(FakeSocket.last.url, /instance=0123456789abcdef$/);
    if (want.length == 1) assert.deepEqual(Object.keys(tools()[0]).sort().filter((key) => key != "params"), ["description", "name", "origin", "source"]);
  });
}

test("code that no longer compiles is an error of its calls", async () => {
  sessionStorage.setItem("jsbridge", "0123456789abcdef " + JSON.stringify([{ ...good, origin: { kind: "code", code: "return (" } }]));
  await connect();
  assert.deepEqual(names(), ["good"]);
  assert.match((await call("good")).error.message, /Unexpected|Invalid/);
});

/** Just enough of elements for the box. */
class FakeElement {
  children: FakeElement[] = [];
  style: any = {};
  textContent = "";
  attributes: Record<string, string> = {};
  listeners: Record<string, (event: object) => void> = {};
  parent: FakeElement | undefined;
  constructor(readonly tag: string) {}
  append(child: FakeElement) {
    child.parent = this;
    this.children.push(child);
  }
  appendChild = this.append;
  attachShadow({ mode }: { mode: string }) {
    const shadow = new FakeElement("shadow " + mode);
    this.append(shadow);
    return shadow;
  }
  setAttribute(name: string, value: string) {
    this.attributes[name] = value;
  }
  addEventListener(type: string, listener: (event: object) => void) {
    this.listeners[type] = listener;
  }
  remove() {
    this.parent?.children.splice(this.parent.children.indexOf(this), 1);
  }
  focus() {
    focused.push(this);
  }
  all(): FakeElement[] {
    return [this, ...this.children.flatMap((child) => child.all())];
  }
}
let focused: FakeElement[] = [];
let body: FakeElement;
let now = 0;

/** Asks for leave, and shows the box. */
async function ask(name = "a", code = "return 1"): Promise<string> {
  const id = start("__register_tool_by_code__", { name, description: "D", code, ask: true });
  await settle();
  return id;
}
async function connectWithBody(): Promise<void> {
  body = new FakeElement("body");
  focused = [];
  now = 0;
  Object.assign(document, { createElement: (tag: string) => new FakeElement(tag), body, activeElement: null });
  Object.defineProperty(page, "performance", { value: { now: () => now }, configurable: true });
  await connect();
}
const button = (label: string) => body.all().find((e) => e.tag == "button" && e.textContent == label)!;
async function click(label: string, isTrusted = true): Promise<void> {
  button(label).listeners.click!({ isTrusted });
  await settle();
}
const texts = () => body.all().map((e) => e.textContent).filter(Boolean);

test("ask: the human sees all of it, and the tool is there only after Allow", async () => {
  await connectWithBody();
  const id = await ask("count", "return 1 // \u202e\u0000<b>\nx");
  assert.deepEqual(texts(), ["An agent wants to add a tool to this page", "count", "D", "return 1 // \\u{202e}\\u{0}<b>\nx", "Allow", "Refuse"]);
  assert.deepEqual(body.children[0]!.children.map((e) => e.tag), ["shadow closed"]);
  const dialog = body.all().find((e) => e.attributes.role == "dialog")!;
  assert.ok(dialog.attributes["aria-label"]);
  assert.deepEqual(focused, [dialog], "no button, which a key meant for the page would press");
  assert.deepEqual([names(), answer(id)], [[], undefined]);
  now = 499;
  await click("Allow");
  now = 500;
  await click("Allow", false);
  assert.deepEqual([names(), answer(id)], [[], undefined]);
  await click("Allow");
  assert.equal(answer(id).result, "registered count");
  assert.deepEqual(names(), ["count"]);
  assert.equal(body.children.length, 0);
});

test("ask: refused by button or Escape", async () => {
  await connectWithBody();
  const first = await ask();
  now = 500;
  await click("Refuse");
  assert.match(answer(first).error.message, /the human at the page refused/);
  const second = await ask();
  const dialog = body.all().find((e) => e.attributes.role == "dialog")!;
  dialog.listeners.keydown!({ isTrusted: true, key: "Enter" });
  dialog.listeners.keydown!({ isTrusted: false, key: "Escape" });
  await settle();
  assert.equal(body.children.length, 1);
  dialog.listeners.keydown!({ isTrusted: true, key: "Escape" });
  await settle();
  assert.match(answer(second).error.message, /refused/);
  assert.deepEqual([names(), body.children.length], [[], 0]);
});

test("ask: one at a time, gone when the call is cancelled or the socket lost", async () => {
  await connectWithBody();
  const first = await ask("a");
  const second = await ask("b");
  await ask("c");
  assert.equal(body.children.length, 1);
  FakeSocket.last.say({ type: "cancel", id: second });
  FakeSocket.last.say({ type: "cancel", id: first });
  await settle();
  assert.deepEqual(texts()[1], "c");
  now = 500;
  await click("Allow");
  assert.deepEqual(names(), ["c"]);
  await ask("d");
  FakeSocket.last.end(1001);
  await settle();
  assert.equal(body.children.length, 0);
});

test("ask: what is wrong is said without asking, and a name taken meanwhile too", async () => {
  await connectWithBody();
  assert.match(answer(await ask("a", "return (")).error.message, /Unexpected|Invalid/);
  assert.equal(body.children.length, 0);
  const id = await ask("a");
  page.__mcpToolBus.registerTool("a", fn);
  now = 500;
  await click("Allow");
  assert.match(answer(id).error.message, /a tool a already/);
});
