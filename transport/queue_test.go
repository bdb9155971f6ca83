package transport

import (
	"math/rand/v2"
	"testing"
)

// The queue against a model: every chunk by its number, nothing else.
func TestQueueModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		q := newQueue()
		q.window = 300
		sizes := map[uint64]int{} // of what is not durable
		made, sent, durable := uint64(0), uint64(0), uint64(0)
		for range 300 {
			switch rnd.IntN(4) {
			case 0:
				if q.next() != made+1 {
					t.Fatalf("the next chunk is %d, expected %d", q.next(), made+1)
				}
				made++
				sizes[made] = 1 + rnd.IntN(100)
				q.push(&chunk{size: sizes[made]})
			case 1:
				c := q.unsent()
				if (c == nil) != (sent == made) {
					t.Fatalf("unsent %v, %d of %d sent", c, sent, made)
				}
				flying := flyingOf(sizes, durable, sent)
				if c == nil {
					continue
				}
				if allowed := flying == 0 || flying+sizes[sent+1] <= 300; q.allows(c.size) != allowed {
					t.Fatalf("allows %v with %d flying and %d more", !allowed, flying, c.size)
				}
				if c.size != sizes[sent+1] {
					t.Fatalf("chunk %d has %d bytes, expected %d", sent+1, c.size, sizes[sent+1])
				}
				q.markSent()
				sent++
			case 2:
				seq := durable + uint64(rnd.IntN(4))
				dropped := 0
				if ok := q.settle(seq, func(*chunk) { dropped++ }); ok != (seq <= sent) {
					t.Fatalf("settle %d with %d sent: %v", seq, sent, ok)
				}
				if seq <= sent && seq > durable {
					if dropped != int(seq-durable) {
						t.Fatalf("%d dropped", dropped)
					}
					for ; durable < seq; durable++ {
						delete(sizes, durable+1)
					}
				}
			case 3:
				received := durable + uint64(rnd.IntN(6)) - 1
				ok := q.resume(received)
				if want := received+1 >= durable+1 && received <= made; ok != want {
					t.Fatalf("resume after %d: %v; %d durable, %d made", received, ok, durable, made)
				}
				if ok {
					sent = received
				}
			}
			if int(q.flying) != flyingOf(sizes, durable, sent) {
				t.Fatalf("%d bytes fly, expected %d", q.flying, flyingOf(sizes, durable, sent))
			}
		}
	}
}

func flyingOf(sizes map[uint64]int, durable, sent uint64) (n int) {
	for seq := durable + 1; seq <= sent; seq++ {
		n += sizes[seq]
	}
	return n
}

func TestFifo(t *testing.T) {
	var f fifo[int]
	rnd := rand.New(rand.NewPCG(7, 8))
	var model []int
	for i := range 10_000 {
		if rnd.IntN(5) < 3 {
			f.push(i)
			model = append(model, i)
		} else if x, ok := f.pop(); ok != (len(model) > 0) || ok && x != model[0] {
			t.Fatalf("pop gives %d %v, expected %v", x, ok, model[:min(1, len(model))])
		} else if ok {
			model = model[1:]
		}
		if f.len() != len(model) {
			t.Fatalf("length %d, expected %d", f.len(), len(model))
		}
	}
}
