package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	legacypage "jsbridge/legacy-page"
)

const demoPort = 8080

// demoCommand serves the example pages on an origin of its own, as a page in
// real life has one.
func demoCommand() *cobra.Command {
	var port int
	c := &cobra.Command{
		Use:   "demo",
		Short: "serves two example pages on another origin",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("port %d is taken; choose another with --port", port)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), `The example page is at http://localhost:%[1]d/hello-world.html

Open it, ask your agent for the jsbridge embed snippet, and paste that line into
the page's DevTools console. A page that connects by itself, without any pasting,
is at http://localhost:%[1]d/auto-connect.html. Ctrl-C stops.
`, l.Addr().(*net.TCPAddr).Port)
			if err != nil {
				return errors.Join(err, l.Close())
			}
			return serveDemo(c.Context(), l)
		},
	}
	c.Flags().IntVar(&port, "port", demoPort, "port to listen on; 0 takes a free one")
	return c
}

func serveDemo(ctx context.Context, l net.Listener) error {
	files := http.FileServerFS(legacypage.Files)
	s := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache")
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/hello-world.html", http.StatusFound)
				return
			}
			files.ServeHTTP(w, r)
		}),
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	err := s.Close()
	<-done
	return err
}
