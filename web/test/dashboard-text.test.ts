import assert from "node:assert/strict";
import test from "node:test";
import { recipes } from "../src/dashboard/clients.ts";
import { href, parseRoute } from "../src/dashboard/route.ts";
import { age, bytes, cut, duration, flat, matches } from "../src/dashboard/text.ts";

test("a cut never leaves half a character", () => {
  assert.equal(cut("abc", 3), "abc");
  assert.equal(cut("abcd", 3), "abc…");
  assert.equal(cut("ab😀d", 3), "ab…");
  assert.equal(cut(undefined, 3), "");
});

test("heaps of accents are taken down", () => {
  assert.equal(flat("e" + "\u0301".repeat(50) + "x"), "e" + "\u0301".repeat(4) + "x");
  assert.equal(flat("नमस्ते שָׁלוֹם"), "नमस्ते שָׁלוֹם");
});

test("numbers are short", () => {
  assert.deepEqual([0, 999, 1000, 9999, 123_456, 5_000_000].map(bytes), ["0 B", "999 B", "1.0 kB", "10.0 kB", "123 kB", "5.0 MB"]);
  assert.deepEqual([0.4, 999, 1234, 45_000, 61_000].map(duration), ["0 ms", "999 ms", "1.2 s", "45 s", "1 min 1 s"]);
  assert.deepEqual([-5, 4, 14, 61, 7200, 200_000].map((s) => age(0, s * 1000)), ["now", "now", "10 s", "1 min", "2 h", "2 d"]);
});

test("a filter wants all of its words, anywhere", () => {
  assert.ok(matches("", "x"));
  assert.ok(matches("SHOP add", "shop__x", "Adds"));
  assert.ok(!matches("shop none", "shop__x"));
});

test("a view's address leads back to it", () => {
  assert.deepEqual(parseRoute(href("connection", "a/b c%")), { view: "connection", id: "a/b c%" });
  assert.deepEqual(parseRoute(href("try", "id", "näme/#")), { view: "try", id: "id", tool: "näme/#" });
  assert.deepEqual(parseRoute(href("activity")), { view: "activity", call: "" });
  for (const hash of ["", "#", "#/", "#/nothing", "#/connection", "#/connection/%E0%A4%A", "#main"]) assert.deepEqual(parseRoute(hash), { view: "overview" }, hash);
});

test("each client is told the address, and of a token without giving one", () => {
  for (const secured of [false, true]) {
    for (const { name, text } of recipes("http://localhost:1/mcp", secured)) {
      assert.ok(text.includes("http://localhost:1/mcp"), name);
      if (text.startsWith("{")) JSON.parse(text);
      if (name != "Any other") assert.equal(text.includes("Bearer"), secured, name);
    }
  }
});
