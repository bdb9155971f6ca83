package daemon

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"reprise/format"
	"reprise/recorder"
	"reprise/transport"
)

// figures are all metrics, each with its labels' values behind its name.
func figures(t testing.TB, addr string) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for name, family := range families {
		if family.GetHelp() == "" {
			t.Errorf("metric %s has no help", name)
		}
		for _, m := range family.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += "/" + l.GetValue()
			}
			all[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

// The figures are those of what happens.
func TestMetrics(t *testing.T) {
	d, disk := onBrittleDisk(t)
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String())
	w := playAll(t, c, 77, 2)
	progress(t, w.players)
	addr := d.httpAddr.String()
	m := figures(t, addr)
	for key, want := range map[string]float64{
		"reprise_sessions/live": 2, "reprise_sessions/detached": 0, "reprise_sessions/quarantined": 0, "reprise_connections": 1, "reprise_connected_sessions": 2,
		"reprise_sessions_ended_total/sealed": 0, "reprise_disk_errors_total/journal": 0, "reprise_journal_segments": float64(d.recorder.Stats().Segments), "reprise_connections_cut_total/slow": 0,
		"reprise_certificate_expiry_timestamp_seconds": float64(d.pair.NotAfter().Unix()),
	} {
		if got, ok := m[key]; !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", key, got, ok, want)
		}
	}
	for _, key := range [...]string{"reprise_journal_flushes_total", "reprise_journal_flush_seconds_total", "reprise_received_chunks_total", "reprise_received_bytes_total", "reprise_acknowledgements_total", "go_goroutines", "reprise_journal_segments_used"} {
		if m[key] <= 0 {
			t.Errorf("%s is %v, want more than 0", key, m[key])
		}
	}
	disk.fail("data/journal")
	eventually(t, "a degraded daemon", func() bool { return figures(t, addr)["reprise_trouble/journal"] == 1 })
	if m := figures(t, addr); m["reprise_disk_errors_total/journal"] == 0 {
		t.Error("no error of the journal is counted")
	}
	disk.heal()
	w.sealAll(t, d.cfg.Data)
	m = figures(t, addr)
	if _, bad := m["reprise_trouble/journal"]; bad || m["reprise_sessions_ended_total/sealed"] != 2 || m["reprise_sessions/live"] != 0 {
		t.Errorf("after the end: %v", m)
	}
}

// Names follow the customs of Prometheus, every description is used, and
// every one has a help of its own.
func TestMetricNames(t *testing.T) {
	d, disk := onBrittleDisk(t)
	disk.fill()
	s, _ := d.recorder.Lookup("none")
	if s.ID != "" {
		t.Fatal("a session nobody opened")
	}
	if _, _, err := d.recorder.OpenSession(recorder.OpenRequest{ID: "."}); err == nil {
		t.Fatal("a session with a bad id")
	}
	eventually(t, "a full disk", func() bool { return len(d.notReady()) > 0 })
	_, body := get(t, d.httpAddr.String(), "/metrics")
	var ours strings.Builder
	for line := range strings.Lines(body) {
		if strings.Contains(line, "reprise_") {
			ours.WriteString(line)
		}
	}
	problems, err := promlint.New(strings.NewReader(ours.String())).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	helps := map[string]bool{}
	for line := range strings.Lines(ours.String()) {
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			_, help, _ = strings.Cut(help, " ")
			if helps[help] {
				t.Errorf("two metrics say %q", help)
			}
			helps[help] = true
		}
	}
	if want := descriptions(t); len(helps) != want {
		t.Errorf("%d metrics are given, %d are described", len(helps), want)
	}
}

// descriptions counts the calls of describe.
func descriptions(t testing.TB) (n int) {
	t.Helper()
	for _, name := range [...]string{"metrics.go", "archive.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "describe" {
					n++
				}
			}
			return true
		})
	}
	return n
}

func TestHealthAndReadiness(t *testing.T) {
	d, disk := onBrittleDisk(t)
	addr := d.httpAddr.String()
	if code, body := get(t, addr, "/readyz"); code != http.StatusOK || body != "ready\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	disk.fill()
	eventually(t, "a full disk", func() bool {
		code, body := get(t, addr, "/readyz")
		return code == http.StatusServiceUnavailable && strings.HasPrefix(body, "degraded: free space: ")
	})
	// It lives, nevertheless: a restart would help nobody.
	if code, body := get(t, addr, "/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", code, body)
	}
	// A full disk refuses new sessions, with the reason.
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String())
	rec, err := c.Open(transport.Spec{Meta: format.Metadata{Session: "no-room"}})
	if err != nil {
		t.Fatal(err)
	}
	var r *transport.Refusal
	eventually(t, "a refusal", func() bool { return errors.As(rec.Err(), &r) && r.Code == transport.CodeStorage })
	disk.heal()
	eventually(t, "readiness", func() bool { code, _ := get(t, addr, "/readyz"); return code == http.StatusOK })
	if err := rec.Seal(within(t, patience)); err != nil {
		t.Errorf("the session does not come by itself once there is room: %v", err)
	}
	for _, request := range []struct{ method, path string }{{"GET", "/"}, {"GET", "/sessions/"}, {"POST", "/sessions"}, {"DELETE", "/sessions/a"}} {
		req, err := http.NewRequest(request.method, "http://"+addr+request.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %s", request.method, request.path, resp.Status)
		}
	}
}

// The listing holds every session that has not ended, under whatever name;
// a single one is found also after its end.
func TestSessionsListing(t *testing.T) {
	d, _ := onBrittleDisk(t)
	addr := d.httpAddr.String()
	if code, body := get(t, addr, "/sessions"); code != http.StatusOK || body != "[]\n" {
		t.Errorf("/sessions of none: %d %q", code, body)
	}
	names := []string{"..a", "-", "_", "A.b-C_9", strings.Repeat("x", format.MaxSessionID), "room-a-20260101T000000Z.rply"}
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String())
	var players []*player
	for i, name := range names {
		p := match{id: name, seed: uint64(100 + i)}.play(t, c)
		for range 10 {
			p.tick()
		}
		players = append(players, p)
	}
	for _, p := range players {
		eventually(t, "durable ticks of "+p.id, func() bool { return p.rec.Durable() >= p.rec.NextTick() })
	}
	list := sessions(t, addr, "/sessions")
	slices.Sort(names)
	for i, l := range list {
		if l.Session != names[i] || l.State != "live" || l.NextTick != l.DurableTick || l.NextTick < 10 || l.Received != l.Durable || l.File != "live/room-"+l.Session+"-"+l.File[len(l.File)-len("20060102T150405Z.rply"):] {
			t.Errorf("%+v, want a live session %q, all durable", l, names[i])
		}
	}
	if len(list) != len(names) {
		t.Errorf("%d sessions, want %d", len(list), len(names))
	}
	for _, p := range players {
		end := p.sealIn(d.cfg.Data)
		for _, name := range []string{p.id, strings.ToUpper(p.id)} {
			l := one(t, addr, "/sessions/"+name)
			if l.Session != p.id || l.State != "sealed" || l.NextTick != end || len(l.Digest) != 64 || l.EndedAt == nil || !strings.HasPrefix(l.File, "sealed/") {
				t.Errorf("%+v, want session %q sealed before tick %d", l, p.id, end)
			}
		}
	}
	for _, name := range []string{"never", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%00", "%ff%fe", "a%20b", strings.Repeat("y", 1000)} {
		code, body := get(t, addr, "/sessions/"+name)
		var answer struct{ Error string }
		if err := json.Unmarshal([]byte(body), &answer); code != http.StatusNotFound || err != nil || !strings.Contains(answer.Error, "never used") {
			t.Errorf("/sessions/%.40s: %d %.200q (%v), want 404 with the reason", name, code, body, err)
		}
	}
}

func sessions(t testing.TB, addr, path string) (list []listed) {
	t.Helper()
	_, body := get(t, addr, path)
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil || d.Decode(new(any)) != io.EOF {
		t.Fatalf("%s: %v in %q", path, err, body)
	}
	return list
}

func one(t testing.TB, addr, path string) (l listed) {
	t.Helper()
	_, body := get(t, addr, path)
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("%s: %v in %q", path, err, body)
	}
	return l
}

// A detached session says when it ends.
func TestDetachedInListing(t *testing.T) {
	d, _ := onBrittleDisk(t)
	c := dial(t, d.server.Addr().String(), d.pair.Fingerprint().String())
	p := match{id: "a", seed: 1}.play(t, c)
	p.tick()
	if err := p.rec.Close(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	addr := d.httpAddr.String()
	eventually(t, "the session is detached", func() bool { return one(t, addr, "/sessions/a").State == "detached" })
	l := one(t, addr, "/sessions/a")
	if l.EndsAt == nil || time.Until(*l.EndsAt) > d.cfg.ResumeTimeout.Duration || time.Until(*l.EndsAt) < d.cfg.ResumeTimeout.Duration-patience {
		t.Errorf("%+v, want it to end in %v", l, d.cfg.ResumeTimeout)
	}
	if got := figures(t, addr)["reprise_sessions/detached"]; got != 1 {
		t.Errorf("%s detached sessions are counted, want 1", strconv.FormatFloat(got, 'g', -1, 64))
	}
}
