import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { installToolBus, type ToolBus } from "../src/bus.ts";
import { freshPage, settle } from "./page.ts";

const page = globalThis as any;
const fn = () => 1;
let bus: ToolBus;
let changes = 0;

beforeEach(() => {
  freshPage();
  bus = installToolBus();
  bus.onChange(() => changes++);
  changes = 0;
});
const names = () => bus.getTools().map(({ name }) => name);

test("is there once, across copies of the script", async () => {
  assert.equal(page.__mcpToolBus, bus);
  assert.equal(installToolBus(), bus);
  await import("../src/tool-bus.ts");
  assert.equal(page.__mcpToolBus, bus);
  page.__mcpToolBus = { odd: 1 };
  const own = installToolBus();
  assert.equal(page.__mcpToolBus, own);
  Object.defineProperty(page, "__mcpToolBus", { value: 5, writable: false, configurable: true });
  installToolBus().registerTool("a", fn);
  Object.defineProperty(page, "__mcpToolBus", { configurable: true, get() { throw Error("mine"); } });
  installToolBus().registerTool("a", fn);
});

test("a tool without a function has none under another name either", () => {
  bus.registerTool("a", fn);
  bus.registerProvider("p", [{ name: "a" }, { name: "a", get fn() { throw Error("mine"); } }] as any);
  assert.deepEqual(names(), ["a", "p__a", "p__a2"]);
  assert.equal(bus.getTools()[1]!.fn, undefined);
  assert.throws(() => bus.getTools()[2]!.fn, Error("mine"));
});

test("a tool has what it was given, and its options may be missing", () => {
  const params = { a: { type: "string" } };
  bus.registerTool("bare", fn);
  bus.registerTool("full", fn, { description: "D", params, example: { a: 1 }, name: "other" } as object);
  assert.deepEqual(bus.getTools(), [{ name: "bare", fn }, { name: "full", fn, description: "D", params, example: { a: 1 } }]);
  bus.getTools().length = 0;
  assert.equal(bus.getTools().length, 2);
});

for (const [name, act, message] of [
  ["no name", () => bus.registerTool(undefined as any, fn), /tool needs a name.*not undefined/],
  ["an empty name", () => bus.registerTool("", fn), /needs a name.*not ""/],
  ["no function", () => bus.registerTool("a", { fn } as any), /tool a: fn must be a function, not object/],
  ["options of text", () => bus.registerTool("a", fn, "x" as any), /tool a: options must be an object, not string/],
  ["options null", () => bus.registerTool("a", fn, null as any), /not null/],
  ["a prompt without a function", () => bus.registerPrompt("p", undefined as any), /prompt p: fn must be a function, not undefined/],
  ["a prompt's options of text", () => bus.registerPrompt("p", fn, "x" as any), /prompt p: options must be an object/],
  ["a resource without a URI", () => bus.registerResource("", fn), /resource needs a name.*not ""/],
  ["a resource without a function", () => bus.registerResource("r", 5 as any), /resource r: fn must be a function, not number/],
  ["an update of nothing", () => bus.resourceUpdated(undefined as any), /resource needs a name.*not undefined/],
  ["a provider without name", () => bus.registerProvider(5 as any, []), /provider needs a name.*not number/],
  ["tools that are no array", () => bus.registerProvider("p", { fn } as any), /provider p: tools must be an array, not object/],
  ["a listener that is none", () => bus.onChange({} as any), /onChange needs a function/],
] as [string, () => void, RegExp][]) {
  test(`refused: ${name}`, async () => {
    assert.throws(act, (e: Error) => e instanceof TypeError && message.test(e.message));
    await settle();
    assert.deepEqual(names(), []);
    assert.equal(changes, 0);
  });
}

test("registering again replaces, and an earlier unregister is then nothing", () => {
  const first = bus.registerTool("a", fn, { description: "1" });
  bus.registerTool("b", fn);
  const second = bus.registerTool("a", fn, { description: "2" });
  first();
  first();
  assert.deepEqual(bus.getTools().map((t) => [t.name, t.description]), [["a", "2"], ["b", undefined]]);
  second();
  const third = bus.registerTool("a", fn);
  second();
  first();
  assert.deepEqual(names(), ["b", "a"]);
  third();
  assert.deepEqual(names(), ["b"]);
});

test("a provider's set is replaced as a whole", () => {
  const list = [{ name: "a", fn }, { name: "b", fn }];
  const first = bus.registerProvider("p", list);
  list.push({ name: "later", fn });
  assert.deepEqual(names(), ["a", "b"]);
  const second = bus.registerProvider("p", [{ name: "c", fn }]);
  first();
  assert.deepEqual(names(), ["c"]);
  second();
  assert.deepEqual(names(), []);
});

test("a tool and a provider of the same name are two", () => {
  bus.registerTool("p", fn);
  const unregister = bus.registerProvider("p", [{ name: "a", fn }]);
  bus.registerProvider("tool p", [{ name: "b", fn }]);
  unregister();
  assert.deepEqual(names(), ["p", "b"]);
});

test("taken names get their provider's in front", async () => {
  class Cart {
    #total = 3;
    name = "sum";
    description = "Adds up";
    fn() {
      return this.#total;
    }
  }
  bus.registerProvider("shop", [{ name: "sum", fn }]);
  bus.registerProvider("cart", [new Cart(), { name: "cart__sum", fn }, { name: "sum", fn }]);
  bus.registerTool("sum", fn);
  assert.deepEqual(names(), ["sum", "cart__sum", "cart__cart__sum", "cart__sum2", "tool__sum"]);
  const renamed = bus.getTools()[1]!;
  assert.equal(renamed.fn({}, {}), 3);
  assert.equal(renamed.description, "Adds up");
});

test("unregisterTool removes what getTools names, whoever registered it", () => {
  const unregister = bus.registerTool("a", fn);
  bus.registerProvider("p", [{ name: "a", fn }, { name: "b", fn }]);
  assert.equal(bus.unregisterTool("p__a"), true);
  assert.deepEqual(names(), ["a", "b"]);
  assert.equal(bus.unregisterTool("a"), true);
  assert.equal(bus.unregisterTool("a"), false);
  assert.equal(bus.unregisterTool(""), false);
  bus.registerTool("a", fn);
  unregister();
  assert.deepEqual(names(), ["b", "a"]);
});

test("a bad tool of a provider does not hide the others", () => {
  const broken = { get name() { throw Error("no"); }, fn };
  bus.registerProvider("p", [null, broken, { name: 5 }, { name: "good", fn }] as any);
  assert.equal(bus.getTools().length, 4);
  assert.equal(bus.getTools()[3]!.name, "good");
  assert.equal(bus.unregisterTool("good"), true);
});

test("listeners hear once a turn, each by itself", async () => {
  const error = mock.method(console, "error", () => {});
  let heard = 0;
  const stop = bus.onChange(() => { throw Error("mine"); });
  const listener = () => heard++;
  const one = bus.onChange(listener);
  bus.onChange(listener);
  bus.registerTool("a", fn)();
  bus.registerTool("b", fn);
  bus.unregisterTool("b");
  bus.registerProvider("p", []);
  assert.equal(changes, 0);
  await settle();
  assert.deepEqual([changes, heard, error.mock.callCount()], [1, 2, 1]);
  stop();
  one();
  one();
  bus.registerTool("c", fn);
  await settle();
  assert.deepEqual([changes, heard, error.mock.callCount()], [2, 3, 1]);
});

test("prompts and resources come and go as tools do", async () => {
  const first = bus.registerPrompt("p", fn, { description: "1" });
  bus.registerPrompt("q", fn);
  const second = bus.registerPrompt("p", fn, { description: "2", name: "other" } as object);
  first();
  assert.deepEqual(bus.getPrompts(), [{ name: "p", fn, description: "2" }, { name: "q", fn }]);
  second();
  second();
  assert.deepEqual(bus.getPrompts(), [{ name: "q", fn }]);
  bus.getPrompts().length = 0;
  assert.equal(bus.getPrompts().length, 1);
  const remove = bus.registerResource("cart", fn, { mimeType: "text/plain" });
  bus.registerResource("item/{id}", fn, { name: "item" });
  bus.registerTool("cart", fn);
  assert.deepEqual(bus.getResources(), [{ uri: "cart", fn, mimeType: "text/plain" }, { uriTemplate: "item/{id}", fn, name: "item" }]);
  remove();
  assert.deepEqual([bus.getResources().length, names()], [1, ["cart"]]);
  assert.equal(changes, 0);
  await settle();
  assert.equal(changes, 1);
});

test("resourceUpdated tells the bridge, if there is one", () => {
  bus.resourceUpdated("cart");
  const told: string[] = [];
  page.__mcpResourceUpdated = (uri: string) => told.push(uri);
  bus.resourceUpdated("cart");
  assert.deepEqual(told, ["cart"]);
});

test("reading and removing nothing is no change", async () => {
  bus.getTools();
  bus.unregisterTool("gone");
  await settle();
  assert.equal(changes, 0);
});
