/**
 * A server with the dashboard's API and made-up data, to look at the dashboard without a browser tab connected:
 * node --import tsx test/fake-server.ts [empty|real|hostile|load] [port]
 */

import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Call, CallDetails, Change, Connection, Details, Notice, State, Tool, ToolResult } from "../src/dashboard/types.ts";

export type Scene = "empty" | "real" | "hostile" | "load";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const TYPES: Record<string, string> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAFAAAAAoCAIAAADmAupWAAAAXElEQVR42u3PQQ0AAAgEoOtf2sMUPhgEaCbvlAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBG4W2lqJJzvY0uMAAAAASUVORK5CYII=";
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>document.title="pwned"</script></svg>').toString("base64");

const BAD = [
  '<img src=x onerror="document.title=\'pwned\'"><script>document.title="pwned"</script>',
  "javascript:document.title='pwned'",
  "\u202Egnp.tohsneercs\u202C reversed",
  "A".repeat(3000),
  "{{constructor.constructor('alert(1)')()}} ${alert(1)} \"'`><svg/onload=alert(1)>",
  "__proto__",
  "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
  "</title></style><style>body{display:none}</style>",
];
const bad = (i: number): string => BAD[i % BAD.length]!;

const minutesAgo = (n: number): string => new Date(Date.now() - n * 60_000).toISOString();

function connection(id: string, over: Partial<Connection>): Connection {
  return {
    id, label: id, prefix: id, kind: "root", origin: "http://localhost:5173", url: "http://localhost:5173/", title: "", summary: "", state: "ready", since: minutesAgo(12),
    tools: 3, prompts: 0, resources: 0, problems: 0, bare: false, current: true, rev: 1, ...over,
  };
}

const SCHEMA = {
  type: "object",
  properties: {
    product: { type: "string", description: "Name or id of the product, as the shop writes it." },
    quantity: { type: "integer", minimum: 1, maximum: 99, default: 1, description: "How many." },
    gift: { type: "boolean", description: "Wrapped, with a card." },
    size: { enum: ["S", "M", "L", "XL"], description: "Only for clothes." },
    note: { type: ["string", "null"], description: "Printed on the card." },
    tags: { type: "array", items: { type: "string" }, description: "Labels of this line in the cart." },
    address: { type: "object", description: "Where it goes, if not home.", properties: { street: { type: "string" }, zip: { type: "string" }, country: { enum: ["DE", "FR", "US"] } }, required: ["street", "zip"] },
    extra: { description: "Anything else, as the shop's API takes it.", anyOf: [{ type: "string" }, { type: "object" }] },
  },
  required: ["product", "quantity"],
};

function toolsOf(one: Connection, scene: Scene): Tool[] {
  const tool = (pageName: string, over: Partial<Tool>): Tool => ({ name: `${one.prefix}__${pageName}`.slice(0, 48), pageName, title: "", description: "", inputSchema: { type: "object", properties: {} }, source: "host", ...over });
  if (scene == "load") return Array.from({ length: 50 }, (_, i) => tool(`tool_${i}`, { description: `Does thing ${i}.`, inputSchema: SCHEMA }));
  if (scene == "hostile") {
    return BAD.map((text, i) =>
      tool(text.slice(0, 128), { title: bad(i + 1), description: bad(i + 2) + "\n" + text, inputSchema: { type: "object", properties: { [text.slice(0, 200)]: { type: "string", description: text, title: bad(i + 3) } }, $ref: "#/x" }, source: "dynamic", origin: { kind: "code", code: text }, example: { [text]: text } }),
    );
  }
  return [
    tool("add_to_cart", { title: "Add to cart", description: "Puts a product into the cart of this tab and returns the cart.\nFails when the product is sold out; the message says when it is back.", inputSchema: SCHEMA, outputSchema: { type: "object", properties: { items: { type: "array" } } }, example: { product: "Blue mug", quantity: 2, gift: true, size: "M", note: null, tags: ["kitchen"], address: { street: "Main St 1", zip: "10115" } } }),
    tool("search_products", { description: "Finds products by words in their name or description. Returns at most 20.", inputSchema: { type: "object", properties: { query: { type: "string" } }, required: ["query"] }, annotations: { readOnlyHint: true }, example: { query: "mug" } }),
    tool("screenshot", { description: "A picture of the page as it looks now.", annotations: { readOnlyHint: true } }),
    tool("empty_cart", { description: "Takes everything out of the cart.", annotations: { destructiveHint: true }, timeoutMs: 20_000 }),
    tool("count_links", { description: "Counts the links of the page.", source: "dynamic", origin: { kind: "code", code: 'const links = document.querySelectorAll("a[href]");\nconst hosts = new Set([...links].map((a) => new URL(a.href).host));\nreturn { links: links.length, hosts: [...hosts] };' } }),
    tool("apply_coupon", { description: "Applies a coupon to the cart.", inputSchema: { type: "object", properties: { code: { type: "string", description: "as printed" } }, required: ["code"] }, source: "dynamic", origin: { kind: "path", path: "shop.cart.applyCoupon" } }),
  ];
}

const CLIENTS = [
  { name: "claude-code", version: "2.1.14" },
  { name: "Cursor", version: "3.0.2" },
  { name: "codex-mcp-client", version: "0.61.0" },
];

function stateOf(scene: Scene, base: string): State {
  const state: State = {
    server: { epoch: "e" + Date.now(), version: "0.1.0", started: minutesAgo(200), mcp: base + "/mcp", base, pageCode: "allow", redacted: false },
    sessions: [], connections: [], channels: [], workspaces: [], origins: { allowed: [], waiting: [] },
    counters: { calls: 0, failed: 0, running: 0, refused: 0, dropped: 0 }, calls: [],
  };
  if (scene == "empty") return state;
  const text = (plain: string, i: number) => (scene == "hostile" ? bad(i) : plain);
  state.sessions = CLIENTS.map((client, i) => ({ id: "s" + i, client: { name: text(client.name, i), version: client.version }, protocol: i ? "2025-11-25" : "2026-07-28", era: i ? "session" : "stateless", ...(i == 0 && { workspace: text("webshop", 2) }), since: minutesAgo(3 + 40 * i), channels: i == 1 ? [text("design-team", 3)] : [], connections: 3 + i, running: i == 0 ? 1 : 0 }));
  const pages: [string, Partial<Connection>][] = [
    ["shop", { label: "Web shop", title: "Blue mugs – Corner Shop", url: "http://localhost:5173/products?category=mugs", summary: "The shop's front end, in development. The cart belongs to this tab; products come from the staging database.", tools: 6, prompts: 2, resources: 3, problems: 1 }],
    ["notes", { label: "Notes", title: "Notes", origin: "http://localhost:3000", url: "http://localhost:3000/", tools: 4, state: "reconnecting" }],
    ["board", { label: "Whiteboard", kind: "channel", channel: "design-team", title: "Sprint 14 – Whiteboard", origin: "https://board.example", url: "https://board.example/b/8812", tools: 11, resources: 1 }],
    ["board2", { label: "Whiteboard", kind: "channel", channel: "design-team", title: "Retro – Whiteboard", origin: "https://board.example", url: "https://board.example/b/8813", tools: 11, state: "suspended", since: minutesAgo(300) }],
    ["admin", { label: "Admin", kind: "workspace", workspace: "webshop", title: "Orders – Admin", origin: "http://localhost:8080", url: "http://localhost:8080/orders", tools: 8, current: false }],
    ["tab", { label: "Docs", kind: "session", session: "s1", title: "API reference", origin: "http://localhost:4000", url: "http://localhost:4000/api", tools: 1, since: minutesAgo(1) }],
    ["crm", { label: "CRM", prefix: "", title: "Customers", origin: "https://crm.example", url: "https://crm.example/", tools: 0, state: "pending", since: minutesAgo(0.2) }],
  ];
  state.connections = pages.map(([id, over], i) => connection(id, { ...over, label: text(over.label!, i), title: text(over.title!, i + 1), url: text(over.url!, i + 2), origin: text(over.origin ?? "http://localhost:5173", i + 3), summary: text(over.summary ?? "", i + 4), ...(over.channel && { channel: text(over.channel, 3) }) }));
  if (scene == "load") state.connections = Array.from({ length: 200 }, (_, i) => connection("page" + i, { label: "Page " + i, prefix: "page_" + i, title: "A page", tools: 50 }));
  state.channels = [{ id: text("design-team", 3), connections: 2, sessions: 1 }];
  state.workspaces = [{ id: "default", connections: 0, sessions: 0 }, { id: "webshop", connections: 1, sessions: 1 }];
  state.origins = { allowed: [{ origin: "https://board.example", by: "state" }, { origin: "https://staging.example", by: "flag" }], waiting: [{ origin: "https://crm.example", pages: 1, since: minutesAgo(0.2) }] };
  const names = ["search_products", "add_to_cart", "screenshot", "search_products", "count_links", "empty_cart"];
  const n = scene == "load" ? 1000 : 24;
  state.calls = Array.from({ length: n }, (_, i): Call => {
    const last = i == n - 1;
    const failed = i % 7 == 3;
    return { id: "c" + i, at: minutesAgo((n - i) * 1.7), client: { ...CLIENTS[i % 3]!, name: text(CLIENTS[i % 3]!.name, i) }, session: "s" + (i % 3), by: i % 6 == 4 ? "dashboard" : "agent", connection: "shop", label: text("Web shop", i), method: i % 11 == 5 ? "prompt" : "tool", name: text("shop__" + names[i % names.length], i),
      state: last ? "running" : failed ? "failed" : i % 13 == 8 ? "cancelled" : "done", ...(last ? { progress: { progress: 3, total: 8, message: text("Reading page 3", i) } } : { ms: [12, 48, 812, 3460, 7][i % 5]! }), argBytes: 40 + i * 3, ...(last || failed ? {} : { resultBytes: 900 + i * 333 }), ...(failed && { error: text('The product "Blue mug" is sold out. It is back on Friday.', i) }) };
  });
  state.counters = { calls: 1284, failed: 17, running: 1, refused: 0, dropped: scene == "load" ? 284 : 0 };
  return state;
}

export interface Fake {
  base: string;
  state: State;
  /** All requests that change something, as "METHOD path body". */
  seen: string[];
  change(change: Change): void;
  notify(n?: number): void;
  close(): Promise<void>;
}

/** Starts one. Port 0 is any. */
export async function startFake(scene: Scene, port = 0, bearer = ""): Promise<Fake> {
  const streams = new Set<ServerResponse>();
  const waiting = new Map<string, (result: ToolResult) => void>();
  const added: Tool[] = [];
  const seen: string[] = [];
  let events = 0;
  let calls = 0;
  const token = "token" + Math.random();
  const http: Server = createServer((req, res) => void answer(req, res).catch((error) => problem(res, 500, String(error))));
  await new Promise<void>((resolve) => http.listen(port, "127.0.0.1", resolve));
  const base = "http://localhost:" + (http.address() as AddressInfo).port;
  const state = stateOf(scene, base);

  const send = (res: ServerResponse, name: string, data: unknown) => res.write(`id: ${state.server.epoch}-${++events}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);

  function change(c: Change): void {
    for (const key of ["connections", "calls"] as const) {
      const diff = c[key] as { set?: { id: string }[]; gone?: string[] } | undefined;
      const list = state[key] as { id: string }[];
      for (const id of diff?.gone ?? []) list.splice(list.findIndex((one) => one.id == id), 1);
      for (const one of diff?.set ?? []) {
        const at = list.findIndex((other) => other.id == one.id);
        if (at < 0) list.push(one);
        else list[at] = one;
      }
    }
    Object.assign(state, c.counters && { counters: c.counters }, c.origins && { origins: c.origins });
    for (const res of streams) send(res, "change", c);
  }

  function details(one: Connection): Details {
    return {
      ...one,
      tools: [...toolsOf(one, scene), ...added],
      prompts: one.prompts ? [{ name: one.prefix + "__review", pageName: "review", title: "Review the cart", description: "Looks for mistakes in the cart.", arguments: [{ name: "tone", title: "", description: "How to say it", required: true }] }, { name: one.prefix + "__plan", pageName: "plan", title: "", description: scene == "hostile" ? bad(0) : "Plans a campaign.", arguments: [] }] : [],
      resources: one.resources ? [{ uri: `page://${one.prefix}/cart`, name: "cart", title: "The cart", description: "What is in the cart.", mimeType: "application/json" }, { uriTemplate: `page://${one.prefix}/product/{id}`, name: "product", title: "", description: "", mimeType: "application/json" }] : [],
      problemList: one.problems ? [{ name: "checkout", index: 6, reason: scene == "hostile" ? bad(0) : 'parameter "when": unknown type "date", must be one of string, number, integer, boolean, array, object' }] : [],
    };
  }

  function resultOf(tool: string, args: unknown): ToolResult {
    if (scene == "hostile") {
      return { content: [{ type: "text", text: BAD.join("\n") }, { type: "image", mimeType: "image/svg+xml", data: SVG }, { type: "image", mimeType: "text/html", data: SVG }, { type: "image", mimeType: "image/png", data: "%%%" }, { type: "resource_link", uri: BAD[1], name: BAD[0] }, { type: "resource", resource: { uri: BAD[1], text: BAD[0] } }, null, "x"], structuredContent: { [BAD[0]!]: BAD } };
    }
    if (tool == "screenshot") return { content: [{ type: "image", mimeType: "image/png", data: PNG }, { type: "text", text: "The page, 80 by 40." }] };
    if (tool == "empty_cart") return { isError: true, content: [{ type: "text", text: "Error: the cart is locked while it is paid for." }] };
    const structuredContent = { items: [{ product: "Blue mug", quantity: 2, price: 12.5, gift: true }, { product: "Tea", quantity: 1, price: 4 }], total: 29, asked: args };
    return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
  }

  async function call(one: Connection, tool: string, args: unknown, gone: AbortSignal): Promise<unknown> {
    const began = Date.now();
    const at: Call = { id: "d" + ++calls, at: new Date().toISOString(), client: { name: "", version: "" }, by: "dashboard", connection: one.id, label: one.label, method: "tool", name: `${one.prefix}__${tool}`.slice(0, 48), state: "running", argBytes: JSON.stringify(args).length };
    change({ calls: { set: [at] } });
    const slow = tool == "search_products";
    const result = await new Promise<ToolResult>((resolve) => {
      waiting.set(at.id, resolve);
      gone.addEventListener("abort", () => resolve({ isError: true, content: [{ type: "text", text: "Cancelled." }] }));
      if (slow) change({ calls: { set: [{ ...at, progress: { progress: 2, total: 5, message: "Searching" } }] } });
      else setImmediate(() => resolve(resultOf(tool, args)));
    });
    waiting.delete(at.id);
    change({ calls: { set: [{ ...at, state: result.isError ? "failed" : "done", ms: Date.now() - began, resultBytes: JSON.stringify(result).length }] } });
    return { call: at.id, ms: Date.now() - began, result };
  }

  function notify(n = 1): void {
    const notices = Array.from({ length: n }, (): Notice => ({ id: "n" + ++calls, at: new Date().toISOString(), kind: "registered", connection: "shop", label: scene == "hostile" ? bad(0) : "Web shop", published: "shop__count_links", name: "count_links", description: scene == "hostile" ? bad(0) : "Counts the links of the page.", origin: { kind: "code", code: scene == "hostile" ? BAD.join("\n") : 'const links = document.querySelectorAll("a[href]");\nreturn links.length;' }, client: { name: scene == "hostile" ? bad(7) : "claude-code", version: "2.1.14" } }));
    change({ notices });
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url!, base);
    const path = url.pathname.split("/").slice(1).map(decodeURIComponent);
    if (path[0] != "api") return file(res, url.pathname, token);
    if (bearer && req.headers.authorization != "Bearer " + bearer) return problem(res, 401, "the access token is missing");
    let text = "";
    for await (const piece of req) text += piece;
    const body = text ? JSON.parse(text) : {};
    if (req.method != "GET") {
      if (req.headers["x-jsbridge-token"] !== token) return problem(res, 403, "the token is of another run", "about:blank#token");
      seen.push(`${req.method} ${url.pathname} ${text}`);
    }
    const one = state.connections.find((other) => other.id == path[2]);
    switch (path[1]) {
      case "events":
        res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
        send(res, "snapshot", state);
        streams.add(res);
        res.on("close", () => streams.delete(res));
        return;
      case "origins":
        change({ origins: { allowed: req.method == "POST" ? [...state.origins.allowed, { origin: body.origin, by: "state" }] : state.origins.allowed.filter((o) => o.origin != body.origin), waiting: state.origins.waiting.filter((o) => o.origin != body.origin) } });
        return reply(res, {});
      case "snippets":
        return reply(res, { connect: body.connect ?? body.workspace ?? "default", snippet: body.form == "inline" ? "((SERVER,TENANT)=>{".padEnd(13_000, "x") + "})" : `${body.form == "script" ? '<script type="module" src="' : 'import("'}${base}/main.js?server=${encodeURIComponent(base)}&tenant=5f0c8a0e-4a3f-4d9c-9a51-0f6d3c1b7e22${body.form == "script" ? '"></script>' : '");'}` });
      case "calls.jsonl":
        return reply(res, state.calls);
      case "calls": {
        const found = state.calls.find((c) => c.id == path[2]);
        if (!found) return problem(res, 404, "there is no such call");
        if (path[3] == "cancel") {
          waiting.get(found.id)?.({ isError: true, content: [{ type: "text", text: "The call was cancelled." }] });
          return reply(res, undefined);
        }
        return reply(res, { ...found, arguments: scene == "hostile" ? { [bad(0)]: BAD } : { product: "Blue mug", quantity: 2, address: { street: "Main St 1", zip: "10115" } }, ...(found.state == "done" && { result: resultOf("", {}) }) } satisfies CallDetails);
      }
      case "connections":
        if (!one) return problem(res, 404, "there is no such connection");
        if (!path[3]) return reply(res, details(one));
        if (path[3] == "call") return reply(res, await call(one, body.tool, body.arguments, signalOf(res)));
        if (path[3] == "rename") change({ connections: { set: [{ ...one, label: body.label }] } });
        if (path[3] == "disconnect") change({ connections: { gone: [one.id] } });
        if (path[3] == "tools") {
          if (req.method == "POST") added.push({ name: `${one.prefix}__${body.name}`, pageName: body.name, title: "", description: body.description, inputSchema: { type: "object", properties: body.params ?? {} }, source: "dynamic", origin: body.code ? { kind: "code", code: body.code } : { kind: "path", path: body.path } });
          else added.splice(added.findIndex((tool) => tool.pageName == path[4]), 1);
          change({ connections: { set: [{ ...one, rev: one.rev + 1, tools: details(one).tools.length }] } });
          if (req.method == "POST") return reply(res, { published: `${one.prefix}__${body.name}`, name: body.name, confirmation: "" });
        }
        return reply(res, undefined);
    }
    problem(res, 404, "there is nothing here");
  }

  return {
    base, state, seen, change, notify,
    close: () => new Promise((resolve) => (http.close(() => resolve()), http.closeAllConnections())),
  };
}

function signalOf(res: ServerResponse): AbortSignal {
  const gone = new AbortController();
  res.on("close", () => gone.abort());
  return gone.signal;
}

function file(res: ServerResponse, path: string, token: string): void {
  const name = path == "/" ? "index.html" : path.slice(1);
  if (!/^[\w-]+\.(js|css|html)$/.test(name)) return problem(res, 404, "there is nothing here");
  const text = readFileSync(join(dist, name), "utf8").replace('name="jsbridge-token" content=""', `name="jsbridge-token" content="${token}"`);
  res.writeHead(200, { "Content-Type": TYPES[extname(name)]!, "Content-Security-Policy": CSP, "Cache-Control": "no-store" }).end(text);
}

function reply(res: ServerResponse, value: unknown): void {
  if (value === undefined) res.writeHead(204).end();
  else res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
}

function problem(res: ServerResponse, status: number, detail: string, type = "about:blank"): void {
  res.writeHead(status, { "Content-Type": "application/problem+json" }).end(JSON.stringify({ type, title: "", status, detail }));
}

if (process.argv[1] && import.meta.url == pathToFileURL(process.argv[1]).href) {
  const fake = await startFake((process.argv[2] as Scene) ?? "real", Number(process.argv[3] ?? 0));
  console.log(fake.base);
  setInterval(() => fake.notify(), 20_000);
}
