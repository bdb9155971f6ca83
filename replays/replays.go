// Package replays holds a sample file of every layout and state that a replay
// was ever released in, each beside a JSON document of what it holds. Whoever
// writes a reader can test it with them.
//
// # Layout
//
//	NAME          a replay: .rply is RPLY2 or RPLY1, .jsonl is JSON lines, both
//	              also wrapped in .zst or .gz; .commands and .params are the two
//	              areas of a raw saveState
//	NAME.json     what NAME holds
//	SHA256SUMS    the sum of every file
//
// # The documents
//
// A document has the metadata, the code book, players, marks, reports, gaps,
// keyframes and the end as the specification names them, and those ticks that
// have steps, a hash or a time. Hashes, states and other bytes are hexadecimal.
// A parameter is an object of its kind and its value: integers in decimal,
// floats as the 16 hexadecimal digits of their bits, strings that are not UTF-8
// as hexadecimal "string_bytes". Any other text that is not UTF-8 is "hex:" and
// its hexadecimal digits. "torn" is the offset where a file is cut. The
// digest of the content is that of the specification.
//
// # Promise
//
// A file that stands here is never changed or removed again: every later
// version of the format's readers has to give what its document says. A test
// holds the sums. New samples are added by an entry in the list of samples of
// make_test.go and "go test ./replays -add", which writes what is not there and
// leaves all else alone.
package replays

import "embed"

// Files holds the samples, their documents and their sums.
//
//go:embed *.rply *.jsonl *.zst *.gz *.commands *.params *.json SHA256SUMS
var Files embed.FS
