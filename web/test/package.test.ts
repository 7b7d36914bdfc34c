import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Script } from "node:vm";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { FakeSocket, freshPage, settle } from "./page.ts";

/** What the package may add to an app, in bytes: minified, and gzipped as well. */
const LIMITS = { tool: [2_900, 1_400], bridge: [40_000, 16_000] } as const;

const web = fileURLToPath(new URL("..", import.meta.url));
const page = globalThis as any;

/** Holds a copy of the sources, so that packing leaves no files in them, and an app that uses the package. */
let root: string;
let app: string;
/** What went into the package. */
let packed: string[];

// Without what the npm that runs these tests tells its children.
const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^npm_/i.test(key)));
const npm = (cwd: string, ...args: string[]) =>
  execFileSync("npm", [...args, "--offline", "--no-audit", "--no-fund", "--no-update-notifier"], { cwd, env, encoding: "utf8" });

before(() => {
  root = mkdtempSync(join(tmpdir(), "jsbridge-package-"));
  for (const name of ["LICENSE", ...["package.json", "pack.mjs", "tsconfig.json", "README.md", "dist", "src"].map((name) => join("web", name))]) {
    cpSync(join(web, "..", name), join(root, name), { recursive: true });
  }
  symlinkSync(join(web, "node_modules"), join(root, "web", "node_modules"), "dir");
  const [{ filename, files }] = JSON.parse(npm(join(root, "web"), "pack", "--json", "--pack-destination", root));
  packed = files.map((file: { path: string }) => file.path);
  app = join(root, "app");
  mkdirSync(app);
  writeFileSync(join(app, "package.json"), '{ "private": true, "type": "module" }');
  npm(app, "install", join(root, filename));
});

after(() => rmSync(root, { recursive: true, force: true }));

const TOOL = `
import { defineTool } from "jsbridge/client";
const remove: () => void = defineTool("add", ({ a, b }: { a: number; b: number }, ctx) => {
  ctx.progress(1, 2);
  return ctx.signal.aborted ? undefined : a + b;
}, {
  description: "Adds two numbers",
  params: { a: { type: "number" }, b: { type: "number", description: "the second", optional: true } },
  example: { a: 1, b: 2 },
  annotations: { readOnlyHint: true },
  timeoutMs: undefined,
});
export { remove };
`;

const BRIDGE = `
import { connectMcpBridge, definePrompt, defineResource, defineTool, parseConnect, type ElicitResult, type ResourceOptions, type SampleResult, type ConnectionState, type Connect, type McpConnect, type StateListener } from "jsbridge/client";
const said: ConnectionState[] = [];
const listen: StateListener = (state, channel, appLabel, reason) => void said.push(state, ...(channel + appLabel + reason ? [] : []));
const connection: McpConnect = connectMcpBridge({ appName: "notes", beforeConnect: async () => {}, onStateChange: listen });
defineTool("say", () => said);
const parsed: Connect = parseConnect(connection.getConnectionState().channel);
definePrompt("review", ({ style }, ctx) => [{ role: "user", content: style satisfies string }, ctx.agent.name], { arguments: [{ name: "style", required: true, complete: async (value) => [value] }] });
const prices: ResourceOptions = { subscribe: (notify, { uri, variables }) => void (uri satisfies string, variables satisfies object, notify()), complete: { id: ["1", "2"] } };
defineResource("price/{id}", async ({ id }, ctx) => {
  const answer: ElicitResult = await ctx.elicit("Which currency?", { properties: { currency: { type: "string" } } });
  const { content }: SampleResult = await ctx.sample({ messages: ["hi"], maxTokens: 5 });
  const roots = await ctx.roots();
  return { id, uri: ctx.uri, currency: answer.content?.currency, content, first: roots[0]?.uri };
}, prices);
// @ts-expect-error: an argument has a name
() => definePrompt("x", () => "", { arguments: [{ required: true }] });
if (parsed.kind == "channel") parsed.name satisfies string | undefined;
connection.onConnectionStateChange((state) => void (state satisfies ConnectionState))();
// @ts-expect-error: every app has a name
() => connectMcpBridge({});
// @ts-expect-error: no such type
() => defineTool("x", () => 1, { params: { a: { type: "text" } } });
export { connection };
`;

/** Builds an app as Vite does by default, and gives its only script. */
async function viteBuild(name: string, source: string): Promise<{ path: string; code: string }> {
  const folder = join(app, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "main.ts"), source.replace(/export .*\n/, ""));
  writeFileSync(join(folder, "index.html"), '<!doctype html><script type="module" src="/main.ts"></script>');
  // The polyfill that Vite adds is not what is measured.
  await build({ root: folder, configFile: false, logLevel: "error", build: { modulePreload: { polyfill: false } } });
  const assets = join(folder, "dist", "assets");
  const [script, ...more] = readdirSync(assets);
  assert.deepEqual(more, []);
  const path = join(assets, script!);
  return { path, code: readFileSync(path, "utf8") };
}

/** Imports a file as a page just loaded would. */
async function load(path: string): Promise<any> {
  freshPage();
  for (const key of ["__mcpToolBus", Symbol.for("jsbridge.connect")]) delete page[key];
  const module = await import(pathToFileURL(path) + "?" + Math.random());
  await settle();
  return module;
}

test("holds the script, its types and the license, nothing else", () => {
  assert.deepEqual(packed.filter((name) => !/^npm\/[\w-]+\.d\.ts$/.test(name)).sort(), ["README.md", "npm/LICENSE", "npm/client.js", "package.json"]);
  assert.ok(packed.includes("npm/client.d.ts"));
  const { name, dependencies, sideEffects } = JSON.parse(readFileSync(join(app, "node_modules", "jsbridge", "package.json"), "utf8"));
  assert.deepEqual({ name, dependencies, sideEffects }, { name: "jsbridge", dependencies: undefined, sideEffects: false });
});

test("types hold for bundlers and for Node, as strict as can be", () => {
  writeFileSync(join(app, "tool.ts"), TOOL);
  writeFileSync(join(app, "bridge.ts"), BRIDGE);
  const strict = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, skipDefaultLibCheck: true, types: [], target: "ES2022", lib: ["ES2022", "DOM"] };
  for (const [module, moduleResolution] of [["ESNext", "Bundler"], ["NodeNext", "NodeNext"]]) {
    writeFileSync(join(app, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...strict, module, moduleResolution }, files: ["tool.ts", "bridge.ts"] }));
    try {
      execFileSync(process.execPath, [join(web, "node_modules", "typescript", "bin", "tsc"), "-p", app], { encoding: "utf8" });
    } catch (e) {
      assert.fail(`${moduleResolution}: ${(e as { stdout: string }).stdout}`);
    }
  }
});

test("a Vite app: no top-level await, small, connects, and imports in Node", async () => {
  for (const [name, source] of [["tool", TOOL], ["bridge", BRIDGE]] as const) {
    const { path, code } = await viteBuild(name, source);
    // As a script it would be a syntax error, like import, export and import.meta.
    new Script(code);
    const size = [Buffer.byteLength(code), gzipSync(code, { level: 9 }).length];
    size.forEach((bytes, i) => assert.ok(bytes <= LIMITS[name][i]!, `${name}: ${size} bytes, limits ${LIMITS[name]}`));
    execFileSync(process.execPath, [path]);
    await load(path);
    assert.deepEqual(page.__mcpToolBus.getTools().map((tool: any) => tool.name), [name == "tool" ? "add" : "say"]);
    assert.deepEqual(FakeSocket.all.map((ws) => ws.url.split("&")[0]), name == "tool" ? [] : ["ws://localhost:8766/ws?tenant=notes"]);
  }
});

test("Node imports it by its name", () => {
  const script = 'console.log(Object.keys(await import("jsbridge/client")).sort().join())';
  const out = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: app, encoding: "utf8" });
  assert.equal(out.trim(), "connectMcpBridge,definePrompt,defineResource,defineTool,parseConnect");
});

test("a plain page can use the file: it needs no other", async () => {
  const file = join(app, "node_modules", "jsbridge", "npm", "client.js");
  const code = readFileSync(file, "utf8");
  // From such an address nothing else can be imported.
  await import("data:text/javascript," + encodeURIComponent(code));
  assert.doesNotMatch(code, /\bimport\b|\brequire\b/);
  const { connectMcpBridge } = await load(file);
  connectMcpBridge({ appName: "plain", server: "http://localhost:9" });
  await settle();
  assert.match(FakeSocket.last.url, /^ws:\/\/localhost:9\/ws\?tenant=plain&/);
});
