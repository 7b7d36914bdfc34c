/** What a page has for agents besides tools: prompts, resources, completions, and questions of its own. */

import { completions, toContents, toPrompt } from "./answers.ts";
import type { ToolBus } from "./bus.ts";
import { createCatalog } from "./catalog.ts";
import type { ToolContext } from "./context.ts";
import type { Host } from "./extras.ts";
import { createQuestions, type Questions } from "./questions.ts";
import { attempt, isObject } from "./readable.ts";
import type { Declared } from "./tools.ts";
import { createWatches } from "./watches.ts";
import type { Call, Complete, Run, ServerMessage } from "./wire.ts";

/** What it adds to a bridge. */
export interface Offerings extends Pick<Questions, "ask" | "over"> {
  /** What the page declares besides tools. Never throws. */
  declare(): Declared;
  /** Runs what is asked for, unless it is a tool, and gives the result for the wire: one of at most about `limit` bytes. */
  answer(message: Exclude<Run, Call>, ctx: ToolContext, limit: number): Promise<unknown>;
  /** Takes any other message, or none. */
  receive(message: ServerMessage | null | undefined): void;
  /** The socket is gone. */
  reset(): void;
}

export function createOfferings({ signal, send, run }: Pick<Host, "signal" | "send" | "run">, bus: ToolBus): Offerings {
  const catalog = createCatalog(bus);
  const watches = createWatches(catalog.resources, send);
  const { ask, answer, over } = createQuestions();

  // For the page, and for its tool bus.
  const tell = (window.__mcpResourceUpdated = (uri) => watches.updated(uri));
  signal.addEventListener("abort", () => {
    if (window.__mcpResourceUpdated == tell) window.__mcpResourceUpdated = undefined;
  });

  function complete({ ref, argument, context }: Complete, signal: AbortSignal): Promise<unknown> {
    const { name, value } = argument;
    const given = context?.arguments ?? {};
    if (ref.type == "ref/resource") {
      const { complete } = catalog.find("resource", ref.uri);
      return completions(isObject(complete) && Object.hasOwn(complete, name) ? complete[name] : undefined, value, given, signal);
    }
    const prompt = catalog.find("prompt", ref.name);
    const found = [...(prompt.arguments ?? [])].find((one) => attempt(() => one.name === name));
    return completions(found?.complete, value, given, signal);
  }

  return {
    ask,
    over,
    declare() {
      // After it was read, since it runs the page's functions.
      queueMicrotask(watches.refresh);
      return catalog.declare();
    },
    async answer(message, ctx, limit) {
      switch (message.type) {
        case "get_prompt": {
          const prompt = catalog.find("prompt", message.name);
          return toPrompt(await prompt.fn(isObject(message.arguments) ? message.arguments : {}, ctx), limit);
        }
        case "read_resource": {
          const { uri, uriTemplate, variables } = message;
          const resource = catalog.find("resource", uriTemplate ?? uri);
          const value = await resource.fn(isObject(variables) ? variables : {}, { ...ctx, uri });
          const { mimeType } = resource;
          return toContents(value, limit, typeof mimeType == "string" ? mimeType : undefined);
        }
        case "complete":
          return complete(message, ctx.signal);
      }
    },
    receive(message) {
      switch (message?.type) {
        case "get_prompt":
        case "read_resource":
        case "complete":
          return run(message);
        case "subscribe":
          return watches.start(message.uri);
        case "unsubscribe":
          return watches.stop(message.uri);
        case "answer":
          return answer(message);
      }
    },
    reset: watches.reset,
  };
}
