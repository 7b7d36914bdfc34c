/** Binary values and pictures, made into what the wire can hold. */

let blobs = 0;

/** What a picture is, by tag. */
const PICTURE = /^(HTMLCanvasElement|OffscreenCanvas|ImageBitmap|ImageData)$/;

/**
 * A picture becomes a data URL, text in a Blob text, and other binary an embedded
 * resource: the server makes an image or audio item of what is one by its first bytes.
 * What exceeds `limit` bytes is refused before it is read.
 */
export async function toContent(value: any, tag: string, limit: number): Promise<unknown> {
  if (PICTURE.test(tag)) return fromPicture(value, tag);
  const size = value.size ?? value.byteLength;
  if (size > limit) throw Error(`${tag} of ${size} bytes, the limit is ${limit}`);
  const mimeType: string = (value.type || "").split(";")[0];
  if (/^text|[/+](json|xml)$/.test(mimeType)) return value.text();
  const bytes = value.buffer ? new Uint8Array(value.buffer, value.byteOffset, size) : new Uint8Array(value.arrayBuffer ? await value.arrayBuffer() : value);
  let binary = "";
  for (let i = 0; i < size; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { content: [{ type: "resource", resource: { uri: "page://blob/" + ++blobs, mimeType: mimeType || undefined, blob: btoa(binary) } }] };
}

/**
 * By way of a canvas and toDataURL: unlike toBlob it needs no idle time, which
 * hidden tabs never get. A tainted canvas throws here, with the browser's message.
 */
function fromPicture(value: any, tag: string): string {
  if (!value.toDataURL) {
    const canvas = Object.assign(document.createElement("canvas"), { width: value.width, height: value.height });
    const context: any = canvas.getContext("2d");
    if (tag == "ImageData") context.putImageData(value, 0, 0);
    else context.drawImage(value, 0, 0);
    value = canvas;
  }
  return value.toDataURL();
}
