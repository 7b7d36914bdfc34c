import assert from "node:assert/strict";
import test from "node:test";
import { FakeSocket, freshPage, lines, settle } from "./page.ts";

const page = globalThis as any;

test("where the extras are forbidden, tools work, and what needs them is named once", async () => {
  freshPage();
  Object.assign(page, { SERVER: "http://localhost:8766", TENANT: "t1" });
  page.__mcpTools = [{ name: "t", fn: (_: object, { elicit }: any) => elicit("x") }];
  page.__mcpPrompts = [{ name: "p", fn: () => "hi" }, { name: "q", fn: () => "hi" }];
  // Node imports nothing from an http address.
  await import("../src/inline.ts");
  while (!FakeSocket.all.length) await settle();
  const ws = FakeSocket.last;
  ws.open();
  ws.say({ type: "registered", prefix: "notes", tools: [], problems: [] });
  page.__mcpTools.push({ name: "u", fn: () => 1 });
  await settle();
  const { tools, prompts, problems } = ws.messages("register_tools").at(-1);
  assert.deepEqual([tools.length, prompts, problems.length], [2, undefined, 1]);
  assert.match(problems[0].reason, /^left out: http:\/\/localhost:8766\/extras.js failed/);
  assert.equal(problems[0].kind, "prompt");
  assert.equal(lines.filter((line) => line.includes("prompt")).length, 1);
  ws.say({ type: "call", id: "1", name: "t", args: {} });
  ws.say({ type: "subscribe", uri: "x" });
  ws.say({ type: "call", id: "2", name: "u", args: {} });
  await settle();
  const [first, second] = ws.messages("call_result").sort((a, b) => a.id - b.id);
  assert.match(first.error.message, /this page can't do that: .*extras.js failed/);
  assert.equal(second.result, 1);
});
