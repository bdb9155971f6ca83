// Package disk is the disk as the recorder sees it: a few calls that a real
// file system answers in production, and a simulated one, which crashes and
// fails on purpose, in tests.
package disk
