package proctest

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// role in the environment makes the test program one that a test starts.
const role = "REPRISE_TEST_PROCTEST"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "chatty":
		w := bufio.NewWriter(os.Stdout)
		for i := 0; ; i++ {
			if _, err := fmt.Fprintln(w, i); err != nil {
				os.Exit(1)
			}
		}
	case "racy":
		fmt.Fprintln(os.Stderr, "WARNING: DATA RACE")
	case "deaf":
		// Ends once its log has no reader.
		for {
			if _, err := fmt.Fprintln(os.Stderr, "panic: told in time"); err != nil {
				os.Exit(3)
			}
		}
	}
}

const patience = 30 * time.Second

// verdict is a test that keeps what it is told.
type verdict struct {
	testing.TB
	errors []string
}

func (v *verdict) Errorf(text string, args ...any) {
	v.errors = append(v.errors, fmt.Sprintf(text, args...))
}
func (v *verdict) Failed() bool        { return false }
func (v *verdict) Cleanup(func())      {}
func (v *verdict) Logf(string, ...any) {}

// says is whether it failed for bad alone.
func (v *verdict) says(bad string) bool {
	return len(v.errors) == 1 && strings.HasPrefix(v.errors[0], bad+" in process ")
}

// A program that printed far more than the test reads can be killed, and its
// lines have no gap.
func TestKillChatty(t *testing.T) {
	p := Start(t, Command(t, role+"=chatty"))
	Eventually(t, patience, "more lines than may be unread", func() bool { return len(p.Lines) == unread })
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		p.Kill()
	}()
	select {
	case <-killed:
	case <-time.After(patience):
		// Reading lets it end.
		for range p.Lines {
		}
		t.Fatalf("not killed within %v", patience)
	}
	next := 0
	for line := range p.Lines {
		if line != fmt.Sprint(next) {
			t.Fatalf("line %d is %q", next, line)
		}
		next++
	}
	if next < unread {
		t.Errorf("%d lines, want those that were there: %d", next, unread)
	}
}

// What a program's log tells fails the test.
func TestConcludeRace(t *testing.T) {
	v := &verdict{TB: t}
	p := Start(v, Command(t, role+"=racy"))
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.conclude()
	if !v.says("DATA RACE") {
		t.Errorf("the test is told %q", v.errors)
	}
}

// It does so as well where the log's reader goes away, which the program
// notices.
func TestConcludeClosedLog(t *testing.T) {
	v := &verdict{TB: t}
	p := Start(v, Command(t, role+"=deaf"))
	Eventually(t, patience, "a log", func() bool { return p.Log.String() != "" })
	p.CloseLog()
	// Writing to a standard error that nobody reads ends a program that does
	// not ignore the signal for it.
	if code := p.ExitCode(patience); code == 0 {
		t.Error("exit code 0")
	}
	p.conclude()
	if !v.says("panic:") {
		t.Errorf("the test is told %q", v.errors)
	}
}
