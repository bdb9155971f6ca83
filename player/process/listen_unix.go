//go:build unix

package process

// hasUnixSockets says whether children are awaited at a unix socket.
const hasUnixSockets = true
