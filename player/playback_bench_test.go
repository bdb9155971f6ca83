package player_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reprise/format"
	"reprise/player"
	"reprise/player/games/skirmish"
)

// tenHours is a long match in ticks. The bots' match ends earlier; the ticks
// behind its end have no steps, but the game simulates them all the same.
const tenHours = 10 * 3600 * 20

// longMatch records tenHours of the sample game, with a hash every second and
// a keyframe every frames ticks, if any.
func longMatch(b *testing.B, ticks, frames int) *format.File {
	b.Helper()
	live, err := skirmish.NewMatch(4, 4, "canyon-100")
	if err != nil {
		b.Fatal(err)
	}
	out := new(format.Buffer)
	w, err := format.NewWriter(out, live.Metadata(), skirmish.CodeBook())
	try := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	try(err)
	for n := range ticks {
		if frames > 0 && n%frames == 0 && n > 0 {
			try(w.Keyframe(format.Keyframe{NextTick: format.Tick(n), State: live.Game().Save(nil)}))
		}
		_, commands, done := live.Next()
		if !done {
			for _, c := range commands {
				try(w.Step(c.Op, c.AppendParams(nil)...))
			}
		}
		try(w.EndTick())
		if done {
			try(live.Game().EndTick(format.Tick(n)))
		} else {
			try(live.Simulate())
		}
		if n%20 == 0 {
			try(w.Hash(format.Tick(n), live.Game().Hash(nil)))
		}
	}
	try(w.Finish(format.EndSealed, ""))
	f, err := format.NewFile(out, int64(len(out.Bytes())))
	try(err)
	return f
}

// BenchmarkSeek seeks to random ticks of a ten-hour match that was played once,
// with the default budget of memory for keyframes.
func BenchmarkSeek(b *testing.B) {
	file := longMatch(b, tenHours, 0)
	p := player.NewPlayback(file, skirmish.Factory().Simulation(), player.PlaybackOptions{})
	began := time.Now()
	if err := p.Play(context.Background(), tenHours); err != nil {
		b.Fatal(err)
	}
	first := time.Since(began)
	rng := rand.New(rand.NewPCG(1, 1))
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := p.Seek(context.Background(), format.Tick(rng.IntN(tenHours))); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	at := func(p float64) float64 { return times[min(len(times)-1, int(p*float64(len(times))))].Seconds() * 1e3 }
	n, bytes := p.Kept()
	b.ReportMetric(at(0.5), "ms-p50")
	b.ReportMetric(at(0.99), "ms-p99")
	b.ReportMetric(float64(n), "keyframes")
	b.ReportMetric(float64(bytes)/(1<<20), "MiB")
	b.ReportMetric(first.Seconds(), "s-first-pass")
}

// BenchmarkSegments verifies one match with a keyframe every 1,000 ticks, with
// one simulation and with two, in turn: the ratio of the pairs is what counts.
func BenchmarkSegments(b *testing.B) {
	file := longMatch(b, 40_000, 1000)
	run := func(jobs int) time.Duration {
		began := time.Now()
		o := player.SegmentOptions{Jobs: jobs, Simulation: func() (player.Simulation, func(), error) {
			return skirmish.Factory().Simulation(), func() {}, nil
		}}
		if _, err := player.VerifySegments(context.Background(), file, o); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	var ratios []float64
	for b.Loop() {
		one := run(1)
		ratios = append(ratios, one.Seconds()/run(2).Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "times-faster")
	b.ReportMetric(float64(len(ratios)), "pairs")
}

// BenchmarkKeyframeFile opens a one-hour match with the side file of an earlier
// playback, and seeks to its end: the time until a picture is there.
func BenchmarkKeyframeFile(b *testing.B) {
	const ticks = tenHours / 10
	file := longMatch(b, ticks, 0)
	p := player.NewPlayback(file, skirmish.Factory().Simulation(), player.PlaybackOptions{})
	began := time.Now()
	if err := p.Play(b.Context(), ticks); err != nil {
		b.Fatal(err)
	}
	first := time.Since(began)
	var side bytes.Buffer
	began = time.Now()
	keyframes, err := p.WriteKeyframes(&side, "skirmish", player.KeyframeFileLimit)
	if err != nil {
		b.Fatal(err)
	}
	written := time.Since(began)
	for b.Loop() {
		p := player.NewPlayback(file, skirmish.Factory().Simulation(), player.PlaybackOptions{})
		if _, err := p.ReadKeyframes(bytes.NewReader(side.Bytes()), "skirmish", player.KeyframeFileLimit); err != nil {
			b.Fatal(err)
		}
		if err := p.Seek(b.Context(), ticks); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms-to-the-end")
	b.ReportMetric(float64(keyframes), "keyframes")
	b.ReportMetric(float64(side.Len())/(1<<20), "MiB")
	b.ReportMetric(written.Seconds(), "s-to-write")
	b.ReportMetric(first.Seconds(), "s-first-pass")
	b.ReportMetric(0, "ns/op")
}
