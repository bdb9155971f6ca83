package daemon

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"reprise/configs"
)

func noEnv(string) (string, bool) { return "", false }

func load(t *testing.T, file string, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "reprised.toml")
		if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := Default()
	fs := pflag.NewFlagSet("reprised", pflag.ContinueOnError)
	c.Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	err := c.Load(path, func(name string) (string, bool) { v, ok := env[name]; return v, ok }, fs)
	return c, err
}

// The documented file gives every key, each with its default.
func TestDocumentedFile(t *testing.T) {
	c, err := load(t, string(configs.Reprised), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); !reflect.DeepEqual(c, want) {
		t.Errorf("the documented file gives\n%+v\nthe defaults are\n%+v", c, want)
	}
	c.eachKey(func(name, help string, _ reflect.Value) {
		if !strings.Contains(string(configs.Reprised), "\n"+name+" = ") {
			t.Errorf("key %s is not in the documented file", name)
		}
		if help == "" {
			t.Errorf("key %s has no help", name)
		}
	})
}

func TestPrecedence(t *testing.T) {
	file := "segments = 5\nlog_level = \"warn\"\nresume_timeout = \"1m\"\n"
	env := map[string]string{"REPRISE_LOG_LEVEL": "error", "REPRISE_RESUME_TIMEOUT": "2m"}
	c, err := load(t, file, env, "--resume-timeout", "3m")
	if err != nil {
		t.Fatal(err)
	}
	if c.Segments != 5 || c.LogLevel != "error" || c.ResumeTimeout.String() != "3m0s" {
		t.Errorf("segments %d from the file, log level %q from the environment, resume timeout %v from the flag", c.Segments, c.LogLevel, c.ResumeTimeout)
	}
}

func TestBadConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		file, want string
		env        map[string]string
	}{
		"unknown key":         {file: "data = \"x\"\n\nsesion_window = 5\n", want: `line 3: unknown key "sesion_window"`},
		"syntax":              {file: "data = \"x\"\nlisten = \n", want: "line 2"},
		"bare duration":       {file: "resume_timeout = 5\n", want: `"5" is not a time span`},
		"bad duration":        {file: "data = \"x\"\nresume_timeout = \"5 parsecs\"\n", want: "line 2"},
		"negative size":       {file: "tail_bytes = -1\n", want: "tail_bytes must be above 0"},
		"zero segments":       {file: "segments = 0\n", want: "segments is 0"},
		"log format":          {file: "log_format = \"xml\"\n", want: "log_format"},
		"off loopback":        {file: "listen = \"0.0.0.0:4433\"\n", want: "allow_unauthenticated"},
		"half a certificate":  {file: "tls_cert = \"a.pem\"\n", want: "tls_key"},
		"environment":         {env: map[string]string{"REPRISE_SEGMENTS": "many"}, want: "REPRISE_SEGMENTS"},
		"listen without port": {file: "listen = \"localhost\"\n", want: "HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.file, c.env)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	c := Default()
	fs := pflag.NewFlagSet("reprised", pflag.ContinueOnError)
	c.Flags(fs)
	if err := c.Load(filepath.Join(t.TempDir(), "none.toml"), noEnv, fs); err == nil || !strings.Contains(err.Error(), "none.toml") {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "65536": 65536, "64KiB": 65536, "1 MiB": 1 << 20, "3GiB": 3 << 30, "7B": 7} {
		var s Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q gives %d, %v; want %d", text, s, err, want)
		}
		var back Size
		if err := back.Set(s.String()); err != nil || back != s {
			t.Errorf("%d prints as %q, which gives %d, %v", s, s.String(), back, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "9999999999GiB", "5KB", "x"} {
		var s Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q gives %d, want an error", text, s)
		}
	}
}
