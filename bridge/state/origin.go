package state

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// maxHost is the longest name in the DNS, in bytes.
const maxHost = 253

var (
	chromeID = regexp.MustCompile(`^[a-p]{32}$`)
	mozID    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	hostName = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$`)
	scheme   = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)
	number   = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)\.?$`)
)

// ParseOrigin gives the origin of a page's address, or of an origin, as browsers
// send it in the Origin header: scheme and host in lower case, no default port,
// no path. It takes http, https, chrome-extension and moz-extension. An error
// is a sentence that says what to write instead.
func ParseOrigin(s string) (string, error) {
	s = strings.TrimSpace(s)
	before, rest, ok := strings.Cut(s, "://")
	before = strings.ToLower(before)
	if before == "null" || strings.HasPrefix(before, "file:") || before == "file" {
		return "", errors.New(`pages without an origin of their own (file:// or sandboxed, which say "null") can only be allowed by the flag --allow-origin null`)
	}
	// A backslash ends the host as a slash does, for browsers.
	authority := rest
	if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
		authority = rest[:i]
	}
	switch {
	case strings.Contains(before+authority, "*"):
		return "", fmt.Errorf("%.100q has a wildcard; write each origin in full, as in https://app.example", s)
	case !ok || !scheme.MatchString(before):
		return "", fmt.Errorf("%.100q has no scheme; write it as in https://app.example", s)
	case strings.Contains(authority, "@"):
		return "", fmt.Errorf("%.100q has a user name in it; write the origin without, as in https://app.example", s)
	case authority == "":
		return "", fmt.Errorf("%.100q names no host; write it as in https://app.example", s)
	}
	switch before {
	case "http", "https":
		return webOrigin(s, before, strings.ToLower(authority))
	case "chrome-extension":
		if id := strings.ToLower(authority); chromeID.MatchString(id) {
			return before + "://" + id, nil
		}
		return "", fmt.Errorf("%.100q names no extension; write chrome-extension:// and the 32 letters that the browser's list of extensions shows as its ID", s)
	case "moz-extension":
		if id := strings.ToLower(authority); mozID.MatchString(id) {
			return before + "://" + id, nil
		}
		return "", fmt.Errorf("%.100q names no extension; write moz-extension:// and the internal UUID that about:debugging shows for it", s)
	}
	return "", fmt.Errorf("%.100q is no page's origin; write one that begins with https://, http://, chrome-extension:// or moz-extension://", s)
}

// webOrigin takes the authority in lower case.
func webOrigin(s, scheme, authority string) (string, error) {
	host, port := authority, ""
	// The colons of an IPv6 address are inside of brackets.
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	host, err := canonicalHost(s, host)
	if err != nil {
		return "", err
	}
	if port == "" {
		return scheme + "://" + host, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("%.100q has a port that is no number up to 65535; write it as in https://app.example:8443", s)
	}
	if scheme == "http" && n == 80 || scheme == "https" && n == 443 {
		return scheme + "://" + host, nil
	}
	return fmt.Sprintf("%s://%s:%d", scheme, host, n), nil
}

// canonicalHost refuses what browsers would write in another way, unless that
// way is sure.
func canonicalHost(s, host string) (string, error) {
	if strings.HasPrefix(host, "[") {
		addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || !strings.HasSuffix(host, "]") {
			return "", fmt.Errorf("%.100q has no valid IPv6 address; write it as in http://[2001:db8::1]:3000", s)
		}
		if addr.Is4In6() { // browsers write all of it in hexadecimal
			b := addr.As16()
			return fmt.Sprintf("[::ffff:%x:%x]", uint(b[12])<<8|uint(b[13]), uint(b[14])<<8|uint(b[15])), nil
		}
		return "[" + addr.String() + "]", nil
	}
	for i := range len(host) {
		if host[i] >= 0x80 {
			return "", fmt.Errorf("%.100q has a host that is not ASCII; write its xn--… form, which the page shows as location.origin", s)
		}
	}
	if !hostName.MatchString(host) || len(host) > maxHost {
		return "", fmt.Errorf("%.100q has no valid host name; write it as in https://app.example", s)
	}
	if number.MatchString(host) { // such a host is an IPv4 address or nothing
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is4() {
			return "", fmt.Errorf("%.100q has no valid IPv4 address; write it as four decimal numbers, as in http://192.0.2.1:3000", s)
		}
	}
	return host, nil
}

// IsLoopback tells whether an origin, in the form ParseOrigin gives, is a server
// on this machine: an http or https one under a name that browsers resolve to
// loopback themselves (let localhost be localhost, RFC 6761 section 6.3) or a
// loopback address. Such origins need no approval.
func IsLoopback(origin string) bool {
	scheme, host, _ := strings.Cut(origin, "://")
	if scheme != "http" && scheme != "https" {
		return false
	}
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
