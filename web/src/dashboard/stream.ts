/** Reads the server's events, and never gives up: it resumes, notices silence, and backs off. */

/** One event of a text/event-stream. */
export interface StreamEvent {
  id: string;
  name: string;
  data: string;
}

/** Feeds on pieces of the stream, cut anywhere, and gives the events that are complete. */
export function createParser(emit: (event: StreamEvent) => void): (text: string) => void {
  let rest = "";
  let id = "";
  let name = "";
  let data: string[] = [];
  function line(text: string): void {
    if (text == "") {
      if (data.length) emit({ id, name: name || "message", data: data.join("\n") });
      name = "";
      data = [];
      return;
    }
    const colon = text.indexOf(":");
    if (colon == 0) return; // A comment: the heartbeat.
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (field == "data") data.push(value);
    else if (field == "event") name = value;
    else if (field == "id" && !value.includes("\0")) id = value;
  }
  return (text) => {
    rest += text;
    // A \r at the end may be the first half of a line's end.
    const whole = rest.endsWith("\r") ? rest.slice(0, -1) : rest;
    const lines = whole.split(/\r\n|\n|\r/);
    rest = lines.pop()! + rest.slice(whole.length);
    lines.forEach(line);
  };
}

/** How the stream is. `retryAt` is when the next attempt begins, in ms since 1970. */
export type Link = { state: "connecting" } | { state: "live" } | { state: "gone"; retryAt: number; reason: string } | { state: "locked" };

export interface StreamHooks {
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** Headers beside those of the stream. */
  headers(): Record<string, string>;
  /** May throw: then the stream begins anew, with a snapshot. */
  event(event: StreamEvent): void;
  link(link: Link): void;
  /** The server wants the access token. Resolves when there is another one to try. */
  unlock(): Promise<void>;
}

export interface Stream {
  /** The tab woke up, or the user asks: looks at once whether the server is there. */
  wake(): void;
  stop(): void;
}

/** No byte for so long means dead: the server beats every 15 s. */
const SILENCE_MS = 40_000;
const FIRST_MS = 500;
const LAST_MS = 10_000;

/** Half fixed, half chance: several tabs don't return in step. */
export const delay = (attempt: number, random = Math.random()): number => Math.min(LAST_MS, FIRST_MS * 2 ** attempt) * (0.5 + random / 2);

export function openStream(url: string, hooks: StreamHooks): Stream {
  let lastId = "";
  let attempt = 0;
  let heardAt = 0;
  let request: AbortController | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;

  function heard(): void {
    heardAt = Date.now();
    clearTimeout(watchdog);
    watchdog = setTimeout(() => request?.abort(), SILENCE_MS);
  }

  async function read(response: Response): Promise<void> {
    const parse = createParser((event) => {
      hooks.event(event);
      if (event.id) lastId = event.id;
      if (attempt >= 0) hooks.link({ state: "live" });
      attempt = -1;
    });
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      try {
        parse(decoder.decode(value, { stream: true }));
      } catch (error) {
        lastId = ""; // What was missed can't be mended by what follows.
        throw error;
      }
    }
  }

  async function run(): Promise<void> {
    retry = undefined;
    const mine = (request = new AbortController());
    if (attempt <= 0) hooks.link({ state: "connecting" });
    heard();
    let reason = "The event stream ended.";
    try {
      const headers = { Accept: "text/event-stream", ...hooks.headers(), ...(lastId && { "Last-Event-ID": lastId }) };
      const response = await hooks.fetch(url, { headers, signal: mine.signal, cache: "no-store" });
      if (response.status == 401) {
        clearTimeout(watchdog);
        hooks.link({ state: "locked" });
        await hooks.unlock();
        attempt = 0;
        if (!stopped) void run();
        return;
      }
      if (!response.ok || !response.body) throw Error(`The server answered ${response.status}.`);
      await read(response);
    } catch (error) {
      reason = mine.signal.aborted ? "Nothing was heard for a while." : error instanceof Error ? error.message : String(error);
    }
    mine.abort(); // Ends a stream that could not be understood.
    clearTimeout(watchdog);
    if (stopped) return;
    request = undefined;
    const ms = delay(Math.max(0, attempt++));
    if (attempt < 1) attempt = 1;
    hooks.link({ state: "gone", retryAt: Date.now() + ms, reason });
    retry = setTimeout(run, ms);
  }

  void run();
  return {
    wake() {
      if (retry !== undefined) {
        clearTimeout(retry);
        void run();
      } else if (request && Date.now() - heardAt > SILENCE_MS) request.abort(); // Timers of hidden tabs are late.
    },
    stop() {
      stopped = true;
      clearTimeout(retry);
      clearTimeout(watchdog);
      request?.abort();
    },
  };
}
