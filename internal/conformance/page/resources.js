import { bytes, PIXEL } from "./content.js";

export const resources = [
  { uri: "test://static-text", name: "static-text", description: "A text.", mimeType: "text/plain", fn: () => "What the text says." },
  {
    uri: "test://static-binary",
    name: "static-binary",
    description: "A picture.",
    mimeType: "image/png",
    fn: () => new Blob([bytes(PIXEL)], { type: "image/png" }),
  },
  {
    uriTemplate: "test://template/{id}/data",
    name: "template",
    description: "The data of one id.",
    mimeType: "application/json",
    complete: { id: ["123", "456"] },
    fn: ({ id }) => ({ id, data: `The data of ${id}` }),
  },
  {
    uri: "test://watched-resource",
    name: "watched-resource",
    description: "Changes every three seconds while somebody watches.",
    mimeType: "text/plain",
    subscribe(notify) {
      const timer = setInterval(notify, 3000);
      return () => clearInterval(timer);
    },
    fn: () => `It is ${new Date().toISOString()}.`,
  },
];
