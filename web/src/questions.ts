/** What a page asks the client during a call: its human, its model, or for its folders. */

import { toMessages } from "./answers.ts";
import type { Send } from "./dispatch.ts";
import { isObject, readable } from "./readable.ts";
import { encode, type Answer, type AskKind } from "./wire.ts";

export interface Questions {
  /** Sends a question by `say`, which tells whether the call still runs. Resolves to MCP's result. */
  ask(kind: AskKind, args: unknown[], callId: string, signal: AbortSignal, say: Send): Promise<unknown>;
  answer(message: Answer): void;
  /** A call has ended by itself: nobody answers any more. */
  over(callId: string): void;
}

/** What a page that sets no limit gets, in tokens. */
const MAX_TOKENS = 1000;

interface Open {
  callId: string;
  settle(error: unknown, result?: unknown): void;
}

export function createQuestions(): Questions {
  const open = new Map<string, Open>();
  let count = 0;

  return {
    async ask(kind, args, callId, signal, say) {
      const params = readable(await PARAMS[kind](...args));
      signal.throwIfAborted();
      const id = "q" + ++count;
      const result: any = await new Promise((resolve, reject) => {
        const settle: Open["settle"] = (error, result) => {
          open.delete(id);
          signal.removeEventListener("abort", abort);
          if (error) reject(error);
          else resolve(result);
        };
        const abort = () => settle(signal.reason);
        signal.addEventListener("abort", abort);
        open.set(id, { callId, settle });
        if (!say(encode({ type: "ask", id, callId, kind, params }))) settle(Error("not asked: the call is over, or the question is too large for the server"));
      });
      return kind == "roots" ? (result?.roots ?? result ?? []) : result;
    },
    answer({ id, result, error }) {
      open.get(id)?.settle(error && toError(error), result);
    },
    over(callId) {
      for (const { callId: of, settle } of open.values()) if (of == callId) settle(Error("the call ended before this was answered"));
    },
  };
}

/** MCP's params from what the functions of ctx are given. */
const PARAMS: Record<AskKind, (...args: any[]) => unknown> = {
  elicit(message, target) {
    if (isObject(message)) return message;
    if (typeof message != "string") throw new TypeError("elicit needs a message, or MCP's params");
    // The id is what a client can be told of later.
    if (typeof target == "string" || target instanceof URL) return { mode: "url", message, url: new URL(target, location.href).href, elicitationId: newId() };
    return { message, requestedSchema: { type: "object", properties: {}, ...target } };
  },
  async sample(request) {
    if (typeof request == "string") request = { messages: request };
    if (!isObject(request) || request.messages == null) throw new TypeError("sample needs a text, or {messages}");
    return { maxTokens: MAX_TOKENS, ...request, messages: await toMessages(request.messages, Infinity, true) };
  },
  roots: () => ({}),
};

// Not randomUUID, which plain http pages lack.
const newId = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

/** With `name` and `code`, if the server gave them, so that a page can tell what is wrong. */
const toError = ({ message, ...rest }: NonNullable<Answer["error"]>): Error => Object.assign(Error(message), rest);
