package format

// Tick numbers one lockstep frame of a session, or one turn of a turn-based
// game. Ticks are contiguous from the session's declared first tick.
type Tick uint64
