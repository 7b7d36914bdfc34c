import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { callable, declared, readManifest } from "../src/tools.ts";
import { watchPage } from "../src/watch-page.ts";
import { freshPage } from "./page.ts";

const fn = () => 1;
const page = globalThis as any;
let changes = 0;
/** With a bridge that hears of it. */
function watch(): void {
  page[Symbol.for("jsbridge")] = { changed: () => changes++ };
  watchPage();
}
const readTools = () => callable(declared());
const manifest = (label?: string) => JSON.parse(readManifest(declared(), label).frame);

beforeEach(() => {
  freshPage("http://localhost:8080/notes?x=1");
  changes = 0;
});

test("the manifest has the wire's fields and no others", () => {
  const tool = { name: "add", description: "Adds", params: { a: { type: "string" } }, example: { a: "x" }, timeoutMs: 5, fn, secret: 1 };
  page.__mcpTools = [tool, { name: "raw", inputSchema: { type: "object" }, title: "Raw", annotations: { readOnlyHint: true }, icons: [], outputSchema: {}, fn }];
  page.__mcpSummary = "A list";
  assert.deepEqual(manifest(), {
    type: "register_tools",
    summary: "A list",
    appLabel: "Notes",
    url: "http://localhost:8080/notes?x=1",
    title: "Notes",
    problems: [],
    tools: [
      { source: "host", name: "add", description: "Adds", params: { a: { type: "string" } }, example: { a: "x" }, timeoutMs: 5 },
      { source: "host", name: "raw", title: "Raw", inputSchema: { type: "object" }, outputSchema: {}, annotations: { readOnlyHint: true }, icons: [] },
    ],
  });
});

test("the label is what a human gave, else the app's name, else the title, else absent", () => {
  page.__mcpAppName = "App";
  assert.equal(manifest("Mine").appLabel, "Mine");
  assert.equal(manifest().appLabel, "App");
  page.__mcpAppName = 5;
  assert.equal(manifest().appLabel, "Notes");
  (document as any).title = "";
  assert.ok(!("appLabel" in manifest()));
});

test("one bad tool never takes the others down", () => {
  const cyclic: any = { name: "cyclic", fn };
  cyclic.params = cyclic;
  const throwing = { name: "throwing", fn, get description() { throw Error("no text"); } };
  const unnamed = { get name() { throw Error("no name"); }, fn };
  page.__mcpTools = [{ name: "good", fn }, null, "text", { name: "lame" }, { name: "odd", fn: 5 }, cyclic, throwing, unnamed, { name: "big", example: 1n, fn }, { name: "last", fn }];
  const { tools, problems } = manifest();
  assert.deepEqual(tools.map((t: any) => t.name), ["good", "last"]);
  assert.deepEqual(problems.map((p: any) => [p.name, p.index]), [["", 1], ["", 2], ["lame", 3], ["odd", 4], ["cyclic", 5], ["throwing", 6], ["", 7], ["big", 8]]);
  assert.equal(problems[0].reason, "not an object");
  assert.equal(problems[2].reason, "fn is missing or no function");
  assert.match(problems[4].reason, /circular/);
  assert.equal(problems[5].reason, "no text");
  assert.deepEqual(readTools().map((t) => t.name), ["good", "cyclic", "throwing", "big", "last"].filter((n) => readTools().some((t) => t.name == n)));
});

test("tools of other sources: marked, and left out with the reason", () => {
  const { tools, problems } = JSON.parse(
    readManifest([
      { tool: { name: "a", fn } },
      { tool: { name: "b", fn, origin: { kind: "path", path: "x.y" } }, dynamic: true },
      { tool: { name: "a", fn }, dynamic: true, problem: "taken" },
    ]).frame,
  );
  assert.deepEqual(tools, [
    { source: "host", name: "a" },
    { source: "dynamic", name: "b", origin: { kind: "path", path: "x.y" } },
  ]);
  assert.deepEqual(problems, [{ name: "a", index: 2, reason: "taken" }]);
  assert.deepEqual(callable([{ tool: { name: "a", fn }, problem: "taken" }]), []);
});

test("no tools, and something that is no list", () => {
  assert.deepEqual(manifest().tools, []);
  assert.deepEqual(manifest().problems, []);
  page.__mcpTools = "add";
  assert.equal(manifest().problems[0].reason, "not an object");
});

test("every change through window is noticed", () => {
  const own: any[] = [{ name: "a", fn }];
  page.__mcpTools = own;
  watch();
  const steps: [string, () => void][] = [
    ["push", () => page.__mcpTools.push({ name: "b", fn })],
    ["index", () => (page.__mcpTools[0] = { name: "d", fn })],
    ["length", () => (page.__mcpTools.length = 0)],
    ["delete", () => delete page.__mcpTools[0]],
    ["assignment", () => (page.__mcpTools = [{ name: "e", fn }])],
    ["push after assignment", () => page.__mcpTools.push({ name: "f", fn })],
    ["assignment to itself", () => (page.__mcpTools = page.__mcpTools)],
    ["summary", () => (page.__mcpSummary = "S")],
    ["name", () => (page.__mcpAppName = "N")],
    ["nothing any more", () => (page.__mcpTools = undefined)],
  ];
  for (const [name, act] of steps) {
    changes = 0;
    act();
    assert.ok(changes > 0, name);
  }
  page.__mcpTools = own;
  changes = 0;
  own.length = 0;
  own.push({ name: "y", fn }, { name: "z", fn });
  own.shift();
  assert.equal(changes, 0, "the page's own array is left alone");
  assert.deepEqual(Reflect.ownKeys(own), ["0", "length"]);
  assert.deepEqual(readTools().map((t) => t.name), ["z"]);
  changes = 0;
  readManifest(declared());
  JSON.stringify(page.__mcpTools);
  assert.equal(changes, 0, "reading is no change");
});

test("the array still is one", () => {
  const own = [{ name: "a", fn }];
  page.__mcpTools = own;
  watch();
  assert.ok(Array.isArray(page.__mcpTools));
  assert.equal(page.__mcpTools[0], own[0]);
  assert.deepEqual(Object.keys(own), ["0"]);
  assert.deepEqual(page.__mcpTools.splice(0, 1, { name: "b", fn }), [{ name: "a", fn }]);
  assert.equal(own[0]!.name, "b");
});

test("declared after the script, or frozen, or out of reach", () => {
  watch();
  page.__mcpTools = Object.freeze([{ name: "late", fn }]);
  assert.equal(changes, 1);
  assert.deepEqual(readTools().map((t) => t.name), ["late"]);

  delete page.__mcpTools;
  let got = [{ name: "own", fn }];
  Object.defineProperty(page, "__mcpTools", { configurable: true, get: () => got });
  watch();
  got = [{ name: "other", fn }];
  assert.deepEqual(readTools().map((t) => t.name), ["other"]);
});

test("a top-level var stays as it is, and is read all the same", () => {
  const own = [{ name: "a", fn }];
  // Not on the global object: what can't be replaced can't be deleted after the test either.
  const real = page.window;
  page.window = Object.defineProperty(Object.create(real), "__mcpTools", { value: own, writable: true, configurable: false });
  try {
    watch();
    assert.equal(page.window.__mcpTools, own);
    own.push({ name: "b", fn });
    assert.deepEqual(manifest().tools.map((t: any) => t.name), ["a", "b"]);
  } finally {
    page.window = real;
  }
});

test("watching again, as a second script does, changes nothing", () => {
  page.__mcpTools = [{ name: "a", fn }];
  watch();
  const first = page.__mcpTools;
  watchPage();
  assert.equal(page.__mcpTools, first);
  page.__mcpTools = [];
  assert.equal(changes, 1);
});
