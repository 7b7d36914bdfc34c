import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import type { ToolContext } from "../src/context.ts";
import type { Tool } from "../src/dispatch.ts";
import { keepErrors, thrown } from "../src/thrown.ts";
import { watchWebMCP, type ModelTool } from "../src/webmcp.ts";
import { freshPage, lines, settle } from "./page.ts";

const global = globalThis as any;
const FAILED = "Tool was executed but the invocation failed. For example, the script function threw an error";
const unknown = (message: string) => new DOMException(message, "UnknownError");
const never = new AbortController().signal;

/** A registry as Chromium has it: input is an object, results are text, errors are hidden. */
class FakeContext extends EventTarget {
  tools = new Map<string, any>();
  executed: string[] = [];

  async registerTool(tool: any, { signal }: { signal?: AbortSignal } = {}) {
    const { name, execute } = tool;
    if (this.tools.has(name)) throw new DOMException("Duplicate tool name", "InvalidStateError");
    this.tools.set(name, { ...tool, name, execute });
    signal?.addEventListener("abort", () => this.tools.delete(name) && this.dispatchEvent(new Event("toolchange")));
    this.dispatchEvent(new Event("toolchange"));
  }
  async getTools() {
    return [...this.tools.values()].map(({ execute, ...tool }) => ({ window: globalThis, origin: "http://localhost:8080", title: "", ...tool }));
  }
  parse(input: unknown): object {
    if (typeof input != "object" || !input) throw new TypeError("invalid input object: value is not an object");
    return JSON.parse(JSON.stringify(input));
  }
  async executeTool({ name }: any, given: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<string | null> {
    const input = this.parse(given);
    const { execute } = this.tools.get(name);
    this.executed.push(name);
    const gone = new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    return Promise.race([gone, this.run(execute, input, signal)]);
  }
  async run(execute: any, input: object, signal?: AbortSignal): Promise<string | null> {
    try {
      const value = await execute.call(globalThis, input, { signal });
      return typeof value == "string" ? value : JSON.stringify(value) ?? String(value);
    } catch {
      throw unknown(FAILED);
    }
  }
}

/** As the polyfills: input is JSON text. */
class TextContext extends FakeContext {
  override parse(input: any): object {
    try {
      return JSON.parse(input);
    } catch {
      throw unknown("Failed to parse input arguments");
    }
  }
}

/** As the polyfills of version 3 and 4: takes both, hands the input on as it is, and hides no error. */
class OpenContext extends FakeContext {
  override parse = (input: any) => (typeof input == "string" ? JSON.parse(input) : input);
  override run = async (execute: any, input: object) => JSON.stringify(await execute(input));
}

const define = (target: any, name: string, value: unknown) => Object.defineProperty(target, name, { value, configurable: true });
let forms: string[] = [];

function install<T extends FakeContext>(context: T): T {
  define(document, "modelContext", context);
  return context;
}

async function watch(changed = () => {}, signal = never): Promise<() => ModelTool[]> {
  return (await watchWebMCP(changed, signal)!) as () => ModelTool[];
}
const byName = (tools: Tool[], name: string) => tools.find((tool) => tool.name == name)!;
const run = async (tools: Tool[], name: string, args: object = {}, signal = never) => byName(tools, name).fn(args, { signal } as ToolContext);
const tool = (name: string, execute: Function, more: object = {}) => ({ name, description: name, execute, ...more });

const { registerTool } = FakeContext.prototype;

beforeEach(() => {
  freshPage();
  FakeContext.prototype.registerTool = registerTool;
  thrown().clear();
  forms = [];
  (document as any).querySelector = (selector: string) => forms.find((name) => selector == `form[toolname="${name}"]`) ?? null;
  define(global, "CSS", { escape: (text: string) => text });
});

test("without WebMCP, or one that only registers, there is nothing to watch", () => {
  keepErrors();
  assert.equal(watchWebMCP(() => {}, never), undefined);
  define(document, "modelContext", { registerTool() {} });
  assert.equal(watchWebMCP(() => {}, never), undefined);
  Object.defineProperty(document, "modelContext", { configurable: true, get: () => { throw Error("forbidden"); } });
  keepErrors();
  assert.equal(watchWebMCP(() => {}, never), undefined);
});

test("tools are listed with what MCP knows of them, and frames' tools are not", async () => {
  const context = install(new FakeContext());
  await context.registerTool(tool("add", () => 1, { title: "Add", inputSchema: { type: "object", properties: { a: { type: "number" } } }, annotations: { readOnlyHint: true, untrustedContentHint: true, title: "t" } }));
  await context.registerTool(tool("framed", () => 1, { window: {} }));
  await context.registerTool(tool("bare", () => 1, { window: undefined }));
  const [add, bare, ...rest] = (await watch())();
  assert.deepEqual(rest, []);
  const { fn, ...fields } = add!;
  assert.equal(typeof fn, "function");
  assert.deepEqual(JSON.parse(JSON.stringify(fields)), {
    name: "add",
    title: "Add",
    description: "add",
    inputSchema: { type: "object", properties: { a: { type: "number" } } },
    annotations: { title: "t", readOnlyHint: true },
  });
  assert.equal(bare!.title, undefined);
  assert.equal(bare!.annotations, undefined);
});

test("whatever the schema is, it becomes one of an object", async () => {
  const properties = { a: {} };
  const cases: [unknown, object][] = [
    [undefined, { type: "object" }],
    [null, { type: "object" }],
    [[1], { type: "object" }],
    ["no json", { type: "object" }],
    ["null", { type: "object" }],
    [{ type: "nonsense", properties }, { type: "object" }],
    [{ type: 5 }, { type: "object" }],
    [{ properties }, { type: "object", properties }],
    [{ type: ["object", "null"], properties }, { type: "object", properties }],
    [JSON.stringify({ type: "object", properties }), { type: "object", properties }],
  ];
  const context = install(new FakeContext());
  for (const [i, [inputSchema]] of cases.entries()) await context.registerTool(tool(`t${i}`, () => 1, { inputSchema }));
  const tools = (await watch())();
  for (const [i, [given, want]] of cases.entries()) assert.deepEqual(tools[i]!.inputSchema, want, JSON.stringify(given));
});

test("a descriptor that can't be read leaves the others", async () => {
  const context = install(new FakeContext());
  context.getTools = async () => [null, 5, { get name() { throw Error("no"); } }, { name: "w", get window() { throw Error("no"); } }, { name: 7 }, { get window() { return globalThis; }, name: "good", description: "" }] as any;
  assert.deepEqual((await watch())().map(({ name }) => name), ["good"]);
});

test("input reaches registries that take objects and those that take text", async () => {
  for (const Context of [FakeContext, TextContext, OpenContext]) {
    const context = install(new Context());
    await context.registerTool(tool("echo", (input: object) => ({ ...input })));
    const tools = (await watch())();
    for (const args of [{}, { a: [1, "x"], b: { c: null } }, { toString: "mine", valueOf: 1 }, JSON.parse('{"__proto__":{"a":1}}')]) {
      assert.equal(JSON.stringify(await run(tools, "echo", args)), JSON.stringify(args), Context.name);
      assert.deepEqual(Object.getOwnPropertySymbols(args), []);
    }
    assert.equal(context.executed.length, 4);
  }
});

test("a tool's own TypeError never makes it run twice", async () => {
  for (const Context of [FakeContext, TextContext, OpenContext]) {
    const context = install(new Context());
    keepErrors();
    await context.registerTool(tool("bad", () => { throw new TypeError("mine"); }));
    await assert.rejects(run((await watch())(), "bad"), new TypeError("mine"));
    assert.deepEqual(context.executed, ["bad"], Context.name);
  }
});

test("results: an MCP result, other JSON, text, nothing", async () => {
  const mcp = { content: [{ type: "text", text: "hi" }], isError: true };
  const cases: [unknown, unknown][] = [
    [mcp, mcp],
    [JSON.stringify(mcp), mcp],
    [{ a: 1 }, { a: 1 }],
    [[1, 2], [1, 2]],
    ["{broken", "{broken"],
    ["plain", "plain"],
    ["", ""],
    [42, "42"],
    [null, "null"],
    [undefined, undefined],
  ];
  const context = install(new FakeContext());
  let value: unknown;
  await context.registerTool(tool("give", () => value));
  const tools = (await watch())();
  for (const [given, want] of cases) {
    value = given;
    assert.deepEqual(await run(tools, "give"), want, JSON.stringify(given));
  }
  context.executeTool = async () => null;
  assert.equal(await run(tools, "give"), undefined);
});

test("a form that gives no answer was submitted", async () => {
  const context = install(new FakeContext());
  forms = ["go"];
  await context.registerTool(tool("go", () => undefined));
  await context.registerTool(tool("other", () => undefined));
  const tools = (await watch())();
  assert.match(String(await run(tools, "go")), /submitted/);
  context.executeTool = async () => null;
  assert.match(String(await run(tools, "go")), /submitted/);
  assert.equal(await run(tools, "other"), undefined);
});

test("changes are followed, and several of one turn are one", async () => {
  const context = install(new FakeContext());
  const life = new AbortController();
  let changes = 0;
  const tools = await watch(() => changes++, life.signal);
  const names = () => tools().map(({ name }) => name);
  assert.deepEqual([names(), changes], [[], 0]);
  const registration = new AbortController();
  context.registerTool(tool("a", () => 1), registration);
  context.registerTool(tool("b", () => 1));
  await settle();
  assert.deepEqual([names(), changes], [["a", "b"], 1]);
  registration.abort();
  await settle();
  assert.deepEqual([names(), changes], [["b"], 2]);
  life.abort();
  await context.registerTool(tool("c", () => 1));
  await settle();
  assert.equal(changes, 2);
});

test("lists that arrive out of order end at the newest", async () => {
  const context = install(new FakeContext());
  const answers: ((names: string[]) => void)[] = [];
  let changes = 0;
  context.getTools = () => new Promise((done) => answers.push((names) => done(names.map((name) => ({ name, window: globalThis }) as any))));
  const first = watch(() => changes++);
  for (let i = 0; i < 3; i++) {
    context.dispatchEvent(new Event("toolchange"));
    await settle();
  }
  answers[0]!(["first"]);
  const tools = await first;
  const shown = () => tools().map(({ name }) => name).join();
  assert.equal(shown(), "first");
  // What is newer than what is shown counts, also while a still newer one is awaited.
  answers[2]!(["third"]);
  await settle();
  assert.equal(shown(), "third");
  answers[1]!(["second"]);
  await settle();
  assert.deepEqual([shown(), changes], ["third", 1]);
  answers[3]!(["fourth"]);
  await settle();
  assert.deepEqual([shown(), changes], ["fourth", 2]);
});

test("where listing is forbidden there are no tools and one quiet line", async () => {
  const context = install(new FakeContext());
  await context.registerTool(tool("a", () => 1));
  const list = context.getTools;
  context.getTools = () => { throw new DOMException("not here", "SecurityError"); };
  const tools = await watch();
  context.getTools = async () => Promise.reject(new DOMException("nor here", "NotAllowedError"));
  context.dispatchEvent(new Event("toolchange"));
  await settle();
  assert.deepEqual(tools(), []);
  assert.deepEqual(lines, ["debug [jsbridge] WebMCP tools can't be listed: not here"]);
  context.getTools = list;
  context.dispatchEvent(new Event("toolchange"));
  await settle();
  assert.equal(tools().length, 1);
});

test("a call goes to what bears the name now, or says that it is gone", async () => {
  const context = install(new FakeContext());
  const registration = new AbortController();
  await context.registerTool(tool("a", () => "old"), registration);
  const listed = (await watch())();
  registration.abort();
  await assert.rejects(run(listed, "a"), /no longer has the tool a/);
  await context.registerTool(tool("a", () => "new"));
  assert.equal(await run(listed, "a"), "new");
});

test("abort reaches the tool, and one before the start keeps it from running", async () => {
  const context = install(new FakeContext());
  let seen: AbortSignal | undefined;
  await context.registerTool(tool("wait", (_: object, { signal }: any) => new Promise(() => (seen = signal))));
  const tools = (await watch())();
  const controller = new AbortController();
  const running = run(tools, "wait", {}, controller.signal);
  await settle();
  controller.abort(new DOMException("no more", "AbortError"));
  await assert.rejects(running, { name: "AbortError", message: "no more" });
  assert.ok(seen!.aborted);
  await assert.rejects(run(tools, "wait", {}, controller.signal), { name: "AbortError" });
  assert.deepEqual(context.executed, ["wait"]);
});

test("without keepErrors the browser's text stands, and a polyfill's gives the message", async () => {
  const context = install(new FakeContext());
  await context.registerTool(tool("bad", () => { throw Error("lost"); }));
  const tools = (await watch())();
  await assert.rejects(run(tools, "bad"), { name: "UnknownError", message: FAILED });
  context.executeTool = () => Promise.reject(unknown(FAILED + ": known"));
  await assert.rejects(run(tools, "bad"), { message: "known" });
  context.executeTool = () => Promise.reject(unknown("no such parameter"));
  await assert.rejects(run(tools, "bad"), { message: "no such parameter" });
});

test("keepErrors keeps what was thrown, each for its own call", async () => {
  const context = install(new FakeContext());
  keepErrors();
  await context.registerTool(tool("sync", ({ n }: any) => { throw new RangeError("sync " + n); }));
  await context.registerTool(tool("async", async ({ n }: any) => { throw n; }));
  const tools = (await watch())();
  for (const n of [1, 2]) await assert.rejects(run(tools, "sync", { n }), new RangeError("sync " + n));
  const both = await Promise.allSettled([1, 2].map((n) => run(tools, "async", { n })));
  assert.deepEqual(both.map((r: any) => r.reason), [1, 2]);
});

test("what others' calls threw, and cancelled ones, is not told to a later call", async () => {
  const context = install(new FakeContext());
  keepErrors();
  await context.registerTool(tool("bad", ({ n }: any, { signal }: any) => {
    if (n) throw Error("number " + n);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(Error("stopped"))));
  }));
  const tools = (await watch())();
  await assert.rejects(context.executeTool({ name: "bad" }, { n: 7 }));
  const controller = new AbortController();
  const cancelled = run(tools, "bad", {}, controller.signal);
  await settle();
  controller.abort();
  await assert.rejects(cancelled, { name: "AbortError" });
  await assert.rejects(run(tools, "bad", { n: 8 }), Error("number 8"));
  // Nobody takes these: nothing is kept without a call, and not without bound during one.
  const fail = async () => {
    for (let i = 0; i < 100; i++) await assert.rejects(context.executeTool({ name: "bad" }, { n: i + 1 }));
  };
  await fail();
  assert.equal(thrown().size, 0);
  const late = new AbortController();
  const hanging = run(tools, "bad", {}, late.signal);
  await settle();
  await fail();
  assert.equal(thrown().get("bad")!.size, 32);
  late.abort();
  await assert.rejects(hanging, { name: "AbortError" });
  assert.equal(thrown().size, 0);
});

test("a cancelled tool that throws late is not taken for one that still runs", async () => {
  const context = install(new FakeContext());
  // Watching keeps errors too, from then on.
  const tools = await watch();
  const failures: ((error: Error) => void)[] = [];
  await context.registerTool(tool("bad", () => new Promise((_, reject) => failures.push(reject))));
  await settle();
  const controller = new AbortController();
  const cancelled = run(tools(), "bad", {}, controller.signal);
  const stays = run(tools(), "bad");
  await settle();
  controller.abort();
  await assert.rejects(cancelled, { name: "AbortError" });
  failures[0]!(Error("late"));
  failures[1]!(Error("mine"));
  await assert.rejects(stays, Error("mine"));
});

test("through a registry on top of another each error is kept once", async () => {
  const inner = install(new FakeContext());
  keepErrors();
  const outer = install(new FakeContext());
  outer.registerTool = async (tool, options) => inner.registerTool({ ...tool, execute: (input: object) => tool.execute(input) }, options);
  outer.getTools = () => inner.getTools();
  outer.executeTool = (...args) => inner.executeTool(...args);
  keepErrors();
  await outer.registerTool(tool("bad", ({ n }: any) => { throw Error("number " + n); }));
  const tools = (await watch())();
  const both = await Promise.allSettled([1, 2].map((n) => run(tools, "bad", { n })));
  assert.deepEqual(both.map((r: any) => r.reason.message), ["number 1", "number 2"]);
});

test("keepErrors wraps once, and keeps this, arguments and results", async () => {
  const context = install(new FakeContext());
  keepErrors();
  const wrapped = context.registerTool;
  assert.notEqual(wrapped, registerTool);
  assert.equal(wrapped.name, "registerTool");
  keepErrors();
  assert.equal(context.registerTool, wrapped);

  const onInstance: any = { registered: [], registerTool(...args: any[]) { this.registered.push(args); return this; } };
  define(document, "modelContext", onInstance);
  keepErrors();
  const once = onInstance.registerTool;
  keepErrors();
  assert.equal(onInstance.registerTool, once);
  const options = { signal: never, execute() {} };
  assert.equal(onInstance.registerTool({ name: "a", execute: function (this: unknown, ...args: unknown[]) { return [this, ...args]; } }, options, 3), onInstance);
  onInstance.registerTool("no object");
  onInstance.registerTool();
  onInstance.registerTool({ name: "no function", execute: 5 });
  const [[a, ...rest], ...others] = onInstance.registered;
  assert.equal(rest[0], options);
  assert.equal(rest[1], 3);
  assert.deepEqual(others, [["no object"], [], [{ name: "no function", execute: 5 }]]);
  const self = {};
  const value = await a.execute.call(self, 1, 2);
  assert.deepEqual(value, [self, 1, 2]);
  assert.equal(value[0], self);
});

test("keepErrors leaves tools what they are: frozen ones, instances of classes, thenables", async () => {
  const context = install(new FakeContext());
  keepErrors();
  class Hidden {
    #name = "hidden";
    get name() { return this.#name; }
    get description() { return "of a class"; }
    execute() { return "ran"; }
  }
  let thens = 0;
  const thenable = { then(done: (value: string) => void) { thens++; done("once"); } };
  const frozen = Object.freeze(tool("frozen", () => "cold"));
  await context.registerTool(new Hidden());
  await context.registerTool(frozen);
  await context.registerTool(tool("lazy", () => thenable));
  const tools = (await watch())();
  assert.equal(await run(tools, "hidden"), "ran");
  assert.equal(await run(tools, "frozen"), "cold");
  assert.equal(await run(tools, "lazy"), "once");
  assert.equal(thens, 1);
  await assert.rejects(context.registerTool(frozen), { name: "InvalidStateError" });
});

test("a tool whose name can't be read is the registry's to refuse", async () => {
  const context = install(new FakeContext());
  keepErrors();
  const nameless = { description: "D", execute: fails, get name() { throw Error("mine"); } };
  function fails() { throw Error("thrown"); }
  await assert.rejects(context.registerTool(nameless), Error("mine"));
});

test("keepErrors gives what the page registers its tools with", () => {
  assert.equal(keepErrors(), undefined);
  const context = install(new FakeContext());
  assert.equal(keepErrors(), context);
  define(document, "modelContext", Object.freeze({}));
  assert.equal(keepErrors(), (document as any).modelContext);
});

test("what can't be wrapped is left alone", () => {
  define(document, "modelContext", Object.freeze({ registerTool() {} }));
  keepErrors();
  assert.equal((document as any).modelContext.registerTool(), undefined);
});

/** As navigator.modelContextTesting: by name, with text. */
function testingOf(context: FakeContext, events: object): any {
  return {
    listTools: () => [...context.tools.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema: JSON.stringify(inputSchema) })),
    executeTool: (name: string, text: string, options: object) => context.executeTool({ name }, JSON.parse(text), options),
    ...events,
  };
}

test("earlier registries on navigator work too, with either kind of event", async () => {
  for (const events of ["toolchange", "callback", "none"]) {
    const context = new FakeContext();
    const listen = {
      toolchange: { addEventListener: context.addEventListener.bind(context) },
      callback: { registerToolsChangedCallback: (heard: () => void) => context.addEventListener("toolchange", heard) },
      none: {},
    }[events]!;
    define(navigator, "modelContext", { registerTool: context.registerTool.bind(context), executeTool() {} });
    define(navigator, "modelContextTesting", testingOf(context, listen));
    keepErrors();
    const { modelContext } = navigator as any;
    await modelContext.registerTool(tool("a", ({ n }: any) => { if (n) throw Error("mine"); return "ran"; }, { inputSchema: { type: "object", required: [] } }));
    let changes = 0;
    const tools = await watch(() => changes++);
    assert.deepEqual(tools()[0]!.inputSchema, { type: "object", required: [] });
    assert.equal(await run(tools(), "a"), "ran");
    await assert.rejects(run(tools(), "a", { n: 1 }), Error("mine"));
    await modelContext.registerTool(tool("b", () => 1));
    await settle();
    assert.deepEqual([tools().length, changes], events == "none" ? [1, 0] : [2, 1], events);
  }
});

test("the standard registry on navigator comes last", async () => {
  const context = new FakeContext();
  define(navigator, "modelContext", context);
  await context.registerTool(tool("a", () => 1));
  assert.deepEqual((await watch())().map(({ name }) => name), ["a"]);
  install(new FakeContext());
  assert.deepEqual((await watch())(), []);
});
