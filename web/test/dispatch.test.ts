import assert from "node:assert/strict";
import test from "node:test";
import type { ToolContext } from "../src/context.ts";
import { createDispatch, describeError, type Tool } from "../src/dispatch.ts";

/** What the extras answer, where a test needs them. */
let extras: object = {};

function setup(tools: Record<string, Tool["fn"]>, limit = Infinity) {
  const sent: any[] = [];
  const send = (frame: string) => {
    if (frame.length > limit) return false;
    sent.push(JSON.parse(frame));
    return true;
  };
  const list = Object.entries(tools).map(([name, fn]) => ({ name, fn }));
  const over: string[] = [];
  return { sent, list, over, ...createDispatch(send, () => list, async () => extras as any, () => limit, (id) => over.push(id)) };
}
const call = (id: string, name: string, args: unknown = {}, progress?: boolean) => ({ type: "call" as const, id, name, args, ...(progress === undefined ? {} : { progress }) });

test("fn gets one object, a context, and its tool as this", async () => {
  let got: any[] = [];
  const d = setup({ add(...args: any[]) { got = [this, ...args]; } });
  for (const args of [{ a: 1 }, undefined, null, 5]) await d.call(call("1", "add", args));
  assert.equal(got.length, 3);
  assert.equal(got[0], d.list[0]);
  assert.deepEqual(got[1], {});
  assert.deepEqual(Object.keys(got[2]), ["signal", "agent", "progress", "log", "elicit", "sample", "roots", "inputResponses", "requestState"]);
  await d.call(call("1", "add", { a: 1 }));
  assert.deepEqual(got[1], { a: 1 });
});

test("results are awaited, also thenables, and undefined leaves the key out", async () => {
  const d = setup({
    later: async () => "a",
    thenable: () => ({ then: (done: (v: string) => void) => done("b") }),
    nothing: () => undefined,
    none: () => null,
  });
  for (const name of ["later", "thenable", "nothing", "none"]) await d.call(call(name, name));
  assert.deepEqual(d.sent, [
    { type: "call_result", id: "later", result: "a" },
    { type: "call_result", id: "thenable", result: "b" },
    { type: "call_result", id: "nothing" },
    { type: "call_result", id: "none", result: null },
  ]);
});

test("calls run concurrently and each id once", async () => {
  const open: ((v: string) => void)[] = [];
  const d = setup({ wait: () => new Promise((done) => open.push(done)) });
  const first = d.call(call("1", "wait"));
  const second = d.call(call("2", "wait"));
  await d.call(call("1", "wait"));
  assert.equal(open.length, 2);
  open[1]!("b");
  await second;
  open[0]!("a");
  await first;
  assert.deepEqual(d.sent.map((m) => m.id + m.result), ["2b", "1a"]);
});

test("a cancelled call is aborted and not answered", async () => {
  let signal!: AbortSignal;
  let finish!: () => void;
  let ctx!: ToolContext;
  const d = setup({ wait: (_, c) => new Promise<void>((done) => ([ctx, signal, finish] = [c, c.signal, done])) });
  const running = d.call(call("1", "wait"));
  d.cancel("1", "no longer needed");
  d.cancel("unknown");
  assert.ok(signal.aborted);
  assert.equal(signal.reason.name, "AbortError");
  assert.equal(signal.reason.message, "no longer needed");
  ctx.progress(1);
  finish();
  await running;
  assert.deepEqual(d.sent, []);
});

test("when the socket dies, running calls are aborted and their late answers dropped", async () => {
  const runs: { signal: AbortSignal; finish: () => void }[] = [];
  const d = setup({ wait: (_, { signal }) => new Promise<void>((finish) => runs.push({ signal, finish })) });
  const old = [d.call(call("1", "wait")), d.call(call("2", "wait"))];
  d.reset();
  assert.ok(runs.every((run) => run.signal.aborted));
  const fresh = d.call(call("1", "wait")); // The next socket may reuse the id.
  runs[0]!.finish();
  runs[1]!.finish();
  await Promise.all(old);
  assert.deepEqual(d.sent, []);
  runs[2]!.finish();
  await fresh;
  assert.deepEqual(d.sent, [{ type: "call_result", id: "1" }]);
});

test("progress and logs are sent while the call runs", async () => {
  let kept!: ToolContext;
  const d = setup({
    work(_, ctx) {
      kept = ctx;
      ctx.progress(1);
      ctx.progress(2, 4, "half");
      ctx.log("info", new Map([["n", 1n]]));
    },
  });
  await d.call(call("1", "work", {}, true));
  kept.progress(5);
  kept.log("info", "late");
  assert.deepEqual(d.sent.slice(0, -1), [
    { type: "progress", id: "1", progress: 1 },
    { type: "progress", id: "1", progress: 2, total: 4, message: "half" },
    { type: "log", id: "1", level: "info", data: { n: "1" } },
  ]);
  d.sent.length = 0;
  await d.call(call("2", "work", {}, false));
  assert.deepEqual(d.sent.map((m) => m.type), ["log", "call_result"]);
});

test("an answer over the limit becomes an error that says both sizes", async () => {
  const d = setup({ big: () => "x".repeat(500), loud: () => { throw Error("y".repeat(500)); } }, 200);
  await d.call(call("1", "big"));
  await d.call(call("2", "loud"));
  assert.match(d.sent[0].error.message, /^5\d\d bytes are over the limit of 200/);
  assert.match(d.sent[1].error.message, /over the limit of 200/);
});

test("an unknown name is an error that says what there is", async () => {
  const d = setup({ add: () => 1, find: () => 2 });
  for (const name of ["gone", "__proto__", "toString"]) {
    await d.call(call("1", name));
    assert.equal(d.sent.pop().error.message, `this page has no tool ${name}, only: add,find`);
  }
});

test("reserved names are for the extras, whatever the page calls its tools", async () => {
  const name = "__register_tool_by_code__";
  const d = setup({ [name]: () => "the page's" });
  extras = { reserved: [{ name, fn: () => "ours" }] };
  await d.call(call("1", name));
  assert.equal(d.sent.pop().result, "ours");
  await d.call(call("1", "__unregister_tool__"));
  assert.match(d.sent.pop().error.message, /no tool __unregister_tool__/);
});

const cyclic: any = new Error("a");
cyclic.cause = cyclic;

for (const [name, thrown, want] of [
  ["Error", new TypeError("no row"), { name: "TypeError", message: "no row" }],
  ["empty Error", new Error(""), { name: "Error", message: "Error" }],
  ["string", "x", { message: "x" }],
  ["empty string", "", { message: 'threw ""' }],
  ["undefined", undefined, { message: "threw undefined" }],
  ["null", null, { message: "threw null" }],
  ["object", { a: 1 }, { message: 'threw {"a":1}' }],
  ["code", Object.assign(new Error("m"), { code: 404 }), { name: "Error", message: "m", code: "404" }],
  ["causes", new Error("a", { cause: new Error("b", { cause: "c" }) }), { name: "Error", message: "a; caused by: b; caused by: c" }],
  ["getter", { get message() { throw 1; } }, { message: "[throws: 1]" }],
] as [string, unknown, object][]) {
  test(`thrown: ${name}`, async () => {
    assert.deepEqual(JSON.parse(JSON.stringify(describeError(thrown))), want);
    const d = setup({ sync() { throw thrown; }, async rejects() { throw thrown; } });
    for (const tool of ["sync", "rejects"]) {
      await d.call(call("1", tool));
      assert.deepEqual(d.sent.pop(), { type: "call_result", id: "1", error: want });
    }
  });
}

test("thrown: a cycle of causes ends", () => assert.ok(describeError(cyclic).message.length < 200));
