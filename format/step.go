package format

// Step is one recorded input: a command code and up to MaxParams parameters.
type Step struct {
	Code uint16
	// Index is the step's position: zero-based from ReplayArray.Get,
	// one-based (the number of steps read so far) from ReadStream.Read.
	Index int
	// Params are the parameters as stored.
	Params []Value
}
