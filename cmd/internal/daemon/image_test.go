//go:build unix

package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// image is what the Dockerfile makes a container run.
type image struct {
	user               uint32
	env                []string
	entrypoint, health []string
	example            string
}

// root is the folder of the project.
const root = "../../.."

func readImage(t testing.TB) image {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	last := string(b)[strings.LastIndex(string(b), "\nFROM "):]
	find := func(pattern string) string {
		m := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringSubmatch(last)
		if m == nil {
			t.Fatalf("the Dockerfile has no %s", pattern)
		}
		return m[1]
	}
	list := func(s string) (l []string) {
		if err := json.Unmarshal([]byte(s), &l); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return l
	}
	user, err := strconv.ParseUint(find(`USER (\d+):\d+`), 10, 32)
	if err != nil || user == 0 {
		t.Fatalf("user %d (%v), want one without rights", user, err)
	}
	example := regexp.MustCompile(`(?m)^#   (docker run .*)$`).FindStringSubmatch(string(b))
	if example == nil {
		t.Fatal("the Dockerfile shows no docker run")
	}
	return image{user: uint32(user), env: strings.Fields(find(`ENV (.*)`)), entrypoint: list(find(`ENTRYPOINT (\[.*\])`)),
		health: list(find(`HEALTHCHECK .*CMD (\[.*\])`)), example: example[1]}
}

// exampleEnv is the environment that the documented docker run adds.
func (i *image) exampleEnv() (env []string) {
	for _, m := range regexp.MustCompile(`-e (\S+)`).FindAllStringSubmatch(i.example, -1) {
		env = append(env, m[1])
	}
	return env
}

// The image started without a word of who may reach it refuses, and says what
// to do: the documented command does that.
func TestImageRefusesOpenNetwork(t *testing.T) {
	i := readImage(t)
	p := launch(t, append(i.env, "REPRISE_DATA="+filepath.Join(t.TempDir(), "data")))
	if code := p.ExitCode(patience); code != exitUsage || !strings.Contains(p.Log.String(), "REPRISE_ALLOW_UNAUTHENTICATED") {
		t.Errorf("exit code %d, log %q; want %d and the remedy", code, &p.Log, exitUsage)
	}
	if env := strings.Join(i.exampleEnv(), " "); env != "REPRISE_ALLOW_UNAUTHENTICATED=true" {
		t.Errorf("the documented command sets %q, want what the refusal names", env)
	}
	if !strings.Contains(i.example, "127.0.0.1:4433:4433/udp") {
		t.Errorf("the documented command %q publishes the port beyond this machine", i.example)
	}
}

// What the image runs starts as its user, with its environment, arguments
// and configuration; its health check finds it. The port alone is another, so
// that nothing listens beyond this machine.
func TestImage(t *testing.T) {
	switch {
	case !long():
		t.Skip("builds the program anew: set REPRISE_LONG=1")
	case os.Getuid() != 0:
		t.Skip("needs to be root to become the image's user")
	}
	i := readImage(t)
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "./cmd/reprised")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data := filepath.Join(dir, "data")
	for _, err := range []error{os.Mkdir(data, 0o755), os.Chown(data, int(i.user), int(i.user)), os.Chmod(dir, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	config, err := filepath.Abs(filepath.Join(root, "configs/reprised.toml"))
	if err != nil {
		t.Fatal(err)
	}
	readable := filepath.Join(dir, "reprised.toml")
	copyFile(t, config, readable)
	if err := os.Chmod(readable, 0o644); err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/usr/local/bin/", dir+"/", "/etc/reprise/reprised.toml", readable, "=/data", "="+data, "0.0.0.0:4433", "127.0.0.1:0", "127.0.0.1:8433", freePort(t))
	run := func(args []string) *exec.Cmd {
		var words []string
		for _, a := range args {
			words = append(words, here.Replace(a))
		}
		cmd := exec.Command(words[0], words[1:]...)
		// A container has none of this process's environment, and an empty
		// folder to begin with.
		cmd.Env, cmd.Dir = nil, "/"
		for _, e := range append(i.env, i.exampleEnv()...) {
			cmd.Env = append(cmd.Env, here.Replace(e))
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: i.user, Gid: i.user}}
		return cmd
	}
	p := launched(t, run(i.entrypoint))
	p.awaitReady()
	if out, err := run(i.health).CombinedOutput(); err != nil {
		t.Errorf("the health check fails: %v, %s", err, out)
	}
	m := match{id: "m", seed: 4}.play(t, dial(t, p.addr, p.pin))
	for range 50 {
		m.tick()
	}
	m.sealIn(data)
	p.Terminate()
	if code := p.ExitCode(patience); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if out, err := run(i.health).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("nothing answers on 127.0.0.1:")) {
		t.Errorf("the health check of a daemon that has ended: %v, %s", err, out)
	}
}

// The example unit fits the program: it waits for the ready line's moment,
// gives the watchdog time, and longer to drain than the daemon takes.
func TestServiceUnit(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "configs/reprised.service"))
	if err != nil {
		t.Fatal(err)
	}
	unit := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			unit[key] = value
		}
	}
	for key, want := range map[string]string{"Type": "notify", "ExecReload": "/bin/kill -HUP $MAINPID", "ProtectSystem": "strict", "RestartPreventExitStatus": strconv.Itoa(exitUsage)} {
		if unit[key] != want {
			t.Errorf("%s=%s, want %s", key, unit[key], want)
		}
	}
	stop, err := time.ParseDuration(unit["TimeoutStopSec"])
	if err != nil || stop <= Default().DrainTimeout.Duration {
		t.Errorf("TimeoutStopSec=%s (%v), want more than drain_timeout", unit["TimeoutStopSec"], err)
	}
	args := strings.Fields(unit["ExecStart"])
	if _, _, _, err := parse(args[3:], nil); err != nil || args[1] != "--config" {
		t.Errorf("ExecStart=%s: %v", unit["ExecStart"], err)
	}
	if verify, err := exec.LookPath("systemd-analyze"); err == nil {
		out, _ := exec.Command(verify, "verify", "--man=no", filepath.Join(root, "configs/reprised.service")).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			// The program is not installed here.
			if strings.Contains(line, "reprised.service") && !strings.Contains(line, "is not executable") {
				t.Errorf("systemd says: %s", line)
			}
		}
	}
}
