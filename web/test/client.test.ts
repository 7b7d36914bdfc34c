import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test, { beforeEach } from "node:test";
import { fileURLToPath } from "node:url";
import { connectMcpBridge, definePrompt, defineResource, defineTool, parseConnect } from "../src/client.ts";
import { FakeSocket, freshPage, settle } from "./page.ts";

const page = globalThis as any;

beforeEach(() => {
  freshPage();
  delete page.__mcpToolBus;
  delete page[Symbol.for("jsbridge.connect")];
});

async function accept(): Promise<FakeSocket> {
  await settle();
  const ws = FakeSocket.last;
  ws.open();
  ws.say({ type: "welcome", connectionId: "c", state: "ready", limits: { frameBytes: 1e6, tools: 512 } });
  ws.say({ type: "registered", prefix: "notes", tools: [], problems: [] });
  await settle();
  return ws;
}
const names = (ws: FakeSocket) => ws.messages("register_tools").at(-1).tools.map((tool: any) => tool.name);

test("connectMcpBridge connects, and gives the connection", async () => {
  const heard: string[] = [];
  const connection = connectMcpBridge({ appName: "notes", onStateChange: (state) => void heard.push(state) });
  await accept();
  assert.deepEqual(heard, ["connecting", "connected"]);
  assert.equal(connection.getConnectionState().channel, "notes");
  connectMcpBridge({ appName: "notes" });
  await settle();
  assert.equal(FakeSocket.all.length, 1);
  connection.disconnect();
  assert.equal(heard.at(-1), "disconnected");
});

test("defineTool puts tools on the page's bus, before and after it connects", async () => {
  const endFirst = defineTool("first", ({ n }: { n: number }) => n + 1, { description: "Adds one", params: { n: { type: "number" } }, example: { n: 1 } });
  connectMcpBridge({ appName: "notes" });
  const ws = await accept();
  const [tool] = ws.messages("register_tools").at(-1).tools;
  assert.deepEqual(tool, { source: "dynamic", name: "first", description: "Adds one", params: { n: { type: "number" } }, example: { n: 1 } });
  const endSecond = defineTool("second", () => 2);
  await settle();
  assert.deepEqual(names(ws), ["first", "second"]);
  ws.say({ type: "call", id: "1", name: "first", args: { n: 1 } });
  await settle();
  assert.deepEqual(ws.messages("call_result"), [{ type: "call_result", id: "1", result: 2 }]);
  endFirst();
  endFirst();
  await settle();
  assert.deepEqual(names(ws), ["second"]);
  defineTool("second", () => 3);
  endSecond();
  await settle();
  assert.deepEqual(names(ws), ["second"]);
});

test("definePrompt and defineResource do so with theirs", async () => {
  const endPrompt = definePrompt("review", ({ style }) => `Be ${style}`, { arguments: [{ name: "style", complete: ["short"] }] });
  defineResource("item/{id}", ({ id }, { uri }) => ({ id, uri }), { mimeType: "application/json" });
  connectMcpBridge({ appName: "notes" });
  const ws = await accept();
  const { prompts, resourceTemplates } = ws.messages("register_tools").at(-1);
  assert.deepEqual(prompts, [{ source: "dynamic", name: "review", arguments: [{ name: "style", complete: true }] }]);
  assert.deepEqual(resourceTemplates, [{ source: "dynamic", uriTemplate: "item/{id}", name: "item/{id}", mimeType: "application/json" }]);
  ws.say({ type: "get_prompt", id: "1", name: "review", arguments: { style: "brief" } });
  ws.say({ type: "read_resource", id: "2", uri: "item/5", uriTemplate: "item/{id}", variables: { id: "5" } });
  await settle();
  assert.deepEqual(ws.messages("call_result").sort((a, b) => a.id - b.id).map((m) => JSON.stringify(m.result)), [
    '{"messages":[{"role":"user","content":{"type":"text","text":"Be brief"}}]}',
    '{"contents":[{"mimeType":"application/json","text":"{\\"id\\":\\"5\\",\\"uri\\":\\"item/5\\"}"}]}',
  ]);
  endPrompt();
  await settle();
  assert.equal(ws.messages("register_tools").at(-1).prompts, undefined);
});

test("a bus of the page's own that knows no prompts is an error that says so", () => {
  page.__mcpToolBus = { registerTool() {}, registerProvider() {}, getTools: () => [], onChange() {} };
  assert.throws(() => definePrompt("p", () => ""), /tool bus has no registerPrompt/);
  assert.throws(() => defineResource("r", () => ""), /tool bus has no registerResource/);
});

test("defineTool says what is wrong with a tool", () => {
  assert.throws(() => defineTool("", () => 1), TypeError);
  assert.throws(() => defineTool("a", undefined as any), TypeError);
});

test("parseConnect is there too", () => assert.equal(parseConnect("team:").kind, "channel"));

test("in Node: imports, and does nothing", () => {
  // A process of its own, since this one looks like a page.
  const script = `
    const { connectMcpBridge, definePrompt, defineResource, defineTool } = await import("./src/client.ts");
    for (const define of [defineTool, definePrompt, defineResource]) define("a", () => "1")();
    const { init, handleConnectClick, disconnect, getConnectionState } = connectMcpBridge({ appName: "notes", beforeConnect() { throw 0 } });
    init(); handleConnectClick(); disconnect();
    console.log(JSON.stringify(getConnectionState()), typeof window, Object.keys(globalThis).filter((key) => key.startsWith("__mcp")));`;
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const out = execFileSync(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], { cwd, encoding: "utf8" });
  assert.equal(out.trim(), '{"state":"disconnected","channel":"notes","appLabel":"notes"} undefined []');
});
