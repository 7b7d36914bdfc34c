// Command jsbridge turns the functions of open web pages into MCP tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	floor := make([]byte, heapFloor) // never touched, so it takes no memory
	code := start()
	runtime.KeepAlive(floor)
	os.Exit(code)
}

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
}

// run is the whole program. It returns the exit code: 0, 1 for a failure, 2 for
// wrong usage.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	root := rootCommand(env)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "jsbridge: %v\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "jsbridge: %v\n", err)
	return 1
}

// A usageError is the caller's: wrong flags, arguments or variables.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func rootCommand(env func(string) (string, bool)) *cobra.Command {
	root := serveCommand()
	root.Use = "jsbridge"
	root.Short = "turns the functions of open web pages into MCP tools"
	root.Long = `jsbridge stands between an MCP client and web pages that are open in a browser:
a page connects out to it, and the page's functions become tools of the client.

Without a command it serves. Each flag has a variable: --max-tools is
JSBRIDGE_MAX_TOOLS. PORT, TENANT_EMPTY_TIMEOUT_MS and TENANT_IDLE_TIMEOUT_MS
are honoured as well.`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	serve := serveCommand()
	demo := demoCommand()
	version := &cobra.Command{
		Use: "version", Short: "prints the version", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "jsbridge "+buildVersion())
			return err
		},
	}
	root.AddCommand(serve, demo, allowCommand(), version)
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return fromEnv(c, env) }
	return root
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown command or argument %q; see %s --help", args[0], c.CommandPath())}
	}
	return nil
}

// fromEnv sets the flags that were not given from their variables. Those of
// other commands than serve have the command's name in front, unless the flag's
// annotation ENV names its variables. One that ends in _MS counts milliseconds.
func fromEnv(c *cobra.Command, env func(string) (string, bool)) error {
	prefix := "JSBRIDGE_"
	if c.HasParent() && c.Name() != "serve" {
		prefix += strings.ToUpper(c.Name()) + "_"
	}
	flags := c.Flags()
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		names, own := f.Annotations["ENV"]
		if !own {
			names = []string{prefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))}
		}
		for _, name := range names {
			v, ok := env(name)
			if !ok || v == "" {
				continue
			}
			if strings.HasSuffix(name, "_MS") {
				if _, err := strconv.ParseUint(v, 10, 32); err != nil {
					errs = append(errs, fmt.Errorf("the variable %s must be a number of milliseconds, not %q", name, v))
					return
				}
				v += "ms"
			}
			if err := flags.Set(f.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("the variable %s: %w", name, err))
			}
			return
		}
	})
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	return nil
}

// newLogger writes to stderr, as every log line does, in the format text or json.
func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError{fmt.Errorf("--log-level: %q is none of debug, info, warn, error", level)}
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format: %q is neither text nor json", format)}
}

// buildVersion is what the Go toolchain stamped into the binary.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				version += "-" + s.Value[:12]
			}
		}
	}
	return version
}
