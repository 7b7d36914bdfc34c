// Content items that tools, prompts and resources share.

/** One pixel, PNG. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mOQz38NAAIqAXpGbxguAAAAAElFTkSuQmCC";
/** Four samples of silence, WAV. */
const SILENCE = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQgAAAAAAAAAAAAAAA==";

export const text = (text) => ({ type: "text", text });
export const image = { type: "image", data: PIXEL, mimeType: "image/png" };
export const audio = { type: "audio", data: SILENCE, mimeType: "audio/wav" };
export const resource = (uri, text, mimeType = "text/plain") => ({ type: "resource", resource: { uri, mimeType, text } });

/** The bytes of a base64 text, and back. */
export const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
export const base64 = (bytes) => btoa(String.fromCharCode(...bytes));

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));
