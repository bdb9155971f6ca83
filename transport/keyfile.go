package transport

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"reprise/format"
)

// A keyframe that is not whole in the spool file has a file of its own,
// SESSION.ID.keyframe, which Keyframe writes before it returns. It is removed
// once the spool file has the last part. Numbers are big endian:
//
//	magic      8 bytes
//	checksum   u32   CRC-32C of the producer's key and all that follows
//	version    u32
//	id         u64
//	next tick  u64
//	size       u64   of the state
//	state
//
// The numbers below are stored in files. They must not change.
const (
	keyframeSuffix  = ".keyframe"
	keyframeMagic   = "RPLYKEYF"
	keyframeVersion = 1
	keyframeHead    = 40
)

func (s *spool) keyframePath(id uint64) string {
	return s.path("." + strconv.FormatUint(id, 10) + keyframeSuffix)
}

// appendKeyframeHead appends what stands in front of the state.
func appendKeyframeHead(dst []byte, k *keyframe, key [KeySize]byte) []byte {
	start := len(dst)
	dst = append(dst, keyframeMagic...)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, keyframeVersion)
	for _, v := range [...]uint64{k.id, uint64(k.next), uint64(len(k.state))} {
		dst = binary.BigEndian.AppendUint64(dst, v)
	}
	sum := crc32.Update(crc32.Checksum(key[:], castagnoli), castagnoli, dst[start+12:])
	binary.BigEndian.PutUint32(dst[start+8:], crc32.Update(sum, castagnoli, k.state))
	return dst
}

// writeKeyframe writes a keyframe's file. Nothing is synced: it outlives the
// process, not the machine.
func (s *spool) writeKeyframe(k *keyframe, key [KeySize]byte) error {
	f, err := os.OpenFile(s.keyframePath(k.id), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(appendKeyframeHead(nil, k, key))
	if err == nil {
		_, err = f.Write(k.state)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, s.removeKeyframe(k.id))
	}
	return err
}

func (s *spool) removeKeyframe(id uint64) error { return removeExisting(s.keyframePath(id)) }

// dropKeyframes removes the files of keyframes whose last part the spool file
// has now.
func (s *spool) dropKeyframes(chunks []*chunk) error {
	for _, c := range chunks {
		if c.keyframe > 0 {
			if err := s.removeKeyframe(c.keyframe); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *spool) removeKeyframes() error {
	ids, err := s.keyframes()
	for _, id := range ids {
		err = errors.Join(err, s.removeKeyframe(id))
	}
	return err
}

// keyframes lists the ids of the keyframes' files, ascending.
func (s *spool) keyframes() (ids []uint64, err error) {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		middle, ours := strings.CutPrefix(e.Name(), s.id+".")
		number, is := strings.CutSuffix(middle, keyframeSuffix)
		if id, err := strconv.ParseUint(number, 10, 64); ours && is && err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// readKeyframe reads a keyframe's file. The error matches format.ErrCorrupt
// for one that is not whole, or of another session.
func (s *spool) readKeyframe(id uint64, key [KeySize]byte) (*keyframe, error) {
	path := s.keyframePath(id)
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	bad := func(what string) error {
		return &fs.PathError{Op: "read", Path: path, Err: errors.Join(format.ErrCorrupt, errors.New(what))}
	}
	if n := st.Size(); n < keyframeHead || n > keyframeHead+format.MaxKeyframe {
		return nil, bad("it is not whole, or no keyframe")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(b) < keyframeHead {
		return nil, bad("it is not whole")
	}
	k := &keyframe{id: id, next: format.Tick(binary.BigEndian.Uint64(b[24:])), state: b[keyframeHead:]}
	if string(appendKeyframeHead(nil, k, key)) != string(b[:keyframeHead]) {
		return nil, bad("it is not whole, or of another session")
	}
	return k, nil
}

// recoverKeyframes queues the keyframes again that an earlier process left,
// from where the spool file has them. missing says how many bytes of those
// that it has parts of are not there.
func (r *Recording) recoverKeyframes(missing map[uint64]uint64) error {
	ids, err := r.spool.keyframes()
	if err != nil {
		return err
	}
	for _, id := range ids {
		rest, begun := missing[id]
		if begun && rest == 0 {
			if err := r.spool.removeKeyframe(id); err != nil {
				return err
			}
			continue
		}
		k, err := r.spool.readKeyframe(id, r.key)
		if err != nil {
			r.client.tell(r.id, err)
			if err := r.spool.removeKeyframe(id); err != nil {
				return err
			}
			continue
		}
		if begun {
			k.off = len(k.state) - int(min(rest, uint64(len(k.state))))
			r.keys.half--
		}
		r.keys.nextID = max(r.keys.nextID, id)
		r.keys.waiting = append(r.keys.waiting, k)
		r.client.memory.Add(int64(len(k.state)))
	}
	return nil
}
