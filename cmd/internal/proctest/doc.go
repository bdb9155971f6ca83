// Package proctest runs programs in tests: mostly the test program itself, in
// another role that its TestMain plays.
package proctest
