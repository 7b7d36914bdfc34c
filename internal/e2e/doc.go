// Package e2e tests jsbridge as a user has it: the real binary, pages in a real
// Chromium, and real MCP clients. It has tests only.
package e2e
