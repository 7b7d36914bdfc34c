import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { formatConnect, parseConnect } from "../src/connect-string.ts";

// The server is tested with the same table.
const table = new URL("../../tenant/testdata/connect.json", import.meta.url);
const cases: any[] = JSON.parse(readFileSync(table, "utf8"));

test("the table is read", () => assert.ok(cases.length >= 40));

for (const { in: text, canonical = "", ...want } of cases) {
  test(`parseConnect(${JSON.stringify(text.length > 60 ? text.slice(0, 60) + "…" : text)})`, () => {
    const got = parseConnect(text);
    assert.deepEqual(got, want);
    assert.equal(formatConnect(got), canonical);
    assert.deepEqual(parseConnect(canonical), got);
  });
}

test("half a surrogate pair is a character like other bad ones", () => {
  assert.deepEqual(parseConnect("a\ud83db"), { kind: "root", name: "a-b" });
});

test("megabytes of bad characters take no time", () => {
  const began = performance.now();
  assert.deepEqual(parseConnect("!".repeat(5e6) + "a" + "!".repeat(5e6)), { kind: "root", name: "a" });
  assert.ok(performance.now() - began < 2_000);
});
