//go:build !unix

package format

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
