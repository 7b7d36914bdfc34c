import assert from "node:assert/strict";
import test, { afterEach, beforeEach, mock } from "node:test";
import { createParser, delay, openStream, type Link, type Stream, type StreamEvent } from "../src/dashboard/stream.ts";

function parse(...pieces: string[]): StreamEvent[] {
  const events: StreamEvent[] = [];
  const feed = createParser((event) => events.push(event));
  pieces.forEach(feed);
  return events;
}

test("events are read wherever the stream is cut", () => {
  const text = "id: e-1\nevent: snapshot\ndata: {\"a\":\ndata: 1}\n\n: heartbeat\n\nid: e-2\r\nevent: change\r\ndata:x\r\n\r\n";
  const want = [
    { id: "e-1", name: "snapshot", data: '{"a":\n1}' },
    { id: "e-2", name: "change", data: "x" },
  ];
  assert.deepEqual(parse(text), want);
  assert.deepEqual(parse(...text), want);
  for (let i = 0; i < text.length; i++) assert.deepEqual(parse(text.slice(0, i), text.slice(i)), want);
});

test("an event without data is none, and one that is not complete waits", () => {
  assert.deepEqual(parse("event: x\n\ndata: y\n"), []);
  assert.deepEqual(parse("data: y\n", "\n"), [{ id: "", name: "message", data: "y" }]);
});

test("the wait grows from half a second to ten, half of it by chance", () => {
  assert.deepEqual([0, 1, 4, 5, 50].map((n) => delay(n, 1)), [500, 1000, 8000, 10_000, 10_000]);
  assert.deepEqual([0, 1, 50].map((n) => delay(n, 0)), [250, 500, 5000]);
});

/** One request of the stream. */
interface Request {
  headers: Record<string, string>;
  signal: AbortSignal;
  say(text: string): void;
  end(): void;
}

let requests: Request[];
let links: Link[];
let events: StreamEvent[];
let statuses: number[];
let stream: Stream;
let unlock: () => void;
let eventFails: boolean;

const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};
const tick = async (ms: number) => {
  mock.timers.tick(ms);
  await settle();
};
const last = () => requests.at(-1)!;
const state = () => links.at(-1)!.state;

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  mock.method(Math, "random", () => 1);
  requests = [];
  links = [];
  events = [];
  statuses = [];
  eventFails = false;
  stream = openStream("/api/events", {
    headers: () => ({ Authorization: "x" }),
    event(event) {
      if (eventFails) throw Error("not understood");
      events.push(event);
    },
    link: (link) => links.push(link),
    unlock: () => new Promise((resolve) => (unlock = resolve)),
    async fetch(_, { headers, signal }) {
      const status = statuses.shift() ?? 200;
      if (status == 0) throw TypeError("no network");
      let controller!: ReadableStreamDefaultController<Uint8Array>;
      const body = new ReadableStream<Uint8Array>({ start: (c) => void (controller = c) });
      signal!.addEventListener("abort", () => {
        try {
          controller.error(Error("aborted"));
        } catch {
          // It had ended.
        }
      });
      requests.push({ headers: headers as Record<string, string>, signal: signal!, say: (text) => controller.enqueue(new TextEncoder().encode(text)), end: () => controller.close() });
      return new Response(body, { status });
    },
  });
});
afterEach(() => {
  stream.stop();
  mock.reset();
  mock.timers.reset();
});

test("it is live with the first event, and resumes after the last", async () => {
  await settle();
  assert.equal(state(), "connecting");
  assert.equal(last().headers["Last-Event-ID"], undefined);
  last().say("id: e-1\ndata: a\n\nid: e-2\ndata: b\n\nid: e-3\ndata: half");
  await settle();
  assert.equal(state(), "live");
  last().end();
  await settle();
  assert.equal(state(), "gone");
  await tick(500);
  assert.equal(requests.length, 2);
  assert.equal(last().headers["Last-Event-ID"], "e-2");
  assert.equal(last().headers.Authorization, "x");
  assert.deepEqual(events.map((event) => event.data), ["a", "b"]);
});

test("silence is noticed, a heartbeat is none", async () => {
  await settle();
  last().say("id: e-1\ndata: a\n\n");
  await settle();
  await tick(39_000);
  last().say(": heartbeat\n\n");
  await settle();
  await tick(39_000);
  assert.equal(state(), "live");
  await tick(1000);
  assert.equal(state(), "gone");
  assert.ok(requests[0]!.signal.aborted);
});

test("a server that is gone is tried less and less often, and at once when woken", async () => {
  await settle();
  statuses = Array(8).fill(0);
  last().end();
  await settle();
  const waits: number[] = [];
  for (let i = 0; i < 7; i++) {
    const link = links.at(-1)!;
    assert.equal(link.state, "gone");
    if (link.state != "gone") return;
    waits.push(link.retryAt - Date.now());
    await tick(link.retryAt - Date.now());
  }
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  statuses = [];
  const before = requests.length;
  stream.wake();
  await settle();
  assert.equal(requests.length, before + 1);
  last().say("data: a\n\n");
  await settle();
  assert.equal(state(), "live");
  last().end();
  await settle();
  const link = links.at(-1)!;
  assert.equal(link.state == "gone" && link.retryAt - Date.now(), 500, "success begins anew");
});

test("what can't be understood is fetched whole", async () => {
  await settle();
  last().say("id: e-1\ndata: a\n\n");
  await settle();
  eventFails = true;
  last().say("id: e-2\ndata: b\n\n");
  await settle();
  assert.equal(state(), "gone");
  assert.ok(requests[0]!.signal.aborted);
  eventFails = false;
  await tick(500);
  assert.equal(last().headers["Last-Event-ID"], undefined);
});

test("a server that fails right away is not hammered", async () => {
  await settle();
  eventFails = true;
  for (let i = 0; i < 3; i++) {
    last().say("data: a\n\n");
    await settle();
    const link = links.at(-1)!;
    await tick(link.state == "gone" ? link.retryAt - Date.now() : 0);
  }
  const link = links.at(-1)!;
  assert.notEqual(link.state, "live");
  last().end();
  await settle();
  const end = links.at(-1)!;
  assert.equal(end.state == "gone" && end.retryAt - Date.now(), 4000);
});

test("a locked server is asked again only with another token", async () => {
  await settle();
  statuses = [401];
  last().end();
  await settle();
  await tick(500);
  assert.equal(state(), "locked");
  const before = requests.length;
  await tick(100_000);
  assert.equal(requests.length, before);
  unlock();
  await settle();
  assert.equal(requests.length, before + 1);
});

test("a stopped stream stays so", async () => {
  await settle();
  stream.stop();
  await settle();
  await tick(100_000);
  stream.wake();
  assert.equal(requests.length, 1);
});
