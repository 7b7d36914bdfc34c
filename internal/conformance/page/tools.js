// The suite's tools, but for those of rounds.js.

import { audio, image, pause, resource, text } from "./content.js";

const content = [
  { name: "test_simple_text", description: "Returns a string.", fn: () => "A text, as simple as can be." },
  { name: "test_image_content", description: "Returns a picture.", fn: () => ({ content: [image] }) },
  { name: "test_audio_content", description: "Returns a sound.", fn: () => ({ content: [audio] }) },
  {
    name: "test_embedded_resource",
    description: "Returns a resource inside the result.",
    fn: () => ({ content: [resource("test://embedded-resource", "What the resource says.")] }),
  },
  {
    name: "test_multiple_content_types",
    description: "Returns a text, a picture and a resource.",
    fn: () => ({
      content: [text("Three kinds of content:"), image, resource("test://mixed-content-resource", '{"kind":"json"}', "application/json")],
    }),
  },
  {
    name: "test_error_handling",
    description: "Throws.",
    fn() {
      throw new Error("This tool throws, always.");
    },
  },
];

const during = [
  {
    name: "test_tool_with_logging",
    description: "Logs three messages while it runs.",
    async fn(_, ctx) {
      for (const message of ["begun", "half way", "done"]) {
        ctx.log("info", message);
        await pause(50);
      }
      return "Logged three messages.";
    },
  },
  {
    name: "test_tool_with_progress",
    description: "Reports its progress three times.",
    async fn(_, ctx) {
      for (const percent of [0, 50, 100]) {
        ctx.progress(percent, 100, `${percent} of 100`);
        await pause(50);
      }
      return "Reported three times.";
    },
  },
  {
    name: "test_reconnection",
    description: "Takes a moment. Whether its stream ends early is not a page's business.",
    async fn() {
      await pause(100);
      return "Still here.";
    },
  },
  {
    name: "test_logging_tool",
    description: "Logs one message, which only those get to see who asked for it.",
    fn(_, ctx) {
      ctx.log("info", "logged by test_logging_tool");
      return "Logged.";
    },
  },
];

const required = (name, description) => ({ [name]: { type: "string", description } });
const outcome = ({ action, content }) => `The user's answer: ${action}, ${JSON.stringify(content)}`;

const asking = [
  {
    name: "test_sampling",
    description: "Has the client's model answer a prompt.",
    params: required("prompt", "what to ask the model"),
    async fn({ prompt }, ctx) {
      const { content } = await ctx.sample({ messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 });
      return `The model's answer: ${[content].flat().map((c) => c.text).join("")}`;
    },
  },
  {
    name: "test_elicitation",
    description: "Asks the user for a name and an address.",
    params: required("message", "what the user is told"),
    fn: async ({ message }, ctx) =>
      outcome(
        await ctx.elicit(message, {
          type: "object",
          properties: {
            username: { type: "string", description: "a name" },
            email: { type: "string", format: "email", description: "an e-mail address" },
          },
          required: ["username", "email"],
        }),
      ),
  },
  {
    name: "test_elicitation_sep1034_defaults",
    description: "Asks with a default for each kind of field.",
    fn: async (_, ctx) =>
      outcome(
        await ctx.elicit("Correct what is wrong.", {
          type: "object",
          properties: {
            name: { type: "string", default: "John Doe" },
            age: { type: "integer", default: 30 },
            score: { type: "number", default: 95.5 },
            status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
            verified: { type: "boolean", default: true },
          },
        }),
      ),
  },
  {
    name: "test_elicitation_sep1330_enums",
    description: "Asks with each kind of choice.",
    fn: async (_, ctx) => {
      const plain = ["option1", "option2", "option3"];
      const titled = ["First", "Second", "Third"].map((title, i) => ({ const: `value${i + 1}`, title }));
      return outcome(
        await ctx.elicit("Choose.", {
          type: "object",
          properties: {
            untitledSingle: { type: "string", enum: plain },
            titledSingle: { type: "string", oneOf: titled },
            legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
            untitledMulti: { type: "array", items: { type: "string", enum: plain } },
            titledMulti: { type: "array", items: { anyOf: titled } },
          },
        }),
      );
    },
  },
  {
    name: "test_missing_capability",
    description: "Needs a client with sampling.",
    // What ctx.sample throws is what the client should hear.
    fn: async (_, ctx) => `The model's answer: ${JSON.stringify(await ctx.sample("Say something."))}`,
  },
  {
    name: "test_streaming_elicitation",
    description: "Reports progress, then asks the user.",
    async fn(_, ctx) {
      ctx.progress(1, 2);
      return outcome(await ctx.elicit("Go on?", { type: "object", properties: { ok: { type: "boolean" } } }));
    },
  },
];

/** Removes what has that name, or adds it. The arrays are read from window, where changes are noticed. */
function toggle(list, entry) {
  const at = list.findIndex(({ name }) => name === entry.name);
  if (at < 0) list.push(entry);
  else list.splice(at, 1);
  return `${entry.name} has ${at < 0 ? "come" : "gone"}.`;
}

const changing = [
  {
    name: "test_trigger_tool_change",
    description: "Adds a tool, or takes it away again.",
    fn: () => toggle(window.__mcpTools, { name: "test_transient_tool", description: "Comes and goes.", fn: () => "here" }),
  },
  {
    name: "test_trigger_prompt_change",
    description: "Adds a prompt, or takes it away again.",
    fn: () => toggle(window.__mcpPrompts, { name: "test_transient_prompt", description: "Comes and goes.", fn: () => "here" }),
  },
];

const schemas = [
  {
    name: "json_schema_2020_12_tool",
    description: "Has a schema that only JSON Schema 2020-12 knows all of.",
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
    fn: (args) => args,
  },
];

export const tools = [...content, ...during, ...asking, ...changing, ...schemas];
