package state

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childVariable makes the test binary a writer: "<how many> <name> <path>".
const childVariable = "JSBRIDGE_STATE_TEST_CHILD"

func TestMain(m *testing.M) {
	if what, ok := os.LookupEnv(childVariable); ok {
		if err := child(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child allows origins and prints each one once it is kept.
func child(what string) error {
	words := strings.SplitN(what, " ", 3)
	many, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	f, err := Open(words[2], nil)
	if err != nil {
		return err
	}
	f.lockWait = time.Minute // others take the lock again as soon as they release it
	for i := range many {
		origin := fmt.Sprintf("https://%s-%d.example", words[1], i)
		if _, err := f.Allow(origin); err != nil {
			return err
		}
		fmt.Println(origin)
	}
	return nil
}

// writer starts a child.
func writer(t *testing.T, many int, name, path string) (c *exec.Cmd, acknowledged io.Reader) {
	t.Helper()
	c = exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", childVariable, many, name, path))
	c.Stderr = os.Stderr
	r, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, r
}

func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	var kept []string
	interrupted := 0 // kills that left an unfinished file
	end := time.Now().Add(2 * time.Second)
	round := 0
	for ; round < 100 && time.Now().Before(end) && len(kept) < MaxOrigins*3/4; round++ {
		c, r := writer(t, MaxOrigins/10, strconv.Itoa(round), path)
		lines := bufio.NewScanner(r)
		if lines.Scan() { // from now on it is in the midst of writing
			kept = append(kept, lines.Text())
		}
		kill := time.AfterFunc(rand.N(5*time.Millisecond), func() { _ = c.Process.Kill() })
		for lines.Scan() {
			kept = append(kept, lines.Text())
		}
		err := c.Wait()
		if kill.Stop() && err != nil {
			t.Fatalf("round %d: the writer failed: %v", round, err)
		}
		_, err = os.Stat(path + ".tmp")
		if err == nil {
			interrupted++
		}
		// Not Open, which would set a damaged file aside.
		now, _, err := load(path)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for _, origin := range kept {
			if !now.allows(origin) {
				t.Fatalf("round %d: %s was lost", round, origin)
			}
		}
	}
	t.Logf("%d kills, %d of them between the two files' names; %d origins kept", round, interrupted, len(kept))
	if round < 5 || len(kept) < round {
		t.Errorf("%d kills and %d origins prove nothing", round, len(kept))
	}
	f, log := open(t, path)
	allow(t, f, "https://last.example")
	if got := files(t, dir); len(got) != 1 || log.Len() != 0 {
		t.Errorf("left behind: %q, logged %s", got, log)
	}
}

func TestWritersAtOnceLoseNothing(t *testing.T) {
	const many = 40
	path := filepath.Join(t.TempDir(), "state.json")
	f, _ := open(t, path)
	f.lockWait = time.Minute
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	for _, name := range []string{"a", "b"} {
		c, r := writer(t, many, name, path)
		wg.Go(func() {
			_, err := io.Copy(io.Discard, r)
			errs <- errors.Join(err, c.Wait())
		})
	}
	for _, name := range []string{"c", "d"} {
		wg.Go(func() {
			var err error
			for i := 0; i < many && err == nil; i++ {
				_, err = f.Allow(fmt.Sprintf("https://%s-%d.example", name, i))
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	again, _ := open(t, path)
	for _, name := range []string{"a", "b", "c", "d"} {
		for i := range many {
			if origin := fmt.Sprintf("https://%s-%d.example", name, i); !again.Allows(origin) {
				t.Errorf("%s was lost", origin)
			}
		}
	}
}
