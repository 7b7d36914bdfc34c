package agent

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// media makes an image or audio item of data, or nil of what is neither. It goes
// by the bytes, not by what the page calls them: a model's API refuses the whole
// request over an image whose type is wrong.
// An audio type is believed of containers that audio shares with video, and of bare
// MP3 frames.
func media(data []byte, called string) mcp.Content {
	sniffed := http.DetectContentType(data)
	switch sniffed {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return &mcp.ImageContent{Data: data, MIMEType: sniffed}
	case "audio/mpeg", "audio/aiff":
		return &mcp.AudioContent{Data: data, MIMEType: sniffed}
	case "audio/wave":
		return &mcp.AudioContent{Data: data, MIMEType: "audio/wav"}
	case "application/ogg":
		return &mcp.AudioContent{Data: data, MIMEType: "audio/ogg"}
	}
	if bytes.HasPrefix(data, []byte("fLaC")) {
		return &mcp.AudioContent{Data: data, MIMEType: "audio/flac"}
	}
	mp3Frame := len(data) > 1 && data[0] == 0xff && data[1]&0xe0 == 0xe0
	if strings.HasPrefix(called, "audio/") && (sniffed == "video/webm" || sniffed == "video/mp4" || mp3Frame) {
		return &mcp.AudioContent{Data: data, MIMEType: called}
	}
	return nil
}

// textOrMedia takes a text that as a whole is the data: URL of an image or audio
// for that, as canvas.toDataURL gives it. What is no use as one is named, not
// shown: it would only fill the agent's context.
func textOrMedia(text string) *mcp.CallToolResult {
	head, body, ok := strings.Cut(text, ",")
	mime, ok2 := strings.CutPrefix(strings.ToLower(head), "data:")
	if !ok || !ok2 || len(head) > 200 || !strings.HasPrefix(mime, "image/") && !strings.HasPrefix(mime, "audio/") {
		return textResult(text)
	}
	mime, isBase64 := strings.CutSuffix(mime, ";base64")
	if isBase64 {
		// A blank was a plus sign once; padding is often left out.
		body = strings.TrimRight(strings.ReplaceAll(body, " ", "+"), "=")
		if data, err := base64.RawStdEncoding.DecodeString(body); err == nil {
			if item := media(data, mime); item != nil {
				return &mcp.CallToolResult{Content: []mcp.Content{item}}
			}
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{unusable(mime, len(body))}}
}

func unusable(mime string, size int) *mcp.TextContent {
	return &mcp.TextContent{Text: fmt.Sprintf("[left out: data of %d bytes that is called %.60q, but is no PNG, JPEG, GIF or WebP image and no WAV, MP3, OGG, FLAC or AIFF audio]", size, mime)}
}
