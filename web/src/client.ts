/**
 * Entry of /client.js, and of the npm package as `jsbridge/client`: for apps that have a build.
 * Nothing happens at import, and nothing at all outside a browser.
 */

import { installToolBus, type PromptOptions, type ResourceOptions, type ToolBus, type ToolOptions as BusOptions } from "./bus.ts";
import { createMcpConnect, type ConnectOptions, type McpConnect } from "./connect.ts";
import type { ResourceContext, ToolContext } from "./context.ts";

export type { CompletedValues, Completer, PromptArgument, PromptOptions, ResourceOptions } from "./bus.ts";
export { parseConnect, type Connect, type ConnectionInfo, type ConnectionState, type ConnectOptions, type McpConnect, type StateListener } from "./connect.ts";
export type { Agent, AgentCapabilities, ElicitResult, ResourceContext, Root, SampleRequest, SampleResult, ToolContext } from "./context.ts";

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

/**
 * Runs in the page; each argument is a text. It returns or resolves to a text or an MCP content item, which becomes one message of
 * the user; an array of these and of messages `{role: "user" | "assistant", content}`; or `{messages, description?, _meta?}`.
 */
export type PromptFunction<Args = any> = (args: Args, ctx: ToolContext) => unknown;

/**
 * Runs in the page. `variables` are those of the template, `ctx.uri` is what was asked for. It returns or resolves to text, a
 * Blob, ArrayBuffer, typed array, canvas or other picture, any other value that JSON can hold, or MCP's
 * `{contents: [{uri?, mimeType?, text | blob}], _meta?}`.
 */
export type ResourceFunction<Variables = any> = (variables: Variables, ctx: ResourceContext) => unknown;

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

/**
 * Declares a prompt, as {@link defineTool} does a tool: a text or messages that a person can pick in the client.
 *
 * @throws TypeError without a name or a function.
 */
export function definePrompt<Args = Record<string, string>>(name: string, fn: PromptFunction<Args>, options: PromptOptions = {}): () => void {
  if (typeof window != "object" || typeof document != "object") return () => {};
  return busFor("registerPrompt").registerPrompt(name, fn, options);
}

/**
 * Declares a resource, as {@link defineTool} does a tool: something that clients can read and watch. A text with `{...}` is a
 * URI template (RFC 6570). What is relative, such as `cart` or `item/{id}`, is published below the page's prefix, as
 * `page://<prefix>/cart`; what is absolute is published as it is. `window.__mcpResourceUpdated(uri)` tells that it has changed.
 *
 * @throws TypeError without a URI or a function.
 */
export function defineResource<Variables = Record<string, string>>(uriOrTemplate: string, fn: ResourceFunction<Variables>, options: ResourceOptions = {}): () => void {
  if (typeof window != "object" || typeof document != "object") return () => {};
  return busFor("registerResource").registerResource(uriOrTemplate, fn, options);
}

/** The page may have brought a bus of its own, or an older one. */
function busFor(method: "registerPrompt" | "registerResource"): ToolBus {
  const bus = installToolBus();
  if (typeof bus[method] != "function") throw new TypeError("this page's tool bus has no " + method);
  return bus;
}
