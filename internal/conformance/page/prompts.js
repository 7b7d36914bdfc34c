import { image, resource } from "./content.js";

const user = (content) => ({ role: "user", content });

export const prompts = [
  { name: "test_simple_prompt", description: "One message, no arguments.", fn: () => "A prompt, as simple as can be." },
  {
    name: "test_prompt_with_arguments",
    title: "Prompt with arguments",
    description: "A message made of two arguments.",
    arguments: [
      { name: "arg1", description: "the first", required: true, complete: ["paris", "park", "party", "tested"] },
      { name: "arg2", description: "the second", required: true, complete: async (value) => [`${value}1`, `${value}2`] },
    ],
    fn: ({ arg1, arg2 }) => `The arguments are ${arg1} and ${arg2}.`,
  },
  {
    name: "test_prompt_with_embedded_resource",
    description: "A resource, and what to do with it.",
    arguments: [{ name: "resourceUri", description: "the resource's URI", required: true }],
    fn: ({ resourceUri }) => [user(resource(resourceUri, "What the resource says.")), user("Sum up the resource above.")],
  },
  {
    name: "test_prompt_with_image",
    description: "A picture, and what to do with it.",
    fn: () => ({ description: "A picture to describe.", messages: [user(image), user("Describe the picture above.")] }),
  },
];
