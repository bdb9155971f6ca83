// Package configs holds the documented configuration of the daemon.
package configs

import _ "embed"

// Reprised is reprised.toml: every key with its default.
//
//go:embed reprised.toml
var Reprised []byte
