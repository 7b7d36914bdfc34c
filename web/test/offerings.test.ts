import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { beforeEach, mock } from "node:test";
import { install as connectPage } from "../src/bridge.ts";
import type { ToolContext } from "../src/context.ts";
import * as extras from "../src/extras.ts";
import { FakeSocket, freshPage, lines, settle, tick } from "./page.ts";

const page = globalThis as any;
const server = new URL("http://localhost:8766");
const fn = () => "text";
const agent = { name: "claude-code", version: "2", capabilities: { roots: {} } };
let load: () => Promise<typeof extras>;

beforeEach(() => {
  freshPage();
  load = async () => extras;
});

async function connect(): Promise<FakeSocket> {
  connectPage(server, "t1", () => load());
  await settle();
  return accept();
}
async function accept(): Promise<FakeSocket> {
  const ws = FakeSocket.last;
  ws.open();
  ws.say({ type: "welcome", connectionId: "c", state: "ready", limits: { frameBytes: 10_000, tools: 512 } });
  ws.say({ type: "registered", prefix: "shop", tools: [], problems: [] });
  await settle();
  return ws;
}
async function reconnect(): Promise<FakeSocket> {
  FakeSocket.last.end(1001);
  await settle();
  tick(30_000);
  return accept();
}
const manifests = () => FakeSocket.last.messages("register_tools");
const manifest = () => manifests().at(-1);
let id = 0;
/** Sends a request and gives its answer, if there is one by then. */
async function ask(request: object): Promise<any> {
  const own = "r" + id++;
  FakeSocket.last.say({ id: own, timeoutMs: 1000, progress: false, agent, ...request });
  await settle();
  return answerTo(own);
}
const answerTo = (id: string) => FakeSocket.last.messages("call_result").find((m) => m.id == id);
const read = (uri: string, more: object = {}) => ask({ type: "read_resource", uri, ...more });
const prompt = (name: string, more: object = {}) => ask({ type: "get_prompt", name, arguments: {}, ...more });

/** A tool `t` that runs; a test has its context, and ends it. */
async function running(): Promise<{ ctx: ToolContext; finish: (value?: unknown) => void; id: string }> {
  let ctx!: ToolContext;
  let finish!: (value?: unknown) => void;
  page.__mcpTools = [{ name: "t", fn: (_: object, c: ToolContext) => new Promise((done) => ([ctx, finish] = [c, done])) }];
  const own = "c" + id++;
  FakeSocket.last.say({ type: "call", id: own, name: "t", args: {}, agent });
  await settle();
  return { ctx, finish, id: own };
}
const asked = () => FakeSocket.last.messages("ask");

test("what is declared goes as the wire has it, of the page's own and of the bus", async () => {
  const frame = JSON.parse(readFileSync(new URL("../../bridge/page/testdata/wire/page-register_tools-offerings.json", import.meta.url), "utf8"));
  const icons = [{ src: "data:image/png;base64,AA==" }];
  const more = { icons, timeoutMs: 5000, secret: 1, fn };
  page.__mcpPrompts = [
    { name: "review", title: "Review the cart", description: "Asks for a look at the cart", ...more,
      arguments: [{ name: "style", title: "Style", description: "How to say it", required: true, complete: ["short"] }, { name: "length" }] },
    { name: "broken" },
  ];
  page.__mcpResources = [
    { uri: "cart", name: "cart", title: "Cart", description: "What is in the cart", mimeType: "application/json", size: 120, annotations: { audience: ["user"], priority: 0.5 }, ...more },
    { uriTemplate: "item/{id}", name: "item", title: "Item", description: "One item", mimeType: "application/json", annotations: { audience: ["assistant"] }, complete: { id: fn, n: undefined }, ...more },
    { fn },
  ];
  await connect();
  page.__mcpToolBus.registerPrompt("bare", fn);
  page.__mcpToolBus.registerResource("shop://terms", fn);
  page.__mcpToolBus.registerResource("shop://page/{n}", fn);
  await settle();
  const { prompts, resources, resourceTemplates, problems } = manifest();
  assert.deepEqual({ prompts, resources, resourceTemplates, problems }, { prompts: frame.prompts, resources: frame.resources, resourceTemplates: frame.resourceTemplates, problems: frame.problems });
  assert.ok(lines.includes("warn [jsbridge] prompt broken: fn is missing or no function"));
  assert.ok(lines.includes("warn [jsbridge] resource 2: needs either uri or uriTemplate"));
});

test("a page that declares nothing of it sends nothing of it", async () => {
  await connect();
  assert.deepEqual(Object.keys(manifest()).filter((key) => /prompt|resource/.test(key)), []);
});

for (const [name, declare] of [
  ["prompts", () => (page.__mcpPrompts = [{ name: "p", fn }])],
  ["resources", () => (page.__mcpResources = [{ uri: "r", fn }])],
  ["prompts on a bus", () => (page.__mcpToolBus = { registerTool() {}, registerProvider() {}, onChange: () => fn, getTools: () => [], getPrompts: () => [{ name: "p", fn }], getResources: () => [] })],
] as [string, () => void][]) {
  test(`a page with ${name} never sends a list without them`, async () => {
    let arrive!: (module: typeof extras) => void;
    load = () => new Promise((done) => (arrive = done));
    declare();
    connectPage(server, "t1", () => load());
    await settle();
    assert.equal(FakeSocket.all.length, 0);
    arrive(extras);
    await settle();
    await accept();
    assert.equal(manifests().length, 1);
    assert.equal((manifest().prompts ?? manifest().resources).length, 1);
  });
}

test("declared or changed later, it is noticed", async () => {
  await connect();
  page.__mcpPrompts = [{ name: "a", fn }];
  page.__mcpResources = [{ uri: "a", fn }];
  await settle();
  assert.deepEqual(manifest().prompts, [{ source: "host", name: "a" }]);
  page.__mcpPrompts.push({ name: "b", fn });
  page.__mcpResources.pop();
  await settle();
  assert.deepEqual([manifest().prompts.map((p: any) => p.name), manifest().resources], [["a", "b"], undefined]);
  assert.equal(manifests().length, 3);
  const remove = page.__mcpToolBus.registerPrompt("c", fn);
  await settle();
  assert.equal(manifest().prompts.length, 3);
  remove();
  remove();
  await settle();
  assert.equal(manifest().prompts.length, 2);
});

test("one that is bad takes no other down, and is named", async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const cyclic: any = {};
  cyclic.self = cyclic;
  page.__mcpPrompts = [null, proxy, { get name() { throw Error("mine"); }, fn }, { name: "args", arguments: [{ name: "a", complete: "x" }], fn }, { name: "odd", arguments: "x", fn }, { name: "good", fn }];
  page.__mcpResources = [
    5, { uri: "both", uriTemplate: "both/{x}", fn }, { uri: "sub", subscribe: 1, fn }, { uriTemplate: "t/{x}", complete: { x: 1 }, fn }, { uri: "cycle", annotations: cyclic, fn }, { uri: "good", fn },
  ];
  await connect();
  assert.deepEqual(manifest().prompts, [{ source: "host", name: "odd", arguments: "x" }, { source: "host", name: "good" }]);
  assert.deepEqual(manifest().resources, [{ source: "host", uri: "good", name: "good" }]);
  const problems = manifest().problems.map(({ kind, name, index, reason }: any) => `${kind} ${index} ${name}: ${reason.split("\n")[0]}`);
  assert.deepEqual(problems.map((line: string) => line.replace(/ '.*| structure.*/, "")), [
    "prompt 0 : not an object",
    "prompt 1 : Cannot perform",
    "prompt 2 : mine",
    "prompt 3 args: complete of a must be an array or a function",
    "resource 0 : not an object",
    "resource 1 both: needs either uri or uriTemplate",
    "resource 2 sub: subscribe must be a function",
    "resource 3 t/{x}: complete of x must be an array or a function",
    "resource 4 cycle: Converting circular",
  ]);
});

test("of equal names the page's own goes before the bus, and of its own the last", async () => {
  page.__mcpPrompts = [{ name: "p", fn: () => "first" }, { name: "p", fn: () => "last" }, { name: "q" }];
  page.__mcpResources = [{ uri: "r", fn: () => "own" }];
  await connect();
  for (const name of ["p", "q"]) page.__mcpToolBus.registerPrompt(name, () => "bus");
  page.__mcpToolBus.registerResource("r", () => "bus");
  await settle();
  assert.deepEqual(manifest().problems.map((p: any) => `${p.kind} ${p.name}: ${p.reason}`), [
    "prompt q: fn is missing or no function",
    "prompt p: the name is taken by a prompt of __mcpPrompts",
    "resource r: the name is taken by a resource of __mcpResources",
  ]);
  assert.equal((await prompt("p")).result.messages[0].content.text, "last");
  assert.equal((await prompt("q")).result.messages[0].content.text, "bus");
  assert.equal((await read("r")).result.contents[0].text, "own");
});

test("a prompt gets its arguments and a context, as its own method", async () => {
  let got: any[] = [];
  const own = { name: "p", fn(...args: unknown[]) { got = [this, ...args]; return { messages: ["hi"], description: "D" }; } };
  page.__mcpPrompts = [own];
  await connect();
  assert.deepEqual(await prompt("p", { arguments: { a: "1" } }), { type: "call_result", id: "r" + (id - 1), result: { messages: [{ role: "user", content: { type: "text", text: "hi" } }], description: "D" } });
  assert.deepEqual(got.slice(0, 2), [own, { a: "1" }]);
  assert.deepEqual([got[2].agent, got[2].signal.aborted], [agent, false]);
  for (const args of [undefined, null, "x"]) {
    await prompt("p", { arguments: args });
    assert.deepEqual(got[1], {});
  }
  assert.match((await prompt("gone")).error.message, /no prompt gone, only: p/);
});

test("a resource gets the template's variables, and the URI", async () => {
  page.__mcpResources = [
    { uri: "cart", mimeType: "text/x", fn: (variables: object, { uri }: any) => JSON.stringify([variables, uri]) },
    { uriTemplate: "item/{id}", fn: ({ id }: any, { uri }: any) => ({ id, uri }) },
    { uri: "none", fn() {} },
  ];
  await connect();
  assert.deepEqual((await read("cart")).result, { contents: [{ mimeType: "text/x", text: '[{},"cart"]' }] });
  assert.deepEqual((await read("item/5", { uriTemplate: "item/{id}", variables: { id: "5" } })).result, { contents: [{ mimeType: "application/json", text: '{"id":"5","uri":"item/5"}' }] });
  assert.match((await read("none")).error.message, /returned nothing/);
  assert.match((await read("gone")).error.message, /no resource gone, only: cart,item\/{id},none/);
});

test("completions of arguments and of variables", async () => {
  let given: any;
  page.__mcpPrompts = [{ name: "p", arguments: [null, { name: "a", complete: ["one", "two"] }, { name: "b", complete: (value: string, more: any) => ((given = more), [value + "!"]) }, { name: "c" }], fn }];
  page.__mcpResources = [{ uriTemplate: "i/{id}", complete: { id: ["5", "50", "6"] }, fn }];
  await connect();
  const complete = (ref: object, name: string, value: string, more: object = {}) => ask({ type: "complete", ref, argument: { name, value }, ...more });
  const of = { type: "ref/prompt", name: "p" };
  assert.deepEqual((await complete(of, "a", "T")).result, { values: ["two"] });
  assert.deepEqual((await complete(of, "b", "x", { context: { arguments: { a: "one" } } })).result, { values: ["x!"] });
  assert.deepEqual([Object.keys(given), given.arguments], [["arguments", "signal"], { a: "one" }]);
  for (const name of ["c", "none"]) assert.deepEqual((await complete(of, name, "")).result, { values: [] });
  const item = { type: "ref/resource", uri: "i/{id}" };
  assert.deepEqual((await complete(item, "id", "5")).result, { values: ["5", "50"] });
  for (const name of ["other", "constructor", "__proto__"]) assert.deepEqual((await complete(item, name, "")).result, { values: [] });
  assert.match((await complete({ type: "ref/prompt", name: "gone" }, "a", "")).error.message, /no prompt gone/);
});

test("they are cancelled, answered once, and too large as calls are", async () => {
  let signal!: AbortSignal;
  let finish!: (value: string) => void;
  page.__mcpResources = [{ uri: "slow", fn: (_: object, ctx: any) => new Promise((done) => ([signal, finish] = [ctx.signal, done])) }, { uri: "big", fn: () => "x".repeat(20_000) }];
  const ws = await connect();
  assert.equal(await read("slow"), undefined);
  ws.say({ type: "cancel", id: "r" + (id - 1), reason: "enough" });
  assert.equal(signal.reason.message, "enough");
  finish("late");
  await settle();
  assert.equal(answerTo("r" + (id - 1)), undefined);
  assert.match((await read("big")).error.message, /over the limit of 10000/);
});

test("progress and logs of a prompt are sent", async () => {
  page.__mcpPrompts = [{ name: "p", fn: (_: object, { progress, log }: ToolContext) => (progress(1, 2), log("info", "x"), "hi") }];
  const ws = await connect();
  await prompt("p", { progress: true });
  assert.deepEqual(ws.messages().map((m) => m.type).slice(-3), ["progress", "log", "call_result"]);
});

test("answers of the client come in a second call, of tools too", async () => {
  const inputRequests = { size: { method: "elicitation/create", params: {} } };
  const twice = (_: object, { inputResponses, requestState }: ToolContext) => (inputResponses ? `${requestState} ${inputResponses.size.action}` : { inputRequests, requestState: "s" });
  page.__mcpTools = [{ name: "t", fn: twice }];
  page.__mcpPrompts = [{ name: "p", fn: twice }];
  page.__mcpResources = [{ uri: "r", fn: twice }];
  await connect();
  for (const [request, text] of [
    [{ type: "call", name: "t", args: {} }, (r: any) => r],
    [{ type: "get_prompt", name: "p" }, (r: any) => r.messages[0].content.text],
    [{ type: "read_resource", uri: "r" }, (r: any) => r.contents[0].text],
  ] as const) {
    assert.deepEqual((await ask(request)).result, { inputRequests, requestState: "s" });
    const { result } = await ask({ ...request, inputResponses: { size: { action: "accept" } }, requestState: "s" });
    assert.equal(text(result), "s accept");
  }
});

test("the agent is always an object", async () => {
  let got: any;
  page.__mcpTools = [{ name: "t", fn: (_: object, ctx: ToolContext) => void (got = ctx.agent) }];
  await connect();
  await ask({ type: "call", name: "t", args: {}, agent: undefined });
  assert.deepEqual(got, { name: "", version: "", capabilities: {} });
  await ask({ type: "call", name: "t", args: {} });
  assert.deepEqual(got, agent);
});

for (const [name, act, kind, params] of [
  ["a form", (c) => c.elicit("Size?", { properties: { s: { type: "string" } } }), "elicit", { message: "Size?", requestedSchema: { type: "object", properties: { s: { type: "string" } } } }],
  ["a bare question", (c) => c.elicit("Sure?"), "elicit", { message: "Sure?", requestedSchema: { type: "object", properties: {} } }],
  ["MCP's params", (c) => c.elicit({ message: "m", requestedSchema: {} }), "elicit", { message: "m", requestedSchema: {} }],
  ["an address", (c) => c.elicit("Pay", "https://shop.example/pay"), "elicit", { mode: "url", message: "Pay", url: "https://shop.example/pay", elicitationId: "?" }],
  ["an address of the page", (c) => c.elicit("Pay", "pay"), "elicit", { mode: "url", message: "Pay", url: "http://localhost:8080/pay", elicitationId: "?" }],
  ["a URL", (c) => c.elicit("Pay", new URL("https://shop.example/")), "elicit", { mode: "url", message: "Pay", url: "https://shop.example/", elicitationId: "?" }],
  ["a text for the model", (c) => c.sample("hi"), "sample", { maxTokens: 1000, messages: [{ role: "user", content: { type: "text", text: "hi" } }] }],
  ["a request to the model", (c) => c.sample({ messages: ["a", { role: "assistant", content: "b" }], maxTokens: 5, systemPrompt: "s" }), "sample",
    { maxTokens: 5, messages: [{ role: "user", content: { type: "text", text: "a" } }, { role: "assistant", content: { type: "text", text: "b" } }], systemPrompt: "s" }],
  ["the roots", (c) => c.roots(), "roots", {}],
] as [string, (ctx: ToolContext) => Promise<unknown>, string, object][]) {
  test(`asks for ${name}`, async () => {
    await connect();
    const { ctx, id } = await running();
    const answer = act(ctx);
    await settle();
    const [question] = asked();
    assert.match(question.id, /./);
    if (question.params.elicitationId) question.params.elicitationId = "?";
    assert.deepEqual(question, { type: "ask", id: question.id, callId: id, kind, params });
    FakeSocket.last.say({ type: "answer", id: question.id, result: { action: "accept" } });
    FakeSocket.last.say({ type: "answer", id: question.id, result: { action: "cancel" } });
    if (kind != "roots") assert.deepEqual(await answer, { action: "accept" });
  });
}

test("roots are a list, however it is given", async () => {
  const ws = await connect();
  const { ctx } = await running();
  for (const [result, want] of [[{ roots: [{ uri: "file:///a" }] }, [{ uri: "file:///a" }]], [[{ uri: "file:///b" }], [{ uri: "file:///b" }]], [{ roots: null }, { roots: null }], [null, []]]) {
    const roots = ctx.roots();
    await settle();
    ws.say({ type: "answer", id: asked().at(-1).id, result });
    assert.deepEqual(await roots, want);
  }
});

test("a question that can't be put rejects with what the server says, which may become the call's error", async () => {
  const ws = await connect();
  page.__mcpTools = [{ name: "e", fn: (_: object, ctx: ToolContext) => ctx.sample("hi") }];
  ws.say({ type: "call", id: "e1", name: "e", args: {} });
  await settle();
  const error = { message: "the client has no model to ask", name: "NotSupportedError", code: "-32021" };
  ws.say({ type: "answer", id: asked()[0].id, error });
  await settle();
  assert.deepEqual(answerTo("e1").error, error);
});

test("what is no question is refused in the page", async () => {
  await connect();
  const { ctx } = await running();
  for (const act of [() => ctx.elicit(5 as any), () => ctx.elicit("x", "http://"), () => ctx.sample(undefined as any), () => ctx.sample({} as any), () => ctx.sample({ messages: [5 as any] })]) await assert.rejects(act);
  await assert.rejects(ctx.sample("x".repeat(20_000)), /too large/);
  assert.equal(asked().length, 0);
});

test("questions end with their call, whichever way, and none comes after", async () => {
  const ws = await connect();
  for (const [name, end, want] of [
    ["cancelled", (call) => ws.say({ type: "cancel", id: call.id, reason: "stop" }), /^AbortError: stop$/],
    ["returned", (call) => call.finish(), /the call ended before this was answered/],
    ["socket lost", () => ws.end(1001), /connection lost/],
  ] as [string, (call: Awaited<ReturnType<typeof running>>) => void, RegExp][]) {
    const call = await running();
    const open = [call.ctx.elicit("a"), call.ctx.roots()].map((p) => p.catch(String));
    await settle();
    const ids = asked().slice(-2).map((m) => m.id);
    assert.equal(new Set(asked().map((m) => m.id)).size, asked().length, "ids are used once");
    end(call);
    for (const result of await Promise.all(open)) assert.match(result as string, want, name);
    const sent = asked().length;
    await assert.rejects(call.ctx.elicit("late"), Error, name);
    for (const id of ids) ws.say({ type: "answer", id, result: {} });
    assert.equal(asked().length, sent);
  }
});

test("a call of one is not ended by that of another", async () => {
  const ws = await connect();
  const first = await running();
  const answer = first.ctx.elicit("a");
  const second = await running();
  second.finish();
  await settle();
  ws.say({ type: "answer", id: asked()[0].id, result: { action: "decline" } });
  assert.deepEqual(await answer, { action: "decline" });
});

test("without extras calls run, and questions fail", async () => {
  load = async () => { throw TypeError("Failed to fetch"); };
  page.__mcpPrompts = [{ name: "p", fn }];
  await connect();
  const { ctx, finish, id } = await running();
  assert.equal(manifest().prompts, undefined);
  await assert.rejects(ctx.elicit("a"), /extras.js failed/);
  assert.deepEqual(ctx.agent, agent);
  finish("done");
  await settle();
  assert.equal(answerTo(id).result, "done");
  assert.match((await ask({ type: "get_prompt", name: "p" }) ?? { error: { message: "not answered" } }).error.message, /not answered/);
});

test("extras that never come keep no call waiting", async () => {
  load = () => new Promise(() => {});
  page.__mcpTools = [{ name: "t", fn: () => 1 }];
  await connect();
  assert.equal((await ask({ type: "call", name: "t", args: {} })).result, 1);
});

test("a watched resource tells of changes, once a turn", async () => {
  let notify!: () => void;
  const calls: unknown[] = [];
  const own = { uri: "cart", subscribe(...args: any[]) { calls.push(this, ...args.slice(1)); notify = args[0]; return () => calls.push("end"); }, fn };
  page.__mcpResources = [own];
  const ws = await connect();
  ws.say({ type: "subscribe", uri: "cart" });
  ws.say({ type: "subscribe", uri: "cart" });
  assert.deepEqual(calls, [own, { uri: "cart", variables: {} }]);
  notify();
  notify();
  page.__mcpResourceUpdated("cart");
  page.__mcpToolBus.resourceUpdated("other");
  await settle();
  assert.deepEqual(ws.messages("resource_updated"), [{ type: "resource_updated", uri: "cart" }, { type: "resource_updated", uri: "other" }]);
  notify();
  await settle();
  ws.say({ type: "unsubscribe", uri: "cart" });
  ws.say({ type: "unsubscribe", uri: "cart" });
  assert.equal(calls.length, 3);
  notify();
  await settle();
  assert.equal(ws.messages("resource_updated").length, 3);
  for (const bad of [undefined, 5]) assert.throws(() => page.__mcpResourceUpdated(bad), TypeError);
  assert.throws(() => page.__mcpToolBus.resourceUpdated(), TypeError);
});

test("a watched URI of a template has its variables", async () => {
  const got: unknown[] = [];
  page.__mcpResources = [{ uri: "item/0", fn }, { uriTemplate: "item/{id}", subscribe: (_: unknown, what: unknown) => void got.push(what), fn }];
  const ws = await connect();
  for (const uri of ["item/0", "item/5", "none"]) ws.say({ type: "subscribe", uri });
  assert.deepEqual(got, [{ uri: "item/5", variables: { id: "5" } }]);
});

test("subscribe may be async, and fail, and its end too", async () => {
  const ends: string[] = [];
  const warn = mock.method(console, "warn", () => {});
  page.__mcpResources = [
    { uri: "later", subscribe: async () => () => ends.push("later"), fn },
    { uri: "soon", subscribe: async () => () => ends.push("soon"), fn },
    { uri: "odd", subscribe: () => 5, fn },
    { uri: "throws", subscribe() { throw Error("a"); }, fn },
    { uri: "rejects", subscribe: async () => { throw Error("b"); }, fn },
    { uri: "end throws", subscribe: () => () => { throw Error("c"); }, fn },
    { uri: "end rejects", subscribe: () => async () => { throw Error("d"); }, fn },
  ];
  const ws = await connect();
  const all = page.__mcpResources.map(({ uri }: any) => uri);
  for (const uri of all) ws.say({ type: "subscribe", uri });
  // Before what it gives is there.
  ws.say({ type: "unsubscribe", uri: "soon" });
  await settle();
  assert.deepEqual(ends, ["soon"]);
  for (const uri of all) ws.say({ type: "unsubscribe", uri });
  await settle();
  assert.deepEqual(ends, ["soon", "later"]);
  assert.deepEqual(warn.mock.calls.map(({ arguments: [text, e] }: any) => `${text} ${e.message}`.replace("[jsbridge] resource ", "")), [
    "throws: subscribe failed: a", "rejects: subscribe failed: b", "end throws: subscribe failed: c", "end rejects: subscribe failed: d",
  ]);
});

test("what is watched follows what the page declares, and ends with the socket", async () => {
  const log: string[] = [];
  let notify!: () => void;
  const resource = (name: string) => ({ uri: "cart", fn, subscribe(n: () => void) { log.push("+" + name); notify = n; return () => log.push("-" + name); } });
  const ws = await connect();
  ws.say({ type: "subscribe", uri: "cart" });
  page.__mcpResources = [resource("a")];
  await settle();
  page.__mcpResources.push({ uri: "other", fn });
  await settle();
  assert.deepEqual(log, ["+a"]);
  const stale = notify;
  page.__mcpResources = [resource("b")];
  await settle();
  assert.deepEqual(log, ["+a", "-a", "+b"]);
  stale();
  page.__mcpResources = [];
  await settle();
  assert.deepEqual(log.slice(3), ["-b"]);
  page.__mcpResources = [resource("c")];
  await settle();
  const fresh = await reconnect();
  assert.deepEqual(log.slice(4), ["+c", "-c"]);
  notify();
  await settle();
  assert.deepEqual([ws, fresh].map((s) => s.messages("resource_updated").length), [0, 0]);
  fresh.say({ type: "subscribe", uri: "cart" });
  assert.deepEqual(log.slice(6), ["+c"]);
  page.__mcpDisconnect();
  assert.deepEqual(log.slice(6), ["+c", "-c"]);
  assert.equal(page.__mcpResourceUpdated, undefined);
  page.__mcpToolBus.resourceUpdated("cart");
});

test("messages of no meaning do nothing", async () => {
  const ws = await connect();
  const sent = ws.sent.length;
  for (const message of [{ type: "answer", id: "q99", result: 1 }, { type: "unsubscribe", uri: "none" }, { type: "later" }, { type: "subscribe", uri: "none" }, null, 5, "{"]) ws.say(message as object);
  await settle();
  assert.equal(ws.sent.length, sent);
});
