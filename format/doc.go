// Package format holds everything that is stored: the replay array and its
// parameter codec, the chunk, the RPLY2 file, and the formats that convert to
// and from it. It is pure: no network, no clocks, no goroutines. SPEC.md
// beside it specifies the bytes.
//
// A recording in memory is a ReplayArray: steps, each a command code and up
// to 255 parameters. A parameter is a Value. A ReadStream reads steps in
// order; SaveState and LoadState exchange the two areas of bytes that an array
// consists of. What goes wrong is told as a Warning with a number.
//
// A recording on disk is a chain of chunks; each holds the areas of some ticks
// in the same form. A Tracker decides whether a chunk may follow, a Writer
// writes a file, Open and Reader read one of any known format.
//
// The files, along the path of the data:
//
//	value.go param.go                  a parameter and its bytes
//	step.go array.go add.go edit.go    the replay array
//	stream.go state.go split31.go      reading it, saving and loading it
//	warning.go                         numbered warnings
//	tick.go batch.go body.go chunk.go  ticks, bodies and frames of chunks
//	meta.go metacodec.go summary.go    what a session says about itself
//	machine.go                         the facts about a machine, and their comparison
//	tracker.go digest.go footer.go     order, content digest, end of a file
//	sparse.go                          a digest without the leaves of nothing
//	writer.go scan.go reader.go        files
//	file.go wrap.go                    any format behind one Open
//	rply1.go jsonl.go rawstate.go      other formats
//	check.go leaves.go sign.go         proof
//	copier.go redaction.go redact.go   copies without what is personal
//	archive.go archivechunk.go same.go the archive layout, and the proof that nothing is lost
//	archivekeyframe.go                 its keyframes
//	token.go column.go columnread.go   its columns
//	model.go modelmix.go modelwalk.go  its models and arithmetic coder
//	unarchive.go                       the way back to the ordinary layout
//	repair.go                          rescue
//	errors.go limits.go plural.go      what is refused, and where it ends
//
// Mind that decoded strings, bytes, big integers and lists refer to the
// memory they were read from (Value.Clone makes them independent), and that
// nothing here may be used by two goroutines at once unless it says so.
package format
