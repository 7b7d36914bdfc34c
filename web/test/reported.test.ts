/** What users of neighbouring systems have reported; see docs/public-reports.md. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test, { beforeEach } from "node:test";
import { install } from "../src/bridge.ts";
import * as extras from "../src/extras.ts";
import { FakeSocket, freshPage, lines, settle, tick } from "./page.ts";

const page = globalThis as any;
const server = new URL("http://localhost:8766");
const welcome = { type: "welcome", connectionId: "c", state: "ready", limits: { frameBytes: 1e6, tools: 512 } };
const registered = { type: "registered", prefix: "notes", tools: [], problems: [] };

beforeEach(() => freshPage());

async function connect(): Promise<FakeSocket> {
  install(server, "t1", async () => extras);
  await settle();
  const ws = FakeSocket.last;
  ws.open();
  ws.say(welcome);
  await settle();
  ws.say(registered);
  await settle();
  return ws;
}
const manifests = (ws: FakeSocket) => ws.messages("register_tools");

test("a tool that is registered, removed and registered again fifty times in one turn is there once, as it was last", async () => {
  const ws = await connect();
  const before = manifests(ws).length;
  let remove = () => {};
  // As a component under StrictMode or a hot update does it.
  for (let i = 0; i < 50; i++) {
    remove = page.__mcpToolBus.registerTool("x", () => i);
    remove();
    remove = page.__mcpToolBus.registerTool("x", () => i, { description: `no. ${i}` });
  }
  await settle();
  assert.equal(manifests(ws).length, before + 1, "one change");
  assert.deepEqual(manifests(ws).at(-1).tools.map((t: any) => [t.name, t.description]), [["x", "no. 49"]]);
  ws.say({ type: "call", id: "1", name: "x", args: {} });
  await settle();
  assert.deepEqual(ws.messages("call_result"), [{ type: "call_result", id: "1", result: 49 }]);
  remove();
  remove();
  await settle();
  assert.deepEqual(manifests(ws).at(-1).tools, []);
});

test("a reason of several lines is told once, in one line", async () => {
  const circular: any = { name: "circular", fn: () => 1 };
  circular.inputSchema = circular;
  page.__mcpTools = [circular];
  const ws = await connect();
  // The server has it from the page, and has made one line of it.
  ws.say({ ...registered, problems: [{ ...manifests(ws)[0].problems[0], reason: manifests(ws)[0].problems[0].reason.replaceAll("\n", " ") }] });
  const told = lines.filter((line) => line.startsWith("warn"));
  assert.equal(told.length, 1, told.join("\n"));
  assert.match(told[0]!, /tool circular: Converting circular structure/);
  assert.ok(!told[0]!.includes("\n"));
});

test("a tab in the background, whose timers hardly run, answers calls and probes", async () => {
  page.__mcpTools = [{ name: "x", fn: async () => 1 }];
  const ws = await connect();
  (document as any).hidden = true;
  tick(3_600_000);
  // No timer is let run from here on.
  ws.say({ type: "call", id: "1", name: "x", args: {} });
  ws.say({ type: "probe", id: "p" });
  await settle();
  assert.deepEqual(ws.messages().slice(-2), [{ type: "alive", id: "p" }, { type: "call_result", id: "1", result: 1 }]);
  const src = new URL("../src/", import.meta.url);
  for (const name of readdirSync(src).filter((name) => name.endsWith(".ts"))) {
    assert.doesNotMatch(readFileSync(new URL(name, src), "utf8"), /setInterval|requestAnimationFrame/, name);
  }
});
