package recorder

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/format"
	"reprise/recorder/disktest"
)

// signingKey is that of the tests' recorder.
var signingKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// signs is a signer that fails so many times.
func signs(failures int32) func(format.Statement) (format.Signature, error) {
	var left atomic.Int32
	left.Store(failures)
	return func(s format.Statement) (format.Signature, error) {
		if left.Add(-1) >= 0 {
			return format.Signature{}, errors.New("the key store does not answer")
		}
		return s.Sign(signingKey), nil
	}
}

// signedOnce checks a finished file, and that it has the one signature.
func signedOnce(t *testing.T, b []byte) *format.Summary {
	t.Helper()
	f, err := checkFile(b)
	if err != nil {
		t.Fatal(err)
	}
	report, err := f.Check()
	if err != nil || len(report.Signatures) != 1 || report.Signatures[0].Key != format.PublicKey(signingKey.Public().(ed25519.PublicKey)) {
		t.Fatalf("signatures %+v, %v", report.Signatures, err)
	}
	return f.Summary()
}

func TestSealedSessionsAreSigned(t *testing.T) {
	inBubble(t, func(c *Config) { c.Sign = signs(0) }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 300))
		waitDurable(t, in, 1)
		if sum := signedOnce(t, sealedBytes(t, disk, seal(t, r, s, "m", in))); !sum.Complete() {
			t.Errorf("%+v", sum)
		}
	})
}

// TestUnfinishedSessionIsSignedAgain: a session that goes on after its end
// leaves no signature over the shorter one.
func TestUnfinishedSessionIsSignedAgain(t *testing.T) {
	inBubble(t, func(c *Config) { c.Sign = signs(0) }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 300))
		waitDurable(t, in, 1)
		s.Detach()
		time.Sleep(r.cfg.ResumeTimeout)
		waitFor(t, "the end", func() bool { return len(r.List()) == 0 })
		st, _ := r.Lookup("m")
		if sum := signedOnce(t, sealedBytes(t, disk, st.Ended)); sum.End.State != format.EndUnfinished || sum.NextTick != 300 {
			t.Errorf("%+v", sum)
		}
		s, _, in = begin(t, r, "m", 2)
		mustAppend(t, s, ticksChunk("m", 2, 300, 400))
		waitDurable(t, in, 2)
		if sum := signedOnce(t, sealedBytes(t, disk, seal(t, r, s, "m", in))); !sum.Complete() || sum.NextTick != 400 {
			t.Errorf("%+v", sum)
		}
	})
}

func TestEndWaitsForTheSigner(t *testing.T) {
	inBubble(t, func(c *Config) { c.Sign = signs(3) }, func(t *testing.T, r *Recorder, disk *disktest.Disk) {
		s, _, in := begin(t, r, "m", 1)
		mustAppend(t, s, ticksChunk("m", 1, 0, 300))
		waitDurable(t, in, 1)
		start := time.Now()
		info := seal(t, r, s, "m", in)
		if waited := time.Since(start); waited < 3*endRetry {
			t.Errorf("sealed after %v, the signer failed three times", waited)
		}
		signedOnce(t, sealedBytes(t, disk, info))
		if left := disk.Find("room-m-"); len(left) != 1 || !strings.Contains(left[0], sealedFolder) {
			t.Errorf("files %v", left)
		}
	})
}
