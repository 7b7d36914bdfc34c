/**
 * Entry of /client.js, and of the npm package as `jsbridge/client`: for apps that have a build.
 * Nothing happens at import, and nothing at all outside a browser.
 */

import { installToolBus, type ToolOptions as BusOptions } from "./bus.ts";
import { createMcpConnect, type ConnectOptions, type McpConnect } from "./connect.ts";
import type { ToolContext } from "./dispatch.ts";

export { parseConnect, type Connect, type ConnectionInfo, type ConnectionState, type ConnectOptions, type McpConnect, type StateListener } from "./connect.ts";
export type { ToolContext } from "./dispatch.ts";

/** One parameter of a tool. Anything more is for `inputSchema`. */
export interface ToolParam {
  type: "string" | "number" | "integer" | "boolean" | "array" | "object";
  description?: string;
  /** May be left out. Default: false. */
  optional?: boolean;
  /** May be null. Default: false. */
  nullable?: boolean;
  enum?: readonly unknown[];
  default?: unknown;
  /** Of the elements of an array. */
  items?: ToolParam;
  /** Of an object. */
  properties?: Record<string, ToolParam>;
}

/** What an agent reads of a tool. All of it is optional, but no agent uses what it does not understand. */
export interface ToolOptions extends Omit<BusOptions, "params" | "origin"> {
  /** The parameters by name. Default: none. */
  params?: Record<string, ToolParam> | undefined;
}

/**
 * Runs in the page. `args` was checked against the tool's parameters. What it returns or resolves to
 * becomes the result: a text, anything that JSON can say, or an image; what it throws becomes the error.
 */
export type ToolFunction<Args = any> = (args: Args, ctx: ToolContext) => unknown;

/** Connects the page: makes the connection of the app and starts it. */
export function connectMcpBridge(options: ConnectOptions): McpConnect {
  const connection = createMcpConnect(options);
  connection.init();
  return connection;
}

/**
 * Declares a tool, before or after the page connects, in place of an earlier one of that name. Gives a
 * function that takes it back. A tool of that name in `window.__mcpTools` goes first.
 *
 * @throws TypeError without a name or a function.
 */
export function defineTool<Args = any>(name: string, fn: ToolFunction<Args>, options: ToolOptions = {}): () => void {
  if (typeof window != "object" || typeof document != "object") return () => {};
  return installToolBus().registerTool(name, fn, options);
}
