//go:build !linux

package recorder

import "os"

// syncData makes a file's bytes durable.
func syncData(f *os.File) error { return f.Sync() }

// startSync does nothing here.
func startSync(*os.File, int64, int64) {}

// wholeSync: there is no call here that makes many files durable at once
// and reports what failed.
const wholeSync = false

func syncAll(*os.File) error { return nil }
