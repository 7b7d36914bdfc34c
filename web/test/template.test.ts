import assert from "node:assert/strict";
import test from "node:test";
import { matchTemplate } from "../src/template.ts";

for (const [template, uri, want] of [
  ["item/{id}", "item/5", { id: "5" }],
  ["/item/{id}", "item/5", { id: "5" }],
  ["item/{id}", "item/5/6", undefined],
  ["item/{id}", "items/5", undefined],
  ["test://t/{id}/data", "test://t/a%20b/data", { id: "a b" }],
  ["a.b/{x}", "aXb/1", undefined],
  ["f/{+path}", "f/a/b.txt", { path: "a/b.txt" }],
  ["f{/a,b}", "f/1/2", { a: "1", b: "2" }],
  ["f{/a*}", "f/1/2", undefined],
  ["f{#part}", "f#top", { part: "top" }],
  ["f{.kind}", "f.json", { kind: "json" }],
  ["q{?a,b}", "q?a=1&b=2", { a: "1", b: "2" }],
  ["q{?a,b}", "q?a=1", { a: "1" }],
  ["q{?a,b}", "q", {}],
  ["q?z=1{&a}", "q?z=1&a=2", { a: "2" }],
  ["{x,y}", "1,2", { x: "1", y: "2" }],
  ["{x:3}/{y}", "abc/d", { x: "abc", y: "d" }],
  ["bad/%zz/{id}", "bad/%zz/%E0", { id: "%E0" }],
  ["plain", "plain", {}],
  ["item/{__proto__}", "item/5", JSON.parse('{"__proto__":"5"}')],
] as [string, string, object | undefined][]) {
  test(`${uri} of ${template}`, () => assert.deepEqual(matchTemplate(template, uri), want));
}
