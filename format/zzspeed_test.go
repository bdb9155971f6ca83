package format
import ("testing";"io";"os")
func TestZZProf(t *testing.T) {
	if os.Getenv("ZZ") == "" { t.Skip() }
	a := NewArchiver()
	f, err := Open("/tmp/archive/warcraft3_129-609d824c.jsonl.zst.rply"); if err != nil { t.Fatal(err) }
	l := ArchiveDefault
	n := 6
	if os.Getenv("ZZ") == "max" { l = ArchiveMax; n = 1 }
	for range n { a.Archive(f, io.Discard, ArchiveOptions{Level: l}) }
}
