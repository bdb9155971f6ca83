package format

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"runtime"
)

// Keys of the facts about a machine in Metadata.Env. They stand in files and
// must not change. None of them tells whose machine it is, or where.
const (
	// EnvOS and EnvArch are the operating system and the processor's
	// architecture, as Go names them.
	EnvOS   = "os"
	EnvArch = "arch"
	// EnvCPU is the processor's model.
	EnvCPU = "cpu"
	// EnvFused is "yes" where a product and a sum of floats are rounded once,
	// together, and "no" where each is.
	EnvFused = "float_fused"
	// EnvFloat is a short digest of many float results. Where it differs, a
	// game that computes with floats cannot be in lockstep.
	EnvFloat = "float"
)

// Machine gives the facts of the machine that this program runs on; cpu is the
// processor's model, empty where it is not known.
func Machine(cpu string) []Label {
	facts := []Label{{EnvOS, runtime.GOOS}, {EnvArch, runtime.GOARCH}}
	if cpu != "" {
		facts = append(facts, Label{EnvCPU, cpu})
	}
	probe := thisProbe()
	return append(facts, Label{EnvFused, probe.fused()}, Label{EnvFloat, probe.digest()})
}

// FactDifference is a fact that two machines do not share.
type FactDifference struct{ Key, Recorded, Present string }

// CompareMachines lists the facts that differ, in the order of the recorded
// ones, and counts those that both have. A fact that only one of them has says
// nothing.
func CompareMachines(recorded, present []Label) (differences []FactDifference, compared int) {
	for _, r := range recorded {
		for _, p := range present {
			if p.Key != r.Key {
				continue
			}
			compared++
			if p.Value != r.Value {
				differences = append(differences, FactDifference{r.Key, r.Value, p.Value})
			}
			break
		}
	}
	return differences, compared
}

// floatProbe is the float arithmetic to be looked at.
type floatProbe struct {
	mulAdd   func(x, y, z float64) float64
	mulAdd32 func(x, y, z float32) float32
	unary    []func(float64) float64
	binary   []func(x, y float64) float64
	toInt    func(float64) int64
}

// thisProbe is the arithmetic as it was compiled into this program. Its order
// is part of the digest.
func thisProbe() *floatProbe {
	return &floatProbe{
		mulAdd:   func(x, y, z float64) float64 { return x*y + z },
		mulAdd32: func(x, y, z float32) float32 { return x*y + z },
		unary: []func(float64) float64{math.Sqrt, math.Exp, math.Exp2, math.Expm1, math.Log, math.Log2, math.Log1p, math.Sin, math.Cos, math.Tan,
			math.Asin, math.Atan, math.Sinh, math.Tanh, math.Cbrt, math.Gamma, math.Erf, math.Floor, math.Trunc, math.RoundToEven},
		binary: []func(x, y float64) float64{math.Pow, math.Atan2, math.Hypot, math.Mod, math.Remainder,
			func(x, y float64) float64 { return x + y }, func(x, y float64) float64 { return x / y }},
		toInt: func(x float64) int64 { return int64(x) },
	}
}

// probed are the operands: with many digits, at the edges of rounding, very
// large and very small.
var probed = []float64{0.1, 1.0 / 3, 0.7071067811865476, 1.5, 2.5, -3.3, 123.456, 1e-8, 6.02e23, -9.75e18, 5e-324, 1.7e308}

// fused tells whether a product and a sum are rounded once: the square of
// 1 + 2^-30 loses its last digit where it is rounded by itself.
func (p *floatProbe) fused() string {
	x := 1 + 0x1p-30
	if p.mulAdd(x, x, -(1+0x1p-29)) != 0 {
		return "yes"
	}
	return "no"
}

// digest gives 16 hex digits.
func (p *floatProbe) digest() string {
	var b []byte
	add := func(v float64) {
		if v != v {
			v = math.NaN() // which of them is no matter of arithmetic
		}
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	for i, x := range probed {
		y := probed[(i+1)%len(probed)]
		z := -x * y
		add(p.mulAdd(x, y, z))
		add(p.mulAdd(x, x, y))
		add(float64(p.mulAdd32(float32(x), float32(y), float32(z))))
		for _, f := range p.unary {
			add(f(x))
		}
		for _, f := range p.binary {
			add(f(x, y))
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(p.toInt(x)))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
