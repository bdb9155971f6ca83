package skirmish

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestRootIsExact(t *testing.T) {
	check := func(v uint64) {
		want := new(big.Int).Sqrt(new(big.Int).SetUint64(v)).Uint64()
		if got := root(v); got != want {
			t.Fatalf("root(%d) is %d, want %d", v, got, want)
		}
	}
	for v := range uint64(5000) {
		check(v)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		v := r.Uint64() >> r.IntN(64)
		check(v)
		n := v >> 33
		check(n * n)
		check(n*n - min(n, 1))
	}
	check(1<<64 - 1)
}

func TestRandomIsSplitmix64(t *testing.T) {
	r := random(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431} {
		if got := r.next(); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

func TestRandomBounds(t *testing.T) {
	r := random(9)
	seen := map[int]int{}
	for range 6000 {
		seen[r.between(-2, 3)]++
	}
	for v := -2; v <= 3; v++ {
		if seen[v] < 800 || seen[v] > 1200 {
			t.Errorf("%d came %d times of 6000, want about 1000", v, seen[v])
		}
	}
	if len(seen) != 6 {
		t.Errorf("numbers outside -2 to 3: %v", seen)
	}
}
