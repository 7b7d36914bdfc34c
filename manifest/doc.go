// Package manifest turns what a page declares into checked tools, prompts and resources.
//
// A page sends one register_tools frame. [Parse] reads it and returns the tools that are fit to publish, each with a JSON
// Schema that every client accepts, the prompts and resources, and a list of problems for the rest: one bad tool never takes
// the others down. [PublishedNames] gives the tools the names that clients see, and [Tool.CheckArguments] checks and mends
// the arguments of a call before the page sees them; [Tool.CheckOutput] checks what comes back. [Resource.Published] and
// [Resource.Match] lead from a page's own URIs and templates to those of clients, and back.
//
// Everything here is pure data: no goroutines, no I/O, no shared state but a cache of compiled schemas. Whatever a page
// sends is taken for hostile. Sizes and nesting are bounded before anything is decoded, and a schema that could make a
// check run without end is not checked (see [Tool.SchemaProblem]).
package manifest
