package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"reprise/recorder"
	"reprise/transport"
)

// metrics reads the figures of recorder and transport when they are asked
// for. The descriptions below are the one place that says what each means.
type metrics struct{ d *Daemon }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("reprise_"+name, help, labels, nil)
}

var (
	descSessions    = describe("sessions", "Sessions that have not ended, by state.", "state")
	descEnded       = describe("sessions_ended_total", "Sessions that have ended, by how.", "state")
	descRefused     = describe("refused_total", "Requests and chunks that were refused, by reason.", "reason")
	descTrouble     = describe("trouble", "1 for each part that does not work at this moment, which /readyz explains.", "part")
	descPending     = describe("pending_bytes", "Bytes in memory that are not in session files yet.")
	descSegments    = describe("journal_segments", "Segments of the journal.")
	descSegUsed     = describe("journal_segments_used", "Segments of the journal that hold records which no checkpoint has freed.")
	descFlushes     = describe("journal_flushes_total", "Flushes of the journal, each with one sync.")
	descFlushTime   = describe("journal_flush_seconds_total", "Time spent in flushes.")
	descFlushed     = describe("journal_flushed_sessions_total", "Sessions that shared flushes, counted for each flush.")
	descLastFlush   = describe("journal_last_flush_seconds", "Time that the last flush took.")
	descSlowest     = describe("journal_slowest_flush_seconds", "Time that the slowest flush since the start took.")
	descCheckpoints = describe("checkpoints_total", "Checkpoints: session files synced, journal freed.")
	descLastCheck   = describe("last_checkpoint_seconds", "Time that the last checkpoint took.")
	descErrors      = describe("disk_errors_total", "Failed writes and syncs, by part. Nothing acknowledged was lost by them.", "part")
	descRecovered   = describe("recovered_records", "Journal records that the start replayed.")

	descConnections = describe("connections", "Connections of game servers.")
	descHandshakes  = describe("handshakes", "Connections that are being established.")
	descConnected   = describe("connected_sessions", "Sessions open on connections.")
	descOpened      = describe("sessions_opened_total", "Sessions that were opened or resumed on a connection.")
	descChunks      = describe("received_chunks_total", "Chunks received.")
	descBytes       = describe("received_bytes_total", "Bytes of chunks received.")
	descAcks        = describe("acknowledgements_total", "Acknowledgements sent.")
	descCut         = describe("connections_cut_total", "Connections ended by the daemon, by reason.", "reason")
	descExpiry      = describe("certificate_expiry_timestamp_seconds", "When the certificate in use ends to be valid, in seconds since 1970.")
)

// troubleConfiguration is the part that a refused reload troubles.
const troubleConfiguration = "configuration"

// sample gives one figure.
type sample func(d *prometheus.Desc, v float64, labels ...string)

// Describe lists nothing: the set of labels depends on what happens.
func (m metrics) Describe(chan<- *prometheus.Desc) {}

// Collect gives the present figures.
func (m metrics) Collect(out chan<- prometheus.Metric) {
	of := func(t prometheus.ValueType) sample {
		return func(d *prometheus.Desc, v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, t, v, labels...)
		}
	}
	gauge, counter := of(prometheus.GaugeValue), of(prometheus.CounterValue)
	s := m.d.recorder.Stats()
	collectSessions(&s, gauge, counter)
	collectDisk(&s, gauge, counter)
	m.d.collectArchive(gauge, counter)
	connections := m.d.server.Stats()
	connections.RefusedConnections += m.d.gate.turnedAway.Load()
	collectConnections(connections, gauge, counter)
	if m.d.refusedReload.Load() != nil {
		gauge(descTrouble, 1, troubleConfiguration)
	}
	gauge(descExpiry, float64(m.d.pair.NotAfter().Unix()))
}

func collectSessions(s *recorder.Stats, gauge, counter sample) {
	for _, state := range [...]recorder.State{recorder.StateLive, recorder.StateDetached, recorder.StateEnding, recorder.StateQuarantined} {
		gauge(descSessions, float64(s.Sessions[state]), state.String())
	}
	counter(descEnded, float64(s.Sealed), "sealed")
	counter(descEnded, float64(s.Unfinished), "unfinished")
	for code, n := range s.Refused {
		counter(descRefused, float64(n), code.String())
	}
}

func collectDisk(s *recorder.Stats, gauge, counter sample) {
	for part := range s.Troubles {
		gauge(descTrouble, 1, part)
	}
	gauge(descPending, float64(s.PendingBytes))
	gauge(descSegments, float64(s.Segments))
	gauge(descSegUsed, float64(s.SegmentsUsed))
	counter(descFlushes, float64(s.Flushes))
	counter(descFlushTime, s.FlushTime.Seconds())
	counter(descFlushed, float64(s.FlushedSessions))
	gauge(descLastFlush, s.LastFlush.Seconds())
	gauge(descSlowest, s.SlowestFlush.Seconds())
	counter(descCheckpoints, float64(s.Checkpoints))
	gauge(descLastCheck, s.LastCheckpoint.Seconds())
	counter(descErrors, float64(s.JournalErrors), "journal")
	counter(descErrors, float64(s.FileErrors), "files")
	gauge(descRecovered, float64(s.Recovered))
}

func collectConnections(s transport.ServerStats, gauge, counter sample) {
	gauge(descConnections, float64(s.Connections))
	gauge(descHandshakes, float64(s.Handshakes))
	gauge(descConnected, float64(s.Sessions))
	counter(descOpened, float64(s.Opened))
	counter(descChunks, float64(s.Chunks))
	counter(descBytes, float64(s.Bytes))
	counter(descAcks, float64(s.Acks))
	for _, c := range [...]struct {
		reason string
		n      uint64
	}{{"malformed", s.Malformed}, {"slow", s.Slow}, {"silent", s.Silent}, {"refused", s.RefusedConnections}} {
		counter(descCut, float64(c.n), c.reason)
	}
}
