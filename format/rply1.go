package format

import "io"

func readRPLY1(src *io.SectionReader, out *Buffer) error { return ErrNotReplay }
