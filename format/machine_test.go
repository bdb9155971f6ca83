package format

import (
	"math"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"testing"
)

func TestMachineTellsFacts(t *testing.T) {
	facts := Machine("Model 5")
	want := []Label{{"os", runtime.GOOS}, {"arch", runtime.GOARCH}, {"cpu", "Model 5"}}
	if !slices.Equal(facts[:3], want) || len(facts) != 5 {
		t.Errorf("facts are %v, want %v and two more", facts, want)
	}
	if f := facts[3]; f.Key != "float_fused" || f.Value != "yes" && f.Value != "no" {
		t.Errorf("fused: %v", f)
	}
	if f := facts[4]; f.Key != "float" || !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(f.Value) {
		t.Errorf("float: %v", f)
	}
	if !slices.Equal(facts, Machine("Model 5")) {
		t.Error("two looks at one machine differ")
	}
	if none := Machine(""); len(none) != 4 || none[2].Key != "float_fused" {
		t.Errorf("without a model: %v", none)
	}
	if runtime.GOARCH == "amd64" && facts[3].Value != "no" {
		t.Error("this architecture is said to fuse")
	}
}

// TestProbeSeesEveryOperation changes one result of each operation by the
// least that there is, and wants another digest.
func TestProbeSeesEveryOperation(t *testing.T) {
	next := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	good := thisProbe().digest()
	changed := func(name string, change func(p *floatProbe)) {
		p := thisProbe()
		change(p)
		if p.digest() == good {
			t.Errorf("%s: a wrong result does not show", name)
		}
	}
	for i := range thisProbe().unary {
		changed("unary", func(p *floatProbe) {
			f := p.unary[i]
			p.unary[i] = func(x float64) float64 {
				if x == probed[1] {
					return next(f(x))
				}
				return f(x)
			}
		})
	}
	for i := range thisProbe().binary {
		changed("binary", func(p *floatProbe) {
			f := p.binary[i]
			p.binary[i] = func(x, y float64) float64 {
				if x == probed[2] {
					return next(f(x, y))
				}
				return f(x, y)
			}
		})
	}
	changed("conversion", func(p *floatProbe) {
		p.toInt = func(x float64) int64 {
			if x > math.MaxInt64 {
				return math.MaxInt64 - 1
			}
			return int64(x)
		}
	})
}

// TestProbeTellsFusedFromPlain compares both ways to round.
func TestProbeTellsFusedFromPlain(t *testing.T) {
	fused, plain := thisProbe(), thisProbe()
	fused.mulAdd = math.FMA
	plain.mulAdd = func(x, y, z float64) float64 { return float64(x*y) + z }
	plain.mulAdd32 = func(x, y, z float32) float32 { return float32(x*y) + z }
	if fused.fused() != "yes" || plain.fused() != "no" || fused.digest() == plain.digest() {
		t.Errorf("fused: %s %s, plain: %s %s", fused.fused(), fused.digest(), plain.fused(), plain.digest())
	}
	fused = thisProbe()
	fused.mulAdd, fused.mulAdd32 = plain.mulAdd, func(x, y, z float32) float32 { return float32(math.FMA(float64(x), float64(y), float64(z))) }
	if fused.digest() == plain.digest() {
		t.Error("fusing of short floats alone does not show")
	}
}

func TestCompareMachines(t *testing.T) {
	recorded := []Label{{"arch", "arm64"}, {"float", "1"}, {"os", "linux"}, {"driver", "5"}}
	present := []Label{{"os", "linux"}, {"arch", "amd64"}, {"cpu", "x"}, {"float", "2"}}
	got, compared := CompareMachines(recorded, present)
	want := []FactDifference{{"arch", "arm64", "amd64"}, {"float", "1", "2"}}
	if !reflect.DeepEqual(got, want) || compared != 3 {
		t.Errorf("%d compared, %v; want 3, %v", compared, got, want)
	}
	if got, compared := CompareMachines(nil, present); got != nil || compared != 0 {
		t.Errorf("without recorded facts: %d compared, %v", compared, got)
	}
}
