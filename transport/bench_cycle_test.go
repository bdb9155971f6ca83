package transport

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"reprise/format"
)

// cycle is many recordings of a few clients, whose goroutines' work is done
// one after the other, so that each can be timed.
type cycle struct {
	links []*link
	bufs  [][]byte
	all   []*Recording
	// sent are the chunks of the last slots, by link.
	sent  [][][]ack
	count int
}

const (
	cycleSlots = 50 // of a millisecond: 20 Hz
	cycleAcks  = 30 // slots until a chunk is confirmed
)

func newCycle(b *testing.B, clients, recordings int) *cycle {
	y := &cycle{bufs: make([][]byte, clients)}
	for range clients {
		c := newClient(&addresses{list: []string{"a:1"}}, ClientConfig{})
		l := &link{client: c, ended: make(chan struct{})}
		c.link, y.links = l, append(y.links, l)
	}
	for n := range recordings {
		l := y.links[n%clients]
		s := benchSpec(fmt.Sprint("s", n))
		r, err := l.client.newRecording(&s)
		if err != nil {
			b.Fatal(err)
		}
		l.sessions = append(l.sessions, r)
		r.link, r.alias, r.live, r.q.window = l, uint64(len(l.sessions)), true, 1<<20
		y.all = append(y.all, r)
	}
	return y
}

// slot plays the recordings of one millisecond and does what is due then.
func (y *cycle) slot(b *testing.B, n int, spent *[4]time.Duration) {
	start := time.Now()
	for i := n % cycleSlots; i < len(y.all); i += cycleSlots {
		r := y.all[i]
		r.Step(1, format.Int(int64(n)), format.Int(17), format.Int(-40000))
		r.EndTick()
	}
	spent[0] += lap(&start)
	for _, l := range y.links {
		y.keep(l.client)
	}
	spent[1] += lap(&start)
	for i, l := range y.links {
		y.bufs[i], _ = l.gather(y.bufs[i][:0])
	}
	spent[2] += lap(&start)
	acks := make([][]ack, len(y.links))
	for i, buf := range y.bufs {
		acks[i] = y.acks(buf)
	}
	y.sent = append(y.sent, acks)
	lap(&start)
	if len(y.sent) > cycleAcks {
		for i, l := range y.links {
			if err := l.acked(y.sent[0][i]); err != nil {
				b.Fatal(err)
			}
		}
		y.sent = y.sent[1:]
		spent[3] += lap(&start)
	}
}

// lap is the time since start, which becomes now.
func lap(start *time.Time) time.Duration {
	d := time.Since(*start)
	*start = start.Add(d)
	return d
}

// acks answers the chunks of a write.
func (y *cycle) acks(buf []byte) (acks []ack) {
	for len(buf) > 0 {
		_, length, head, _ := frameHead(buf)
		alias, chunk, _ := parseChunk(buf[head : head+length])
		seq, _ := binary.Uvarint(chunk[10:])
		acks = append(acks, ack{alias: alias, received: seq, durable: seq})
		buf = buf[head+length:]
		y.count++
	}
	return acks
}

// BenchmarkCycle times what a tick of one step costs where ten thousand
// recordings of eight clients take turns, at 20 Hz: inside the game's calls,
// in the keeper, in the sender, and for the acks.
func BenchmarkCycle(b *testing.B) {
	y := newCycle(b, 8, 10_000)
	var spent [4]time.Duration
	n := 0
	for ; n < 400; n++ {
		y.pass(n)
		y.slot(b, n, &spent)
	}
	spent, y.count = [4]time.Duration{}, 0
	ticks := 0
	b.ReportAllocs()
	for b.Loop() {
		for range 400 {
			y.pass(n)
			y.slot(b, n, &spent)
			n++
		}
		ticks += 400 * len(y.all) / cycleSlots
	}
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(ticks) }
	b.ReportMetric(each(spent[0]), "ns-game/tick")
	b.ReportMetric(each(spent[1]), "ns-keeper/tick")
	b.ReportMetric(each(spent[2]), "ns-sender/tick")
	b.ReportMetric(each(spent[3]), "ns-acks/tick")
	b.ReportMetric(each(spent[0]+spent[1]+spent[2]+spent[3]), "ns/tick")
	b.ReportMetric(float64(ticks)/float64(y.count), "ticks/chunk")
}

// pass makes it so many milliseconds since the clients began.
func (y *cycle) pass(n int) {
	for _, l := range y.links {
		l.client.began = time.Now().Add(-time.Duration(n) * time.Millisecond)
	}
}

func (y *cycle) keep(c *Client) { c.cutDue() }
