package recorder_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"reprise/format"
	"reprise/recorder"
)

// A producer opens a session, sends a tick, and seals it.
func Example() {
	dir, err := os.MkdirTemp("", "recorder")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, err := recorder.Open(recorder.Config{Dir: dir, SegmentBytes: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close(context.Background())

	meta := &format.Metadata{Session: "match-1", Game: "chess", Width: format.Width16}
	sealed := make(chan *recorder.SealInfo, 1)
	s, reply, err := r.OpenSession(recorder.OpenRequest{
		ID:       "match-1",
		Producer: [16]byte{1, 2, 3}, // random, and kept by the producer
		Epoch:    1,
		Opening:  format.AppendChunk(nil, format.ChunkMeta, 0, format.AppendMeta(nil, meta)),
		Notify: func(a recorder.Ack) {
			if a.Sealed != nil {
				sealed <- a.Sealed
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	b := format.NewBatchBuilder(meta.Width, 0, reply.NextTick)
	b.Step(1, format.String("e2"), format.String("e4"))
	b.EndTick()
	if err := s.Append(format.AppendChunk(nil, format.ChunkTicks, reply.Received+1, b.AppendBody(nil))); err != nil {
		log.Fatal(err)
	}
	if err := s.Seal(format.Totals{NextTick: 1, Ticks: 1, Steps: 1}); err != nil {
		log.Fatal(err)
	}
	info := <-sealed
	fmt.Println(info.State, info.Ticks, info.Steps)
	// Output: sealed 1 1
}
