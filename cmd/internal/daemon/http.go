package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"reprise/format"
	"reprise/recorder"
)

// startHTTP serves metrics, health and the listing, if an address is given.
func (d *Daemon) startHTTP() {
	if d.tcp == nil {
		return
	}
	d.httpAddr, d.httpDone = d.tcp.Addr(), make(chan struct{})
	d.http = &http.Server{Handler: d.handler(), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelWarn)}
	go func() {
		defer close(d.httpDone)
		if err := d.http.Serve(d.tcp); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("http", "error", err)
		}
	}()
}

func (d *Daemon) stopHTTP() error {
	if d.http == nil {
		return nil
	}
	err := d.http.Close()
	<-d.httpDone
	return err
}

func (d *Daemon) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), metrics{d})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", d.serveReady)
	mux.HandleFunc("GET /sessions", d.serveSessions)
	mux.HandleFunc("GET /sessions/{id}", d.serveSession)
	return mux
}

// serveReady says whether all works: 503 and the reasons where it does not.
// Recording may go on nevertheless, from memory and spools. A reload that was
// refused takes nothing away from what works.
func (d *Daemon) serveReady(w http.ResponseWriter, _ *http.Request) {
	if why := d.notReady(); len(why) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, strings.Join(why, "\n"))
	} else {
		fmt.Fprintln(w, "ready")
	}
	if text := d.refusedReload.Load(); text != nil {
		fmt.Fprintf(w, "note: configuration: the last reload was refused: %s\n", *text)
	}
}

func (d *Daemon) notReady() []string {
	var why []string
	for part, text := range d.recorder.Stats().Troubles {
		why = append(why, fmt.Sprintf("degraded: %s: %s", part, text))
	}
	why = append(why, d.archiveTroubles()...)
	slices.Sort(why)
	if d.draining.Load() {
		why = append(why, "draining: the daemon is shutting down")
	}
	return why
}

// listed is one session in the listing.
type listed struct {
	Session string `json:"session"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	// File is its name below the data folder.
	File string `json:"file"`
	// Asleep is set until a session found at the start was read: its counts
	// are not known before.
	Asleep      bool        `json:"asleep,omitempty"`
	Ticks       uint64      `json:"ticks"`
	Steps       uint64      `json:"steps"`
	Hashes      uint64      `json:"hashes"`
	NextTick    format.Tick `json:"next_tick"`
	DurableTick format.Tick `json:"durable_tick"`
	Received    uint64      `json:"received"`
	Durable     uint64      `json:"durable"`
	Bytes       int64       `json:"bytes"`
	Pending     int64       `json:"pending_bytes"`
	// EndsAt is when a detached session ends as unfinished; EndedAt and
	// Digest are those of one that has ended.
	EndsAt  *time.Time `json:"ends_at,omitempty"`
	EndedAt *time.Time `json:"ended_at,omitempty"`
	Digest  string     `json:"digest,omitempty"`
}

func list(s *recorder.Status) listed {
	l := listed{Session: s.ID, State: s.State.String(), Reason: s.Reason, File: s.File, Asleep: s.Asleep, Ticks: s.Ticks, Steps: s.Steps, Hashes: s.Hashes,
		NextTick: s.NextTick, DurableTick: s.DurableTick, Received: s.Received, Durable: s.Durable, Bytes: s.Bytes, Pending: s.PendingBytes}
	if !s.Deadline.IsZero() {
		l.EndsAt = &s.Deadline
	}
	if s.Ended != nil {
		l.EndedAt, l.Digest = &s.Ended.EndedAt, s.Ended.Digest.String()
	}
	return l
}

// serveSessions lists the sessions that have not ended.
func (d *Daemon) serveSessions(w http.ResponseWriter, _ *http.Request) {
	all := []listed{}
	for _, s := range d.recorder.List() {
		all = append(all, list(&s))
	}
	writeJSON(w, http.StatusOK, all)
}

// serveSession gives one session, also one that has ended.
func (d *Daemon) serveSession(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	s, ok := d.recorder.Lookup(id)
	if !ok {
		writeJSON(w, http.StatusNotFound, map[string]string{"error": fmt.Sprintf("the id %.80q was never used", id)})
		return
	}
	d.place(&s)
	writeJSON(w, http.StatusOK, list(&s))
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client went away where this fails.
	_ = json.NewEncoder(w).Encode(v)
}
