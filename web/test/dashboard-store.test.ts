import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { createStore, type Store } from "../src/dashboard/store.ts";
import type { Call, Change, Connection, Notice, State } from "../src/dashboard/types.ts";

const call = (id: string, state: Call["state"] = "done") => ({ id, state }) as Call;
const connection = (id: string, label = id) => ({ id, label }) as Connection;

const EMPTY: State = {
  server: { epoch: "e", version: "1", started: "", mcp: "", base: "", pageCode: "allow", redacted: false },
  sessions: [],
  connections: [],
  channels: [],
  workspaces: [],
  origins: { allowed: [], waiting: [] },
  counters: { calls: 0, failed: 0, running: 0, refused: 0, dropped: 0 },
  calls: [],
};

let store: Store;
let notices: Notice[];
beforeEach(() => {
  notices = [];
  store = createStore((some) => notices.push(...some));
});

const snapshot = (state: Partial<State> = {}) => store.apply({ id: "", name: "snapshot", data: JSON.stringify({ ...EMPTY, ...state }) });
const change = (c: Change) => store.apply({ id: "", name: "change", data: JSON.stringify(c) });
const ids = (list: ReadonlyMap<string, unknown>) => [...list.keys()].join(" ");

test("a change is merged by id: set in place, added at the end, taken out", () => {
  snapshot({ connections: [connection("a"), connection("b"), connection("c")] });
  const { b } = Object.fromEntries(store.connections.value);
  change({ connections: { set: [connection("a", "A"), connection("d")], gone: ["c", "never"] } });
  assert.equal(ids(store.connections.value), "a b d");
  assert.equal(store.connections.value.get("a")!.label, "A");
  assert.equal(store.connections.value.get("b"), b, "what did not change is the same object");
});

test("what a change does not name stays the same value", () => {
  snapshot({ connections: [connection("a")], calls: [call("1")] });
  const before = store.connections.value;
  change({ calls: { set: [call("2")] } });
  assert.equal(store.connections.value, before);
});

test("a snapshot replaces everything", () => {
  snapshot({ connections: [connection("a")], calls: [call("1")] });
  snapshot({ calls: [call("2")] });
  assert.equal(ids(store.connections.value), "");
  assert.equal(ids(store.calls.value), "2");
});

test("empty lists may be null", () => {
  snapshot({ calls: null, connections: null, origins: { allowed: null, waiting: null } } as unknown as State);
  assert.equal(store.calls.value.size, 0);
  assert.deepEqual(store.origins.value, { allowed: [], waiting: [] });
});

test("the newest thousand calls are kept", () => {
  snapshot({ calls: Array.from({ length: 1100 }, (_, i) => call("s" + i)) });
  assert.equal(store.calls.value.size, 1000);
  change({ calls: { set: [call("new"), call("s500", "failed")] } });
  assert.equal(store.calls.value.size, 1000);
  assert.equal([...store.calls.value.keys()].at(-1), "new");
  assert.equal([...store.calls.value.keys()][0], "s101");
  assert.equal(store.calls.value.get("s500")!.state, "failed");
});

test("a hidden tab keeps up without rendering, and hears of tools", () => {
  snapshot({ connections: [connection("a")] });
  let renders = -1;
  store.connections.subscribe(() => renders++);
  store.hide(true);
  change({ connections: { set: [connection("b")] } });
  change({ connections: { set: [connection("c")], gone: ["a"] }, notices: [{ id: "n" } as Notice] });
  assert.equal(renders, 0);
  assert.equal(notices.length, 1);
  store.hide(false);
  assert.equal(renders, 1);
  assert.equal(ids(store.connections.value), "b c");
});

test("what can't be read throws, so that the stream begins anew", () => {
  assert.throws(() => change({}), /snapshot/);
  snapshot();
  assert.throws(() => store.apply({ id: "", name: "change", data: "{" }));
  store.apply({ id: "", name: "of a later version", data: "?" });
});
