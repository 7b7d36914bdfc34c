import assert from "node:assert/strict";
import test from "node:test";
import { explain, findCause, isLasting } from "../src/diagnose.ts";
import { freshPage, setPermission } from "./page.ts";

const local = new URL("http://localhost:8766");

for (const [name, href, permission, want, more] of [
  ["local page", "http://localhost:8080/", "prompt", "down"],
  ["127.0.0.1", "http://127.0.0.1:8080/", "denied", "down"],
  ["subdomain of localhost", "https://app.localhost/", "denied", "down"],
  ["IPv6 loopback", "http://[::1]:8080/", "denied", "down"],
  ["file", "file:///tmp/a.html", "denied", "down"],
  ["public https, granted", "https://app.example/", "granted", "down"],
  ["public https, denied", "https://app.example/", "denied", "denied"],
  ["public https, not asked", "https://app.example/", "prompt", "prompt"],
  ["public https, no such permission", "https://app.example/", undefined, "down"],
  ["connected before", "https://app.example/", "prompt", "down", { opened: true }],
  ["public http", "http://app.example/", "denied", "http"],
  ["a name that looks local", "https://localhost.example/", "denied", "denied"],
  ["server elsewhere", "https://app.example/", "denied", "down", { server: new URL("https://bridge.example") }],
  ["offline", "http://localhost:8080/", undefined, "down", { offline: true }],
] as [string, string, string | undefined, string, { opened?: boolean; server?: URL; offline?: boolean }?][]) {
  test(`cause: ${name}`, async () => {
    freshPage(href);
    setPermission(permission);
    if (more?.offline) (navigator as any).onLine = false;
    assert.equal(await findCause(more?.server ?? local, !!more?.opened, (found) => found), want);
  });
}

test("only what a retry may cure is retried", () => {
  const lasting = (["csp", "mixed", "http", "denied", "prompt", "down"] as const).filter(isLasting);
  assert.deepEqual(lasting, ["csp", "mixed", "denied", "prompt"]);
});

test("each line says what is wrong and what to do", () => {
  freshPage("https://app.example/");
  for (const [kind, detail, want] of [
    ["csp", "connect-src", /CSP: add ws:\/\/localhost:8766 to connect-src/],
    ["denied", undefined, /"Apps on device" > Allow/],
    ["prompt", undefined, /Allow/],
    ["mixed", undefined, /http:\/\/localhost/],
    ["http", undefined, /public http pages/],
    ["down", undefined, /is jsbridge running/],
    ["down", " (1001 stopping)", /\(1001 stopping\)/],
    [1000, " (1000 left)", /\(1000 left\).*__mcpReconnect/],
    [1008, " (origin refused)", /^ended \(origin refused\); __mcpReconnect\(\) connects again$/],
    [4404, " (4404 gone)", /^ended \(4404 gone\); __mcpReconnect\(\) connects again$/],
    [4409, " (4409 replaced)", /\(4409 replaced\).*__mcpReconnect/],
  ] as const) {
    const line = explain(kind, local, detail);
    assert.match(line, want);
    assert.doesNotMatch(line, /undefined/);
  }
});
