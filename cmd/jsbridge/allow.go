package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jsbridge/bridge/state"
)

// allowCommand edits the state file, which a running server watches: it needs
// no server, and no way for other programs to approve anything through one.
func allowCommand() *cobra.Command {
	var path string
	var list, remove bool
	c := &cobra.Command{
		Use:   "allow <origin>...",
		Short: "lets the pages of an origin connect under names of their own",
		Long: `A page that connects under a name or to a channel, rather than with a snippet of
your agent, waits until you approve its origin. This command approves origins,
now and for the time to come. Pages on this machine (localhost) need no approval.`,
		Example: `  jsbridge allow https://app.example
  jsbridge allow --remove https://app.example
  jsbridge allow --list`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case list && (remove || len(args) > 0):
				return usageError{errors.New("--list goes alone")}
			case !list && len(args) == 0:
				return usageError{fmt.Errorf("name an origin, as in %s https://app.example", c.CommandPath())}
			case path == "":
				return usageError{errors.New("there is no usual place for the state file here; name one with --state")}
			}
			origins, err := parseOrigins(args)
			if err != nil {
				return err
			}
			log, err := newLogger(c.ErrOrStderr(), "warn", "text")
			if err != nil {
				return err
			}
			f, err := state.Open(path, log)
			if err != nil {
				return err
			}
			switch {
			case list:
				return listOrigins(c.OutOrStdout(), f)
			case remove:
				return removeOrigins(c.OutOrStdout(), f, origins)
			}
			return allowOrigins(c.OutOrStdout(), f, origins)
		},
	}
	c.Flags().BoolVar(&list, "list", false, "prints the allowed origins")
	c.Flags().BoolVar(&remove, "remove", false, "takes the approval back")
	stateFlag(c.Flags(), &path)
	return c
}

// stateFlag is the same for each command that uses the state file, and so is
// its variable.
func stateFlag(f *pflag.FlagSet, path *string) {
	usual, _ := state.DefaultPath() // "" where there is no configuration folder, as in a container
	f.StringVar(path, "state", usual, "file of what outlives the server, such as approved origins (JSBRIDGE_STATE)")
	_ = f.SetAnnotation("state", "ENV", []string{"JSBRIDGE_STATE"}) // fails for unknown flags only
}

// parseOrigins takes all or none, so that a slip in the last one leaves nothing
// half done.
func parseOrigins(args []string) ([]string, error) {
	var origins []string
	var errs []error
	for _, arg := range args {
		origin, err := state.ParseOrigin(arg)
		if err != nil {
			errs = append(errs, err)
		}
		origins = append(origins, origin)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, usageError{err}
	}
	return origins, nil
}

func allowOrigins(w io.Writer, f *state.File, origins []string) error {
	for _, origin := range origins {
		said := origin + " needs no approval: it is on this machine"
		if !state.IsLoopback(origin) {
			added, err := f.Allow(origin)
			if err != nil {
				return err
			}
			said = origin + " was allowed already"
			if added {
				said = "allowed " + origin + "; a running jsbridge lets its pages in within a second"
			}
		}
		if _, err := fmt.Fprintln(w, said); err != nil {
			return err
		}
	}
	return nil
}

func removeOrigins(w io.Writer, f *state.File, origins []string) error {
	var unknown []string
	for _, origin := range origins {
		removed, err := f.Remove(origin)
		if err != nil {
			return err
		}
		if !removed {
			unknown = append(unknown, origin)
			continue
		}
		if _, err := fmt.Fprintf(w, "removed %s; a running jsbridge disconnects its pages within a second\n", origin); err != nil {
			return err
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	allowed := "no origin is"
	if known := f.Origins(); len(known) > 0 {
		allowed = "allowed are:"
		for _, o := range known {
			allowed += "\n  " + o.Origin
		}
	}
	return fmt.Errorf("not allowed before: %s; %s", strings.Join(unknown, ", "), allowed)
}

func listOrigins(w io.Writer, f *state.File) error {
	if len(f.Origins()) == 0 {
		_, err := fmt.Fprintln(w, "no origin is allowed yet; jsbridge allow <origin> allows one")
		return err
	}
	for _, o := range f.Origins() {
		line := o.Origin
		if !o.At.IsZero() {
			line += "  since " + o.At.Local().Format("2006-01-02 15:04")
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
