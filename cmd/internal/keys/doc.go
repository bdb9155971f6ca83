// Package keys reads and writes the files of signing keys: private ones as
// PKCS #8 in PEM, public ones as a line that has a name, many of which make a
// file of trusted keys.
package keys
