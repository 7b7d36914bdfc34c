/** What a call gave. It is a page's: no markup, no address, no vector image of it is ever taken as such. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { isObject } from "./toolfile.ts";
import { bytes } from "./text.ts";
import { Tree } from "./tree.tsx";
import type { ToolResult } from "./types.ts";
import { Long, Text } from "./ui.tsx";

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const SOUNDS = ["audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3", "audio/mp4", "audio/aac", "audio/ogg", "audio/webm", "audio/flac"];
const MAX_ITEMS = 100;

/** The kind of media that a browser may show, without parameters; or "". */
export function mediaType(given: unknown): string {
  const type = typeof given == "string" ? given.split(";")[0]!.trim().toLowerCase() : "";
  return IMAGES.includes(type) || SOUNDS.includes(type) ? type : "";
}

/** Undefined for what is not base64. */
export function decodeBase64(text: unknown): Uint8Array<ArrayBuffer> | undefined {
  if (typeof text != "string") return undefined;
  try {
    const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    const out = new Uint8Array(binary.length);
    for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
    return out;
  } catch {
    return undefined;
  }
}

export function Result({ result }: { result: ToolResult }) {
  const content = Array.isArray(result.content) ? result.content : [];
  const structured = result.structuredContent;
  const items = content.filter((item) => !repeats(item, structured));
  return (
    <div class="result">
      {structured !== undefined && <Tree value={structured} open />}
      {items.slice(0, MAX_ITEMS).map((item, i) => (
        <Item key={i} item={item} />
      ))}
      {items.length > MAX_ITEMS && <p class="soft">{items.length - MAX_ITEMS} more items are not shown.</p>}
      {!items.length && structured === undefined && <p class="soft">The result is empty.</p>}
    </div>
  );
}

/** Structured results come as text as well. */
function repeats(item: unknown, structured: unknown): boolean {
  if (structured === undefined || !isObject(item) || item.type !== "text" || typeof item.text != "string") return false;
  try {
    return JSON.stringify(JSON.parse(item.text)) === JSON.stringify(structured);
  } catch {
    return false;
  }
}

function Item({ item }: { item: unknown }) {
  if (!isObject(item)) return <Tree value={item} open />;
  switch (item.type) {
    case "text":
      if (typeof item.text == "string") return <TextItem text={item.text} />;
      break;
    case "image":
    case "audio":
      return <Media data={item.data} type={item.mimeType} />;
    case "resource":
      if (isObject(item.resource)) return <Embedded resource={item.resource} />;
      break;
    case "resource_link":
      return (
        <p>
          Resource <Text value={String(item.title ?? item.name ?? "")} /> <Text class="mono" value={String(item.uri)} />
        </p>
      );
  }
  return <Tree value={item} open />;
}

function TextItem({ text }: { text: string }) {
  if (text == "") return <p class="soft">An empty text.</p>;
  const parsed = text.length < 1_000_000 && /^\s*[[{]/.test(text) ? parse(text) : undefined;
  return parsed === undefined ? <Long value={text} max={4000} mono /> : <Tree value={parsed} open />;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function Embedded({ resource }: { resource: Record<string, unknown> }) {
  return (
    <figure class="embedded">
      <figcaption>
        Resource <Text class="mono" value={String(resource.uri ?? "")} /> <Text class="soft" value={String(resource.mimeType ?? "")} max={60} />
      </figcaption>
      {typeof resource.text == "string" ? <Long value={resource.text} max={4000} mono /> : <Media data={resource.blob} type={resource.mimeType} />}
    </figure>
  );
}

function Media({ data, type }: { data: unknown; type: unknown }) {
  const named = typeof type == "string" && type ? type : "unknown type";
  const known = mediaType(type);
  const [media, setMedia] = useState<{ url: string; size: number } | undefined>();
  const [failed, setFailed] = useState(false);
  const content = useMemo(() => decodeBase64(data), [data]);
  useEffect(() => {
    setFailed(false);
    if (!known || !content) return setMedia(undefined);
    const url = URL.createObjectURL(new Blob([content], { type: known }));
    setMedia({ url, size: content.length });
    return () => URL.revokeObjectURL(url);
  }, [data, known]);
  if (!content) return <p class="bad">Data of <Text value={named} max={60} /> that is not base64.</p>;
  if (/^image\/svg/i.test(named)) {
    return (
      <figure class="embedded">
        <figcaption>An SVG image, shown as its source</figcaption>
        <Long value={new TextDecoder().decode(content)} max={2000} mono />
      </figure>
    );
  }
  if (!known || failed) return <p class="soft">{bytes(content.length)} of <Text value={named} max={60} />, which is not shown here.</p>;
  if (!media) return null;
  return (
    <figure class="media">
      {known.startsWith("image/") ? (
        <img src={media.url} alt={`The result: an image of type ${known}`} onError={() => setFailed(true)} />
      ) : (
        <audio src={media.url} controls aria-label={`The result: sound of type ${known}`} onError={() => setFailed(true)} />
      )}
      <figcaption>
        {known}, {bytes(media.size)}
      </figcaption>
    </figure>
  );
}
