import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { decode, encode, type PageMessage, type ServerMessage } from "../src/wire.ts";

const folder = new URL("../../bridge/page/testdata/wire/", import.meta.url);

/** Every field of every variant, so that the compiler misses none. */
type Shapes<M extends { type: string }> = { [T in M["type"]]: { [F in Exclude<FieldOf<Extract<M, { type: T }>>, "type">]: string } };
type FieldOf<M> = M extends unknown ? keyof M & string : never;

const request = { id: "string", timeoutMs: "number?", progress: "boolean?", agent: "object?" };
const retry = { inputResponses: "object?", requestState: "string?" };

const server: Shapes<ServerMessage> = {
  welcome: { connectionId: "string", state: "string", reason: "string?", channel: "string?", limits: "object?" },
  registered: { prefix: "string", tools: "object?", prompts: "object?", resources: "object?", resourceTemplates: "object?", problems: "object?" },
  call: { ...request, ...retry, name: "string", args: "any?" },
  get_prompt: { ...request, ...retry, name: "string", arguments: "any?" },
  read_resource: { ...request, ...retry, uri: "string", uriTemplate: "string?", variables: "any?" },
  complete: { ...request, ref: "object", argument: "object", context: "object?" },
  subscribe: { uri: "string" },
  unsubscribe: { uri: "string" },
  answer: { id: "string", result: "any?", error: "object?" },
  cancel: { id: "string", reason: "string?" },
  identify: { label: "string?" },
  move_channel: { channel: "string" },
  approved: {},
  probe: { id: "string" },
  error: { message: "string", of: "string?" },
};

const page: Shapes<PageMessage> = {
  register_tools: { tools: "object", prompts: "object?", resources: "object?", resourceTemplates: "object?", summary: "any?", appLabel: "any?", url: "string?", title: "string?", problems: "object?" },
  call_result: { id: "string", result: "any?", error: "object?" },
  progress: { id: "string", progress: "number", total: "number?", message: "string?" },
  log: { id: "string?", level: "string", data: "any", logger: "string?" },
  ask: { id: "string", callId: "string", kind: "string", params: "any" },
  resource_updated: { uri: "string" },
  rename_connection: { appLabel: "string" },
  leave_channel: {},
  alive: { id: "string" },
};

function check(message: any, shapes: Record<string, Record<string, string>>): void {
  const shape = shapes[message.type];
  assert.ok(shape, `type ${message.type}`);
  for (const field of Object.keys(message)) assert.ok(field == "type" || field in shape, `field ${field}`);
  for (const [field, kind] of Object.entries(shape)) {
    if (!(field in message)) assert.ok(kind.endsWith("?"), `${field} is missing`);
    else if (!kind.startsWith("any")) assert.equal(typeof message[field], kind.replace("?", ""), field);
  }
}

const seen = new Set<string>();

// The greeting of pages without v=1, which this script is not.
const foreign = "server-init.json";

for (const file of readdirSync(folder).filter((name) => /^(server|page)-/.test(name) && name != foreign)) {
  test(`wire frame ${file}`, () => {
    const text = readFileSync(new URL(file, folder), "utf8");
    const fromServer = file.startsWith("server-");
    const message = decode(text)!;
    assert.equal(file.split("-")[1]!.replace(".json", ""), message.type);
    check(message, fromServer ? server : page);
    // The encoder adds and loses nothing.
    if (!fromServer) assert.deepEqual(JSON.parse(encode(message as unknown as PageMessage)), message);
    seen.add(`${fromServer ? "server" : "page"} ${message.type}`);
  });
}

test("every message type has a frame", () => {
  const all = [...Object.keys(server).map((type) => "server " + type), ...Object.keys(page).map((type) => "page " + type)];
  assert.deepEqual([...seen].sort(), all.sort());
});

test("a frame that is no JSON decodes to nothing", () => {
  for (const frame of ["", "{", new Uint8Array(3)]) assert.equal(decode(frame), undefined);
});
