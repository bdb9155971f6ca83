package skirmish

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/format"
	"reprise/player"
)

// eachNumber calls visit with every number and flag of a value, by path, for
// the first element of every list.
func eachNumber(path string, v reflect.Value, visit func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachNumber(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
		}
	case reflect.Slice, reflect.Array:
		if v.Len() > 0 {
			eachNumber(path+"[0]", v.Index(0), visit)
		}
	default:
		visit(path, v)
	}
}

// TestEveryFieldCounts changes one field of the state at a time. Each must
// show in one part of the hash, in the part it belongs to, in the saved
// bytes and in the dump, so that nothing can be forgotten when a field is
// added.
func TestEveryFieldCounts(t *testing.T) {
	g := richState(t)
	parts := map[string]int{
		"state.units": 1, "state.arrows": 1, "state.cursor": 1, "state.sides": 2, "state.random": 3, "state.lastID": 3,
	}
	visited := 0
	eachNumber("state", reflect.ValueOf(&g.state).Elem(), func(path string, v reflect.Value) {
		visited++
		hash, saved, dumped := g.Hash(nil), g.Save(nil), g.Dump()
		restore := nudge(v)
		defer restore()
		part := 0
		for prefix, n := range parts {
			if strings.HasPrefix(path, prefix) {
				part = n
			}
		}
		for i := range 4 {
			differs := !bytes.Equal(g.Hash(nil)[4*i:4*i+4], hash[4*i:4*i+4])
			if differs != (i == part) {
				t.Errorf("%s: part %d of the hash changes: %v", path, i, differs)
			}
		}
		fixedByMap := path == "state.deposits[0].x" || path == "state.deposits[0].y" || path == "state.deposits[0].what"
		derived := strings.HasPrefix(path, "state.buildings[0].queue[") // all slots hold what the building trains
		if bytes.Equal(g.Save(nil), saved) && !fixedByMap && !derived {
			t.Errorf("%s is not saved", path)
		}
		if slices.Equal(g.Dump(), dumped) {
			t.Errorf("%s is not dumped", path)
		}
	})
	if visited < 55 {
		t.Errorf("only %d fields were visited", visited)
	}
}

// richState is a state whose first elements use every field.
func richState(t *testing.T) *Game {
	g := battle(t)
	u := &g.units[0]
	u.route.tiles[0], u.route.length = 17, 1
	b := &g.buildings[0]
	b.queue[0], b.queued = worker, 1
	b.rally, b.rallies = point{one, one}, true
	return g
}

// nudge changes a number or flag and returns how to change it back; it
// reaches unexported fields by their address.
func nudge(v reflect.Value) (restore func()) {
	w := reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	old := reflect.New(w.Type()).Elem()
	old.Set(w)
	switch w.Kind() {
	case reflect.Bool:
		w.SetBool(!w.Bool())
	case reflect.String:
		w.SetString(w.String() + "0")
	case reflect.Int32, reflect.Int64:
		w.SetInt(w.Int() + 1)
	default:
		w.SetUint(w.Uint() ^ 1)
	}
	return func() { w.Set(old) }
}

func TestHashShapes(t *testing.T) {
	for bytes := range maxHash + 1 {
		start := startOf(1, 2, "plains-64")
		start.Meta.HashBytes, start.Meta.HashParts = bytes, nil
		g := new(Game)
		if err := g.Reset(start); err != nil {
			t.Fatal(err)
		}
		before := g.Hash([]byte("prefix"))
		if len(before) != 6+bytes {
			t.Fatalf("a hash of %d bytes, want %d", len(before)-6, bytes)
		}
		run(t, g, 1)
		if after := g.Hash([]byte("prefix")); bytes > 3 && slices.Equal(before, after) {
			t.Errorf("%d bytes: a tick does not change the hash", bytes)
		}
	}
	for name, spoil := range map[string]func(m *format.Metadata){
		"33 bytes":         func(m *format.Metadata) { m.HashBytes, m.HashParts = 33, nil },
		"parts of 15":      func(m *format.Metadata) { m.HashBytes, m.HashParts[0].Bytes = 15, 3 },
		"other names":      func(m *format.Metadata) { m.HashParts[1].Name = "people" },
		"a part too few":   func(m *format.Metadata) { m.HashParts = m.HashParts[:3] },
		"parts without 16": func(m *format.Metadata) { m.HashBytes = 8 },
	} {
		start := startOf(1, 2, "plains-64")
		spoil(start.Meta)
		if err := new(Game).Reset(start); err == nil {
			t.Errorf("%s: Reset takes it", name)
		}
	}
}

func TestDumpNamesAreUnique(t *testing.T) {
	g := battle(t)
	seen := map[string]bool{}
	for _, f := range g.Dump() {
		if seen[f.Name] {
			t.Errorf("%s stands twice", f.Name)
		}
		seen[f.Name] = true
	}
	u := g.units[3]
	want := player.Field{Name: fmt.Sprintf("units[%d].hp", u.id), Value: fmt.Sprint(u.hp)}
	if !slices.Contains(g.Dump(), want) {
		t.Errorf("the dump lacks %v", want)
	}
}
