import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";
import { explain, findCause } from "../src/diagnose.ts";
import { backoff, createSocket, type Socket } from "../src/socket.ts";
import { FakeSocket, fire, freshPage, permission, setPermission, settle, tick } from "./page.ts";

const server = new URL("http://localhost:8766");
let socket: Socket;
let told: unknown[];
let lasted: boolean | undefined;
let ended = 0;
let seen = "-";
let opening = 0;
let returned = 0;
let stop: AbortController;

function setup(href?: string): void {
  freshPage(href);
  told = [];
  ended = 0;
  seen = "-";
  opening = returned = 0;
  stop = new AbortController();
  socket = createSocket(server, () => "/ws?x", stop.signal, {
    opening: () => opening++,
    opened() {},
    frame() {},
    ended: () => ended++,
    hiding: () => seen,
    returned: () => returned++,
    cause: (opened, keep) => findCause(server, opened, keep),
    tell: (kind, _, lasting) => void (told.push(kind), (lasted = lasting)),
  });
}
beforeEach(() => setup());

const count = () => FakeSocket.all.length;
/** An attempt that the server let live for as long as `ms`. */
function connected(ms = 5_000): FakeSocket {
  FakeSocket.last.open();
  FakeSocket.last.say({ type: "welcome" });
  tick(ms);
  return FakeSocket.last;
}
async function end(code?: number, reason?: string): Promise<void> {
  FakeSocket.last.end(code, reason);
  await settle();
}

test("full jitter from half a second to thirty, never a hot loop", () => {
  const span = (random: number) => [0, 1, 2, 5, 6, 9, 5000].map((n) => (mock.method(Math, "random", () => random), backoff(n)));
  assert.deepEqual(span(1), [500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
  assert.deepEqual(span(0.5), [250, 500, 1000, 8_000, 15_000, 15_000, 15_000]);
  assert.deepEqual(span(0), Array(7).fill(100));
});

test("nothing before connect(), one socket after it", () => {
  fire("document", "visibilitychange");
  fire("window", "online");
  assert.equal(count(), 0);
  socket.connect();
  socket.connect();
  assert.equal(count(), 1);
  assert.equal(FakeSocket.last.url, "ws://localhost:8766/ws?x");
  assert.equal(opening, 1);
});

test("nothing is queued while the socket is not open", () => {
  socket.send("a");
  socket.connect();
  socket.send("b");
  assert.deepEqual(FakeSocket.last.sent, []);
});

for (const [code, retried] of [[1000, false], [1001, true], [1003, false], [1005, true], [1006, true], [1008, false], [1009, true], [1011, true], [1013, true], [4404, false], [4408, true], [4409, false]] as const) {
  test(`close code ${code}: ${retried ? "retried" : "the end"}`, async () => {
    socket.connect();
    connected();
    await end(code, "why");
    assert.equal(ended, 1);
    assert.equal(told.length, 1);
    assert.equal(!lasted, retried);
    tick(9_000);
    assert.equal(count(), retried && code != 1013 ? 2 : 1);
    fire("document", "visibilitychange");
    tick(60_000);
    assert.equal(count(), retried ? 2 : 1);
    if (!retried) {
      socket.connect();
      assert.equal(count(), 2);
    }
  });
}

test("busy: slow, and nothing but connect() hurries it", async () => {
  socket.connect();
  connected();
  await end(1013);
  fire("window", "online");
  tick(9_999);
  assert.equal(count(), 1);
  tick(500);
  assert.equal(count(), 2);
});

test("the wait doubles while the server is down, and starts over after a stable connection", async () => {
  socket.connect();
  for (const wait of [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]) {
    await end();
    const before = count();
    tick(wait - 1);
    assert.equal(count(), before);
    tick(1);
    assert.equal(count(), before + 1);
  }
  connected(4_999);
  await end(1001);
  tick(14_999);
  const before = count();
  tick(1);
  assert.equal(count(), before + 1, "a short connection does not count");
  connected(5_000);
  await end(1001);
  tick(250);
  assert.equal(count(), before + 2);
});

test("a server that accepts and hangs up is not asked ever faster", async () => {
  socket.connect();
  for (let i = 0; i < 100; i++) {
    FakeSocket.last.open();
    FakeSocket.last.say({ type: "welcome" });
    await end(1001);
    tick(15_000);
  }
  assert.ok(count() <= 101);
  await end();
  tick(14_000);
  assert.equal(count(), 101);
});

test("the first connect does not wait for a hidden tab, the next ones do", async () => {
  (document as any).hidden = true;
  socket.connect();
  assert.equal(count(), 1);
  await end();
  tick(600_000);
  fire("document", "visibilitychange");
  assert.equal(count(), 1);
  (document as any).hidden = false;
  fire("document", "visibilitychange");
  assert.equal(count(), 2);
});

test("offline: slow, and at once when online again", async () => {
  socket.connect();
  (navigator as any).onLine = false;
  await end();
  assert.deepEqual(told, ["down"]);
  tick(250);
  tick(29_999);
  assert.equal(count(), 1);
  (navigator as any).onLine = true;
  fire("window", "online");
  assert.equal(count(), 2);
  tick(60_000);
  assert.equal(count(), 2);
});

for (const event of ["visibilitychange", "resume"]) {
  test(`${event} wakes a waiting page`, async () => {
    socket.connect();
    await end();
    fire("document", event);
    assert.equal(count(), 2);
  });
}

test("pagehide closes with 4000, and coming back connects at once", async () => {
  socket.connect();
  const first = connected();
  fire("window", "pagehide");
  assert.deepEqual(first.closed, [4000, "pagehide -"]);
  assert.equal(ended, 1);
  first.end(4000);
  tick(60_000);
  await settle();
  assert.equal(count(), 1);
  assert.deepEqual(told, []);
  (document as any).hidden = true;
  fire("window", "pageshow", { persisted: false });
  assert.equal(returned, 0);
  fire("window", "pageshow", { persisted: true });
  assert.equal(count(), 2);
  assert.equal(returned, 1);
});

test("pagehide: a call's id that is too long for a close frame is cut", () => {
  socket.connect();
  connected();
  seen = "é".repeat(500);
  fire("window", "pagehide");
  assert.ok(Buffer.byteLength(FakeSocket.last.closed![1]!) <= 123);
});

test("pagehide asks for the newest call only when it closes", () => {
  socket.connect();
  for (seen of ["7-1", "7-2", "-"]) {
    const ws = connected();
    fire("window", "pagehide");
    assert.deepEqual(ws.closed, [4000, "pagehide " + seen]);
    fire("window", "pageshow", { persisted: true });
  }
});

test("a thawed page connects at once though hidden, also after a late message", async () => {
  socket.connect();
  const first = connected();
  (document as any).hidden = true;
  fire("document", "resume");
  first.say({ type: "probe", id: "1" });
  first.end(1006);
  await settle();
  assert.equal(count(), 2);
  assert.deepEqual(told, []);
});

test("a page that had ended stays so through the back/forward cache", async () => {
  socket.connect();
  connected();
  await end(4404);
  fire("window", "pagehide");
  fire("window", "pageshow", { persisted: true });
  tick(60_000);
  assert.equal(count(), 1);
});

test("a socket lost to a freeze is replaced at once, once", async () => {
  socket.connect();
  connected();
  (document as any).hidden = true;
  fire("document", "freeze");
  fire("document", "resume");
  FakeSocket.last.end();
  assert.equal(count(), 2);
  await end();
  tick(60_000);
  assert.equal(count(), 2);
});

test("a policy's block, which has no close event, ends the attempts and names the directive", async () => {
  socket.connect();
  const blocked = FakeSocket.last;
  blocked.readyState = 3;
  fire("document", "securitypolicyviolation", { disposition: "report", blockedURI: "ws://localhost:8766/ws", effectiveDirective: "connect-src" });
  fire("document", "securitypolicyviolation", { disposition: "enforce", blockedURI: "https://other.example", effectiveDirective: "img-src" });
  await settle();
  assert.deepEqual(told, []);
  fire("document", "securitypolicyviolation", { disposition: "enforce", blockedURI: "ws://localhost:8766/ws", effectiveDirective: "connect-src" });
  blocked.onerror!({});
  await settle();
  assert.deepEqual(told, ["csp"]);
  fire("document", "visibilitychange");
  tick(600_000);
  assert.equal(count(), 1);
});

test("an event that only looks like a policy's block is none", async () => {
  socket.connect();
  fire("document", "securitypolicyviolation");
  await settle();
  assert.deepEqual(told, []);
});

test("error without close is an end, and both are one", async () => {
  socket.connect();
  FakeSocket.last.readyState = 3;
  FakeSocket.last.onerror!({});
  FakeSocket.last.onclose!({ code: 1006, reason: "" });
  await settle();
  assert.deepEqual(told, ["down"]);
  tick(250);
  assert.equal(count(), 2);
});

test("mixed content throws at once and is not retried", async () => {
  FakeSocket.throws = true;
  socket.connect();
  await settle();
  assert.deepEqual(told, ["mixed"]);
  FakeSocket.throws = false;
  tick(600_000);
  assert.equal(count(), 0);
});

for (const state of ["prompt", "denied"]) {
  test(`permission ${state}: no retry until it is granted`, async () => {
    setup("https://app.example/");
    setPermission(state);
    socket.connect();
    await end();
    assert.deepEqual(told, [state]);
    assert.ok(lasted);
    fire("document", "visibilitychange");
    fire("window", "online");
    tick(600_000);
    assert.equal(count(), 1);
    setPermission("granted");
    permission().onchange!();
    assert.equal(count(), 2);
  });
}

test("permission: a prompt that ends in a block is told as one", async () => {
  setup("https://app.example/");
  setPermission("prompt");
  socket.connect();
  await end();
  setPermission("denied");
  permission().onchange!();
  await settle();
  assert.deepEqual(told, ["prompt", "denied"]);
});

test("permission: no longer watched once the page has left", async () => {
  setup("https://app.example/");
  setPermission("prompt");
  socket.connect();
  await end();
  socket.close();
  assert.equal(permission().onchange, null);
});

test("a diagnosis that comes late does not undo a decision", async () => {
  setup("https://app.example/");
  setPermission("granted");
  socket.connect();
  FakeSocket.last.end();
  socket.close();
  await settle();
  tick(600_000);
  assert.deepEqual(told, []);
  assert.equal(count(), 1);
});

test("close() stays closed, without listeners once the signal aborts", async () => {
  socket.connect();
  const open = connected();
  socket.close();
  assert.deepEqual(open.closed, [1000, undefined]);
  open.end(1000);
  fire("document", "visibilitychange");
  tick(60_000);
  assert.equal(count(), 1);
  assert.deepEqual(told, []);
  stop.abort();
  socket.connect();
  fire("window", "pagehide");
  assert.equal(FakeSocket.last.closed, undefined);
});

test("every code that ends a connection has words", () => {
  for (const code of [1000, 1003, 1008, 1009, 1013, 4404, 4409]) assert.ok(explain(code, server, ` (${code} x)`).includes(`(${code} x)`));
});
