//go:build unix

package lab

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// descriptors in the environment is the most file descriptors that the
// process may have.
const descriptors = "REPRISE_LAB_DESCRIPTORS"

func limitDescriptors() {
	s := os.Getenv(descriptors)
	if s == "" {
		return
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s=%s: %v\n", descriptors, s, err)
		os.Exit(2)
	}
}
