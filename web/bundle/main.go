// Command bundle builds the scripts that pages load, from src into dist.
//
// It runs in the folder web, by go generate, or in the one above. With -check it
// writes nothing and fails when a file in dist is not what src gives.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// entryPoints are the files a browser asks for by name.
var entryPoints = []string{"main.ts", "extras.ts", "tool-bus.ts", "connect.ts", "client.ts"}

// dashboard are the files of the page at /. It is the only one with code of others in it.
var dashboard = []string{"index.ts", "index.css"}

// licensed are the packages that are in it, in node_modules.
var licensed = []string{"preact", "@preact/signals"}

// inlined is pasted as a whole: one line, a function of the server's address and a connect string.
const inlined = "inline.ts"

// copied files go to dist as they are.
var copied = []string{"index.html"}

func main() {
	check := flag.Bool("check", false, "compare with the files in dist instead of writing them")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "web", "bundle")); err == nil {
		root = filepath.Join(root, "web")
	}
	files, err := build(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path, content := filepath.Join(root, "dist", name), files[name]
		if !check {
			errs = append(errs, os.WriteFile(path, content, 0o644))
			continue
		}
		committed, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(committed, content) {
			errs = append(errs, fmt.Errorf("dist/%s is not what src gives: run go generate ./web", name))
		}
	}
	return errors.Join(errs...)
}

// build returns the content of dist by file name.
func build(root string) (map[string][]byte, error) {
	files, err := bundle(root, api.FormatESModule, nil, entryPoints...)
	if err != nil {
		return nil, err
	}
	notice, err := licences(root)
	if err != nil {
		return nil, err
	}
	page, err := bundle(root, api.FormatESModule, map[string]string{"js": notice}, dashboard...)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, page)
	inline, err := bundle(root, api.FormatIIFE, nil, inlined)
	if err != nil {
		return nil, err
	}
	for name, content := range inline {
		line := bytes.TrimSpace(content)
		if bytes.ContainsAny(line, "\r\n") {
			return nil, fmt.Errorf("%s is more than one line", name)
		}
		files[name] = fmt.Appendf(nil, "((SERVER,TENANT)=>{%s})", line)
	}
	for _, name := range copied {
		content, err := os.ReadFile(filepath.Join(root, "src", name))
		if err != nil {
			return nil, err
		}
		files[name] = content
	}
	return files, nil
}

// licences is the comment that the licences of bundled packages ask for.
func licences(root string) (string, error) {
	var out strings.Builder
	for _, name := range licensed {
		text, err := os.ReadFile(filepath.Join(root, "node_modules", name, "LICENSE"))
		if err != nil {
			return "", fmt.Errorf("the packages of the dashboard are not here, run npm ci in web: %w", err)
		}
		fmt.Fprintf(&out, "/*! %s\n\n%s\n*/\n", name, strings.TrimSpace(strings.ReplaceAll(string(text), "*/", "")))
	}
	return out.String(), nil
}

func bundle(root string, format api.Format, banner map[string]string, names ...string) (map[string][]byte, error) {
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join("src", name))
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir:     root,
		EntryPoints:       paths,
		Outdir:            "dist",
		Bundle:            true,
		Format:            format,
		Platform:          api.PlatformBrowser,
		Target:            api.ES2022,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		LegalComments:     api.LegalCommentsNone,
		Charset:           api.CharsetUTF8,
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		Banner:            banner,
		Write:             false,
	})
	if len(result.Errors) > 0 {
		text := api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage})
		return nil, errors.New(strings.Join(text, "\n"))
	}
	files := make(map[string][]byte)
	for _, file := range result.OutputFiles {
		files[filepath.Base(file.Path)] = file.Contents
	}
	return files, nil
}
