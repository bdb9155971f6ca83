package app

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// damage is what check, info and repair must say of a damaged RPLY1 file.
type damage struct {
	name  string
	check int
	// says is part of what check prints.
	says string
	// repair is the exit code, kept the number of ticks then; gaps are those
	// of the repaired file.
	repair, kept int
	gaps         string
}

// rply1Damages are the files of ../shared/data/rply1/damaged, of a match of 6000 ticks.
var rply1Damages = []damage{
	{"missing-tick", exitPartly, "missing: tick 3011", exitPartly, 5999, `[{"first":3011,"last":3011`},
	{"dup-tick", exitDamaged, "damaged at offset 59043: tick 3011 out of order after 3011", exitPartly, 6000, "[]"},
	{"swapped-ticks", exitDamaged, "damaged at offset 58999: tick 3011 out of order after 3012", exitPartly, 6000, "[]"},
	{"concat-two", exitDamaged, "damaged at offset 114067: a second file begins here", exitPartly, 6000, "[]"},
	{"trunc-mid-header", exitDamaged, "torn at offset 0", exitDamaged, 0, ""},
	{"trunc-mid-tick", exitDamaged, "torn at offset 58985 (37 bytes of an unfinished record), last whole tick 3010", exitPartly, 3010, "[]"},
	{"wrong-magic", exitDamaged, "not a replay: byte 32 at offset 4", exitDamaged, 0, ""},
	{"zero-length", exitDamaged, "not a replay: no magic at offset 0, the file is empty", exitDamaged, 0, ""},
	{"snaplen-ffffffff", exitDamaged, "damaged at offset 35: snapshot length 4294967295", exitPartly, 6000, "[]"},
	{"trailing-garbage", exitDamaged, "torn at offset 114067 (5 bytes of an unfinished record), last whole tick 6000", exitPartly, 6000, "[]"},
	{"zero-page", exitDamaged, "damaged at offset 40960: zeros inside the record of tick 2014", exitPartly, 5768, `[{"first":2014,"last":2245`},
	{"flip-cmd-targetx", exitOK, "contents and completeness unproven", exitOK, 6000, "[]"},
	{"flip-hash", exitOK, "contents and completeness unproven", exitOK, 6000, "[]"},
	{"trunc-at-boundary", exitOK, "unproven, 3010 ticks, 670 steps; contents and completeness unproven", exitOK, 3010, "[]"},
	{"header-only", exitOK, "unproven, 0 ticks, 0 steps; contents and completeness unproven", exitOK, 0, "[]"},
}

func TestDamagedFilesOfOldServers(t *testing.T) {
	if !haveData() {
		t.Skip("../shared/data is absent: no files of old servers")
	}
	index := content(t, filepath.Join(dataFolder(t), "rply1", "damaged", "INDEX.tsv"))
	if files := strings.Count(index, "\n") - 1; files != len(rply1Damages) {
		t.Errorf("%d files, %d are tested", files, len(rply1Damages))
	}
	for _, d := range rply1Damages {
		t.Run(d.name, func(t *testing.T) {
			d.expect(t, filepath.Join(dataFolder(t), "rply1", "damaged", d.name+".rply"))
		})
	}
}

// smallDamages are the same damages of a match of 40 ticks.
var smallDamages = []struct {
	damage
	corrupt func(m *oldMatch) []byte
}{
	{damage{"missing-tick", exitPartly, "missing: tick 20", exitPartly, 39, `[{"first":20,"last":20`},
		func(m *oldMatch) []byte { return m.join(slices.Delete(m.ticks, 19, 20)) }},
	{damage{"dup-tick", exitDamaged, "tick 20 out of order after 20", exitPartly, 40, "[]"},
		func(m *oldMatch) []byte { return m.join(slices.Insert(m.ticks, 20, m.ticks[19])) }},
	{damage{"swapped-ticks", exitDamaged, "tick 20 out of order after 21", exitPartly, 40, "[]"}, func(m *oldMatch) []byte {
		m.ticks[19], m.ticks[20] = m.ticks[20], m.ticks[19]
		return m.join(m.ticks)
	}},
	{damage{"concat-two", exitDamaged, "a second file begins here", exitPartly, 40, "[]"},
		func(m *oldMatch) []byte { return append(m.join(m.ticks), m.join(m.ticks)...) }},
	{damage{"trunc-mid-header", exitDamaged, "torn at offset 0 (20 bytes of an unfinished record), no whole tick", exitDamaged, 0, ""},
		func(m *oldMatch) []byte { return m.header[:20] }},
	{damage{"trunc-mid-tick", exitDamaged, "(9 bytes of an unfinished record), last whole tick 19", exitPartly, 19, "[]"},
		func(m *oldMatch) []byte { return append(m.join(m.ticks[:19]), m.ticks[19][:9]...) }},
	{damage{"wrong-magic", exitDamaged, "not a replay: byte 32 at offset 4", exitDamaged, 0, ""}, func(m *oldMatch) []byte {
		m.header[4] = '2'
		return m.join(m.ticks)
	}},
	{damage{"zero-length", exitDamaged, "the file is empty", exitDamaged, 0, ""}, func(*oldMatch) []byte { return nil }},
	{damage{"snaplen-ffffffff", exitDamaged, "damaged at offset 35: snapshot length 4294967295", exitPartly, 40, "[]"}, func(m *oldMatch) []byte {
		binary.LittleEndian.PutUint32(m.header[35:], 1<<32-1)
		return m.join(m.ticks)
	}},
	{damage{"trailing-garbage", exitDamaged, "(5 bytes of an unfinished record), last whole tick 40", exitPartly, 40, "[]"},
		func(m *oldMatch) []byte { return append(m.join(m.ticks), make([]byte, 5)...) }},
	{damage{"zero-page", exitDamaged, "damaged at offset 512: zeros inside", exitPartly, 25, `[{"first":14,"last":28`}, func(m *oldMatch) []byte {
		b := m.join(m.ticks)
		clear(b[512:1024])
		return b
	}},
	{damage{"flip-command", exitOK, "contents and completeness unproven", exitOK, 40, "[]"}, func(m *oldMatch) []byte {
		m.ticks[19][6+8] ^= 8
		return m.join(m.ticks)
	}},
	{damage{"flip-hash", exitOK, "contents and completeness unproven", exitOK, 40, "[]"}, func(m *oldMatch) []byte {
		m.ticks[19][6+22] ^= 8
		return m.join(m.ticks)
	}},
	{damage{"trunc-at-boundary", exitOK, "unproven, 19 ticks, 19 steps; contents and completeness unproven", exitOK, 19, "[]"},
		func(m *oldMatch) []byte { return m.join(m.ticks[:19]) }},
	{damage{"header-only", exitOK, "unproven, 0 ticks, 0 steps; contents and completeness unproven", exitOK, 0, "[]"},
		func(m *oldMatch) []byte { return m.join(nil) }},
}

func TestDamagedSmallFiles(t *testing.T) {
	for _, d := range smallDamages {
		t.Run(d.name, func(t *testing.T) { d.expect(t, writeFile(t, d.name+".rply", d.corrupt(newOldMatch()))) })
	}
}

// oldMatch is an RPLY1 file in parts.
type oldMatch struct {
	header []byte
	ticks  [][]byte
}

// newOldMatch makes 40 ticks of one command each.
func newOldMatch() *oldMatch {
	le := binary.LittleEndian
	m := &oldMatch{header: []byte("RPLY1\x00")}
	m.header = le.AppendUint16(m.header, 1)             // proto
	m.header = le.AppendUint64(m.header, 42)            // seed
	m.header = le.AppendUint16(m.header, 20)            // tick rate
	m.header = le.AppendUint64(m.header, 1_700_000_000) // start
	m.header = append(m.header, 2)                      // players
	m.header = le.AppendUint64(m.header, 100<<32|100)   // map
	m.header = le.AppendUint32(m.header, 4)             // snapshot
	m.header = append(m.header, "snap"...)
	for tick := range uint32(40) {
		b := le.AppendUint32(nil, tick+1)
		b = le.AppendUint16(b, 1)
		b = append(b, 1, 1)                              // player 1 moves
		b = le.AppendUint32(b, 7)                        // unit
		b = le.AppendUint64(b, uint64(tick+1)<<16|5<<48) // target place
		b = le.AppendUint32(b, 0)
		b = le.AppendUint32(b, tick+1)
		m.ticks = append(m.ticks, le.AppendUint64(b, 0x1122334455667788+uint64(tick)<<32))
	}
	return m
}

func (m *oldMatch) join(ticks [][]byte) []byte {
	return append(bytes.Clone(m.header), bytes.Join(ticks, nil)...)
}

// expect runs check, info, cat, verify and repair on the file.
func (d damage) expect(t *testing.T, path string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := reprise("check", path); r.code != d.check || !strings.Contains(r.stdout, d.says) || !strings.Contains(r.stdout, path) {
		t.Errorf("check: %d %s, want %d %s", r.code, r.stdout, d.check, d.says)
	}
	readable := d.check != exitDamaged || strings.Contains(d.says, "last whole tick")
	info := exitOK
	if d.check == exitDamaged {
		info = exitDamaged
	}
	for _, command := range []string{"info", "cat"} {
		r := reprise(command, path)
		if r.code != info || (info == exitDamaged) != strings.Contains(r.stderr, path+": ") || !readable && r.stdout != "" {
			t.Errorf("%s: %d %.200s %s", command, r.code, r.stdout, r.stderr)
		}
	}
	if d.check == exitPartly {
		if r := reprise("info", "--json", path); !strings.Contains(r.stdout, `"gaps":`+d.gaps) {
			t.Errorf("info does not list the gap: %s", r.stdout)
		}
	}
	// The game of such a file is in none of the programs here.
	verify := exitGame
	if !readable {
		verify = exitDamaged
	}
	if r := reprise("verify", "--sim", "skirmish", path); r.code != verify || !strings.Contains(r.stdout, "0 hashes compared") {
		t.Errorf("verify: %d %s", r.code, r.stdout)
	}
	d.expectRepair(t, path)
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file was changed: %v", err)
	}
}

func (d damage) expectRepair(t *testing.T, path string) {
	t.Helper()
	folder := t.TempDir()
	out := filepath.Join(folder, "out.rply")
	r := reprise("repair", "--json", path, "-o", out)
	if r.code != d.repair {
		t.Errorf("repair: exit code %d, want %d: %s", r.code, d.repair, r.stderr)
	}
	if d.repair == exitDamaged {
		expectOnly(t, folder)
		return
	}
	var checked checkResult
	check := reprise("check", "--json", out)
	if err := json.Unmarshal([]byte(check.stdout), &checked); err != nil {
		t.Fatal(err)
	}
	want := exitOK
	if d.gaps != "[]" {
		want = exitPartly
	}
	if check.code != want || int(checked.Ticks) != d.kept || !strings.Contains(check.stdout, `"gaps":`+d.gaps) {
		t.Errorf("repaired: exit code %d, %s, want %d with %d ticks and the gaps %s", check.code, check.stdout, want, d.kept, d.gaps)
	}
	if d.repair == exitPartly && !strings.Contains(r.stdout, `"why":`) && strings.Contains(r.stdout, `"mended":[]`) && strings.Contains(r.stdout, `"gaps":[]`) {
		t.Errorf("repair does not say what it did: %s", r.stdout)
	}
}
