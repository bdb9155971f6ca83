package format

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// FuzzParseParam holds that every parser agrees on what is a parameter and
// how long it is, that exactly the canonical encodings are written back byte
// for byte, and that writing is stable.
func FuzzParseParam(f *testing.F) {
	for _, v := range samples()[1:] {
		b := appendParam(nil, v)
		f.Add(b)
		f.Add(append(b, b...))
	}
	g := generator{rand.New(rand.NewPCG(5, 6))}
	for range 100 {
		if b, code := modelBytes(g.param()); code == 0 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, n, err := ParseParam(b)
		length, lengthErr := ParamLength(b)
		if (err == nil) != (lengthErr == nil) || n != length {
			t.Fatalf("parsed %d bytes, %v; length %d, %v", n, err, length, lengthErr)
		}
		if err != nil {
			checkParamError(t, b, err)
			return
		}
		written, err := AppendParam(nil, v)
		if err != nil {
			t.Fatalf("%v cannot be written: %v", v, err)
		}
		if same := bytes.Equal(written, b[:n]); same != canonical(b[:n]) {
			t.Errorf("%x is written as %x, canonical: %v", b[:n], written, canonical(b[:n]))
		}
		again, m, err := ParseParam(written)
		if err != nil || m != len(written) || !again.Equal(v) || describe(again) != describe(v) {
			t.Errorf("%x reads back as %v, %d bytes, %v, want %v", written, again, m, err, v)
		}
		if !canonical(written) || written[0] != v.TypeByte() || len(written) != v.size() {
			t.Errorf("%x is not canonical, or not of type %d and %d bytes", written, v.TypeByte(), v.size())
		}
	})
}

func checkParamError(t *testing.T, b []byte, err error) {
	t.Helper()
	reserved := len(b) > 0 && b[0] >= 12 && b[0] <= 31
	if errors.Is(err, ErrParamReserved) != reserved {
		t.Errorf("%x: %v", b, err)
	}
	if !reserved && !errors.Is(err, ErrParamTruncated) && !errors.Is(err, ErrParamElement) {
		t.Errorf("%x: an error without a sentinel: %v", b, err)
	}
}

// FuzzLoadState holds that no bytes make an array panic or read outside of
// its areas, that what loads reads alike by index, by stream and by the
// parser, and that it saves as the bytes it came from.
func FuzzLoadState(f *testing.F) {
	for _, width := range []Width{Width8, Width16} {
		for _, steps := range [][]Step{nil, threeSteps(), sevenSteps()} {
			a := NewArray(Options{Width: width})
			for _, s := range steps {
				a.Add(s.Code, s.Params...)
			}
			f.Add(a.Len(), uint8(width), a.CommandArea(), a.ParamArea())
		}
	}
	f.Add(2, uint8(8), []byte{1, 0, 1, 0}, []byte{0, 7, 2, 0, 5})
	f.Fuzz(func(t *testing.T, length int, width uint8, commands, params []byte) {
		state := State{Length: length, CommandWidth: Width(width), CommandArray: commands, ParamArray: params}
		a := NewArray(Options{})
		if err := a.LoadState(copied(state)); err != nil {
			if a.Len() != 0 || len(a.ParamArea()) != 0 {
				t.Error("a refused state changed the array")
			}
			return
		}
		saved := a.SaveState()
		if saved.Length != length || !bytes.HasPrefix(commands, saved.CommandArray) || !bytes.HasPrefix(params, saved.ParamArray) {
			t.Errorf("saved as %v, want the start of %v", saved, state)
		}
		checkLoaded(t, a)
		appended := NewArray(Options{Width: Width(width)})
		appended.Add(1, Int(5))
		if err := appended.AppendState(state); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(appended.ParamArea()[2:], saved.ParamArray) {
			t.Error("the state appends otherwise than it loads")
		}
		checkLoaded(t, appended)
		a.Set(0, 7, String("longer"), Int(1<<40))
		a.Insert(0, 8)
		a.Add(9, Int(3))
		checkLoaded(t, a)
	})
}

// checkLoaded compares every way to read an array.
func checkLoaded(t *testing.T, a *ReplayArray) {
	t.Helper()
	s, at := a.Stream(0), 0
	for i := range a.Len() {
		byIndex, ok1 := a.Get(i)
		byStream, ok2 := s.Read()
		if !ok1 || !ok2 || !sameStep(byIndex, byStream) || int(a.Index()[i]) != at {
			t.Fatalf("step %d: %v, %v by index, %v, %v by stream", i, byIndex, ok1, byStream, ok2)
		}
		for _, v := range byIndex.Params {
			parsed, n, err := ParseParam(a.ParamArea()[at:])
			if err != nil || !parsed.Equal(v) {
				t.Fatalf("step %d: parsed as %v, %v, want %v", i, parsed, err, v)
			}
			at += n
		}
	}
	if _, ok := s.Read(); ok || at != len(a.ParamArea()) {
		t.Errorf("the steps end at byte %d of %d", at, len(a.ParamArea()))
	}
}
