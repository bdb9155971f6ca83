//go:build race

package wasm

// underRace is set where the race detector watches.
const underRace = true
