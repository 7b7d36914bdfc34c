/** Runs the page's functions for the server and sends back what they return. */

import type { ToolContext } from "./context.ts";
import { toResult } from "./convert.ts";
import type { Additions } from "./extras.ts";
import { isObject, messageOf, readable } from "./readable.ts";
import { byteLength, encode, type AskKind, type Call, type CallError, type Retry, type Run } from "./wire.ts";

/** A declared tool. `fn` never leaves the page. */
export interface Tool {
  name: string;
  fn(args: object, ctx: ToolContext): unknown;
}

/** Sends a frame, unless it is too large for the server. */
export type Send = (frame: string) => boolean;

export interface Dispatch {
  /** Also answers it. */
  call(message: Run): Promise<void>;
  cancel(id: string, reason?: string): void;
  /** Aborts everything: the socket is gone, and answers with it. */
  reset(): void;
}

/** Names that the page script answers to itself. */
export const RESERVED = /^__(un)?register_tool/;

/**
 * `extras` fails when they can't be loaded. `limit` is the largest frame that the server takes, in bytes.
 * `over` hears which call has ended by itself; of one that is aborted, its signal tells.
 */
export function createDispatch(send: Send, tools: () => Tool[], extras: () => Promise<Additions>, limit: () => number, over: (id: string) => void): Dispatch {
  const running = new Map<string, AbortController>();

  function cancel(id: string, reason?: string): void {
    const controller = running.get(id);
    running.delete(id);
    controller?.abort(new DOMException(reason, "AbortError"));
  }

  async function run(message: Run, signal: AbortSignal): Promise<string> {
    const { id, progress } = message;
    const say: Send = (frame) => running.get(id)?.signal == signal && send(frame);
    // Only if it is used: a call waits for no extras that it does not need.
    const ask = (kind: AskKind) => async (...args: unknown[]): Promise<any> => (await extras()).ask(kind, args, id, signal, say);
    const { inputResponses, requestState } = message as Retry;
    const ctx: ToolContext = {
      signal,
      agent: { name: "", version: "", capabilities: {}, ...message.agent },
      progress(done, total, message) {
        if (progress !== false) say(encode({ type: "progress", id, progress: done, total, message }));
      },
      log(level, data) {
        say(encode({ type: "log", id, level, data: readable(data) }));
      },
      elicit: ask("elicit"),
      sample: ask("sample"),
      roots: ask("roots"),
      inputResponses,
      requestState,
    };
    const result = message.type == "call" ? toResult(await callTool(message, ctx), extras, limit()) : (await extras()).answer(message, ctx, limit());
    return encode({ type: "call_result", id, result: await result });
  }

  const callTool = async ({ name, args }: Call, ctx: ToolContext) =>
    findTool(name, RESERVED.test(name) ? (await extras()).reserved : tools()).fn(isObject(args) ? args : {}, ctx);

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
      over(id);
      if (!send(frame)) send(fail(`${byteLength(frame)} bytes are over the limit of ${limit()}: return less`));
    },
    reset() {
      running.forEach((_, id) => cancel(id, "connection lost"));
    },
  };
}

function findTool(name: string, tools: Tool[]): Tool {
  // Of equal names the server takes the last.
  const tool = tools.filter((tool) => tool.name === name).pop();
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
