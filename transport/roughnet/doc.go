// Package roughnet is a bad network for tests: a Proxy between a client and a
// daemon, on this machine, that delays, loses and doubles UDP packets.
package roughnet
