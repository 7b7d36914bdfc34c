/** Runs the page's functions for the server and sends back what they return. */

import { toResult } from "./convert.ts";
import type { Additions } from "./extras.ts";
import { isObject, messageOf, readable } from "./readable.ts";
import { byteLength, encode, type Call, type CallError } from "./wire.ts";

/** What a tool's function gets as its second argument. */
export interface ToolContext {
  /** Aborted when the agent cancels or the connection ends. */
  signal: AbortSignal;
  progress(done: number, total?: number, message?: string): void;
  log(level: string, data: unknown): void;
}

/** A declared tool. `fn` never leaves the page. */
export interface Tool {
  name: string;
  fn(args: object, ctx: ToolContext): unknown;
}

/** Sends a frame, unless it is too large for the server. */
export type Send = (frame: string) => boolean;

export interface Dispatch {
  call(message: Call): Promise<void>;
  cancel(id: string, reason?: string): void;
  /** Aborts everything: the socket is gone, and answers with it. */
  reset(): void;
}

/** Names that the page script answers to itself. */
export const RESERVED = /^__(un)?register_tool/;

/** `extras` fails when they can't be loaded. `limit` is the largest frame that the server takes, in bytes. */
export function createDispatch(send: Send, tools: () => Tool[], extras: () => Promise<Additions>, limit: () => number): Dispatch {
  const running = new Map<string, AbortController>();

  function cancel(id: string, reason?: string): void {
    const controller = running.get(id);
    running.delete(id);
    controller?.abort(new DOMException(reason, "AbortError"));
  }

  async function run({ id, name, args, progress }: Call, signal: AbortSignal): Promise<string> {
    const say: Send = (frame) => running.get(id)?.signal == signal && send(frame);
    const result = await findTool(name, RESERVED.test(name) ? (await extras()).reserved : tools()).fn(isObject(args) ? args : {}, {
      signal,
      progress(done, total, message) {
        if (progress !== false) say(encode({ type: "progress", id, progress: done, total, message }));
      },
      log(level, data) {
        say(encode({ type: "log", id, level, data: readable(data) }));
      },
    });
    return encode({ type: "call_result", id, result: await toResult(result, extras, limit()) });
  }

  return {
    cancel,
    async call(message) {
      const { id } = message;
      if (running.has(id)) return;
      const controller = new AbortController();
      running.set(id, controller);
      const fail = (error: unknown) => encode({ type: "call_result", id, error: describeError(error) });
      const frame = await run(message, controller.signal).catch(fail);
      // Cancelled calls and those of an earlier socket have nobody waiting.
      if (running.get(id) != controller) return;
      running.delete(id);
      if (!send(frame)) send(fail(`${byteLength(frame)} bytes are over the limit of ${limit()}: return less`));
    },
    reset() {
      running.forEach((_, id) => cancel(id, "connection lost"));
    },
  };
}

function findTool(name: string, tools: Tool[]): Tool {
  const tool = tools.find((tool) => tool.name === name);
  if (!tool) throw Error(`this page has no tool ${name}, only: ${tools.map((tool) => tool.name)}`);
  return tool;
}

/** Whatever was thrown, with its causes. Always has a message to read. */
export function describeError(thrown: unknown): CallError {
  // A plain copy, whose getters can't throw any more.
  const error: any = readable(thrown);
  if (typeof error?.message != "string") return { message: typeof error == "string" && error ? error : "threw " + JSON.stringify(error) };
  let message = error.message || error.name;
  for (let depth = 0, cause = error.cause; depth < 5 && cause != null; depth++, cause = cause.cause) message += "; caused by: " + messageOf(cause);
  return { message, name: error.name, code: error.code && String(error.code) };
}
