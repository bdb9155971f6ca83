package app

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wasmSamples is where the sample modules are.
func wasmSamples(t testing.TB) string {
	path, err := filepath.Abs("../../../player/wasm/samples")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Modules that offer the game "test", build "1", and at every tick
// trap or go round for ever.
const (
	trapModule = "" +
		"0061736d0100000001220660017f017f60000060017f0060027f7f017f60047f7f7f7f017f60037f7e7f017f0303020000050301000207" +
		"2d03066d656d6f727902000e726570726973655f62756666657200000f726570726973655f6d65737361676500010a4502060041808004" +
		"0b3c00418080042d000441e5004604404180080f0b418080042d000441e6004604404180100f0b418080042d000441eb0046044041b410" +
		"0f0b004190100b0b7104004180080b35310000000101000100000000000b00000074657374206d6f64756c650100000004000000746573" +
		"7401000000310400000000000000004180100b050100000002004190100b151100000004000000000000000000000000000000000041b4" +
		"100b09050000000900000000"
	hangModule = "" +
		"0061736d0100000001220660017f017f60000060017f0060027f7f017f60047f7f7f7f017f60037f7e7f017f0303020000050301000207" +
		"2d03066d656d6f727902000e726570726973655f62756666657200000f726570726973655f6d65737361676500010a4902060041808004" +
		"0b4000418080042d000441e5004604404180080f0b418080042d000441e6004604404180100f0b418080042d000441eb0046044041b410" +
		"0f0b03400c000b4190100b0b7104004180080b35310000000101000100000000000b00000074657374206d6f64756c6501000000040000" +
		"007465737401000000310400000000000000004180100b050100000002004190100b151100000004000000000000000000000000000000" +
		"000041b4100b09050000000900000000"
)

func TestModulesThatFail(t *testing.T) {
	folder := t.TempDir()
	replay := filepath.Join(folder, "test.jsonl")
	if err := os.WriteFile(replay, []byte(`{"game":"test","build":"1","seed":1,"tick_rate":30,"ticks":2,"hash_bytes":8}
{"t":0,"c":1,"a":[1]}
{"t":0,"hash":"0011223344556677"}
{"t":1,"hash":"0011223344556677"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ module, want string }{
		"trap.wasm": {trapModule, "tick 0: simulation trapped: unreachable"},
		"hang.wasm": {hangModule, "tick 0: simulation did not answer in time"},
	} {
		code, err := hex.DecodeString(c.module)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, code, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		args := []string{"verify", "--sim", "wasm:" + path, "--sim-timeout", "200ms", replay}
		if status := run(args, strings.NewReader(""), &out, &errs); status != exitSimulation || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: status %d, %s%s", name, status, &out, &errs)
		}
	}
}
