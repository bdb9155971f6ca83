package player

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"reprise/format"
)

// A side file of keyframes, every number little-endian:
//
//	bytes  what
//	8      sideMagic
//	4, n   the simulation: length and text
//	4, n   the replay: length and text
//	8      covered: the replay's ticks below it are what the text is about
//	then for each keyframe
//	1      sideState
//	8      the tick that it stands before
//	8      size of the state
//	32     SHA-256 of the state
//	4, n   the state as a zstd frame: length and bytes
//	and at the end
//	1      sideEnd
//	32     SHA-256 of all before
//
// These values must not change.
const (
	sideMagic = "RPKEYS\r\n"
	sideState = 1
	sideEnd   = 0

	sideStateHead = 8 + 8 + sha256.Size + 4
	// mostSideText bounds each text of the head.
	mostSideText = 4 << 10
	// mostPacking bounds how far a few bytes are unpacked.
	mostPacking = 1 << 16
)

// KeyframeFileMagic is how many bytes IsKeyframeFile needs.
const KeyframeFileMagic = len(sideMagic)

// IsKeyframeFile tells from its first bytes whether a file is a side file of
// keyframes.
func IsKeyframeFile(begin []byte) bool { return bytes.HasPrefix(begin, []byte(sideMagic)) }

// ErrKeyframeFile is returned for a side file of keyframes that is not used:
// it is damaged, too large, or belongs to another simulation or replay. The
// playback goes on without it.
var ErrKeyframeFile = errors.New("the side file of keyframes is not used")

func sideError(text string, args ...any) error {
	return fmt.Errorf("%w: "+text, append([]any{ErrKeyframeFile}, args...)...)
}

// sideHead says what the keyframes of a side file belong to.
type sideHead struct {
	simulation, replay string
	covered            format.Tick
}

func (h *sideHead) append(dst []byte) []byte {
	dst = append(dst, sideMagic...)
	for _, text := range []string{h.simulation, h.replay} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(text)))
		dst = append(dst, text...)
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(h.covered))
}

// sideFrame is one keyframe of a side file, packed.
type sideFrame struct {
	next   format.Tick
	size   uint64
	sum    [sha256.Size]byte
	packed []byte
}

func (f *sideFrame) append(dst []byte) []byte {
	dst = append(dst, sideState)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(f.next))
	dst = binary.LittleEndian.AppendUint64(dst, f.size)
	dst = append(dst, f.sum[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(f.packed)))
	return append(dst, f.packed...)
}

// sidePacker packs and unpacks states.
type sidePacker struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func (p *sidePacker) pack(next format.Tick, state []byte) (*sideFrame, error) {
	if p.encoder == nil {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
		if err != nil {
			return nil, err
		}
		p.encoder = e
	}
	return &sideFrame{next: next, size: uint64(len(state)), sum: sha256.Sum256(state), packed: p.encoder.EncodeAll(state, nil)}, nil
}

// unpack appends a state to dst, which it is compared with its sum for.
func (p *sidePacker) unpack(dst []byte, f *sideFrame) ([]byte, error) {
	if p.decoder == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(format.MaxKeyframe))
		if err != nil {
			return dst, err
		}
		p.decoder = d
	}
	from := len(dst)
	dst, err := p.decoder.DecodeAll(f.packed, dst)
	if state := dst[from:]; err == nil && (uint64(len(state)) != f.size || sha256.Sum256(state) != f.sum) {
		err = errors.New("its bytes are not those that were saved")
	}
	return dst, err
}

// sideReader takes a side file apart.
type sideReader struct {
	b   []byte
	err error
}

func (r *sideReader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.b)) {
		r.err = sideError("it is damaged: %d bytes are due where %d are left", n, len(r.b))
	}
	if r.err != nil {
		return nil
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

func (r *sideReader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *sideReader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *sideReader) text() string {
	n := r.u32()
	if n > mostSideText && r.err == nil {
		r.err = sideError("it is damaged: a text of %d bytes", n)
	}
	return string(r.take(uint64(n)))
}

// parseSide reads a whole side file. The frames keep its memory.
func parseSide(b []byte) (sideHead, []*sideFrame, error) {
	var h sideHead
	if !IsKeyframeFile(b) {
		return h, nil, sideError("it is none")
	}
	end := len(b) - sha256.Size
	if end < len(sideMagic) || sha256.Sum256(b[:end]) != [sha256.Size]byte(b[end:]) {
		return h, nil, sideError("it is damaged: its checksum is another")
	}
	r := &sideReader{b: b[len(sideMagic):end]}
	h = sideHead{simulation: r.text(), replay: r.text(), covered: format.Tick(r.u64())}
	frames, err := r.frames(h.covered)
	return h, frames, err
}

// frames reads the keyframes, in the order of their ticks or any other.
func (r *sideReader) frames(covered format.Tick) ([]*sideFrame, error) {
	var frames []*sideFrame
	seen := map[format.Tick]bool{}
	for r.err == nil {
		kind := r.take(1)
		if r.err != nil || kind[0] == sideEnd {
			break
		}
		f := &sideFrame{next: format.Tick(r.u64()), size: r.u64()}
		copy(f.sum[:], r.take(sha256.Size))
		f.packed = r.take(uint64(r.u32()))
		if r.err != nil {
			break
		}
		if kind[0] != sideState || f.next > covered || seen[f.next] || f.size > format.MaxKeyframe || f.size/mostPacking > uint64(len(f.packed)) {
			return nil, sideError("it is damaged: there cannot be such a keyframe before tick %d", f.next)
		}
		seen[f.next] = true
		frames = append(frames, f)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = sideError("it is damaged: %d bytes stand behind its end", len(r.b))
	}
	return frames, r.err
}

// sideWriter writes a side file of a bounded size.
type sideWriter struct {
	w     io.Writer
	room  int64
	count int
	err   error
	hash  interface {
		io.Writer
		Sum([]byte) []byte
	}
}

func newSideWriter(w io.Writer, h sideHead, limit int64) *sideWriter {
	s := &sideWriter{w: w, hash: sha256.New(), room: limit - 1 - sha256.Size}
	s.write(h.append(nil))
	return s
}

func (s *sideWriter) write(b []byte) {
	if s.err == nil {
		s.hash.Write(b)
		s.room -= int64(len(b))
		_, s.err = s.w.Write(b)
	}
}

// add writes a keyframe; false where there is no room for it.
func (s *sideWriter) add(f *sideFrame) bool {
	if s.err != nil || s.room < int64(1+sideStateHead+len(f.packed)) {
		return false
	}
	s.write(f.append(nil))
	s.count++
	return true
}

func (s *sideWriter) close() error {
	s.write([]byte{sideEnd})
	if s.err == nil {
		_, s.err = s.w.Write(s.hash.Sum(nil))
	}
	return s.err
}
