package app

//lint:file-ignore SA4006 the README's sample leaves out what to do with errors

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reprise/format"
	"reprise/transport"
)

// recordAsInReadme is the README's sample; it has to compile.
func recordAsInReadme(ctx context.Context, pin string, meta format.Metadata, book *format.CodeBook, playing func() bool, inputs func() []readmeInput, simulate func(), stateHash func() []byte) error {
	// README begins
	tls, err := transport.Trust{Pin: pin}.Config()
	client, err := transport.Dial(ctx, []string{"recorder.example:4433"}, transport.ClientConfig{TLS: tls})
	match, err := client.Open(transport.Spec{Meta: meta, Book: book}) // meta.Session is the match's id
	for playing() {
		for _, in := range inputs() {
			err = match.Step(in.Code, format.Int(in.Player), format.Int(in.Unit))
		}
		tick := match.NextTick()
		err = match.EndTick() // before you simulate: the input that crashes the game is recorded
		simulate()
		err = match.Hash(tick, stateHash()) // may come late and out of order
	}
	err = match.Seal(ctx) // every tick is durable, the file is finished
	// README ends
	return err
}

type readmeInput struct {
	Code         uint16
	Player, Unit int64
}

func TestReadmeSampleCompiles(t *testing.T) {
	_ = recordAsInReadme
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(source), "\t// README begins\n")
	sample, _, _ = strings.Cut(sample, "\t// README ends\n")
	sample = strings.ReplaceAll("\n"+sample, "\n\t", "\n")
	if readme := content(t, "../../../README.md"); !strings.Contains(readme, "```go"+sample+"```\n") {
		t.Errorf("the README's sample is not this one:%s", sample)
	}
}

// The README's program that links a game is complete.
func TestReadmeProgramCompiles(t *testing.T) {
	_, program, found := strings.Cut(content(t, "../../../README.md"), "```go\npackage main\n")
	if !found {
		t.Fatal("the README has no program")
	}
	program, _, _ = strings.Cut(program, "```\n")
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte("package main\n"+program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Every command of the README's examples is there, with its flags.
func TestReadmeNamesRealFlags(t *testing.T) {
	for _, word := range strings.FieldsFunc(content(t, "../../../README.md"), func(r rune) bool { return strings.ContainsRune(" \n`\"()|,.;:", r) }) {
		if !strings.HasPrefix(word, "--") || len(word) < 4 {
			continue
		}
		found := false
		for _, command := range newRoot().Commands() {
			found = found || command.Flags().Lookup(word[2:]) != nil
		}
		if daemons := word == "--health" || word == "--help" || word == "--tokens" || word == "--version"; !found && !daemons {
			t.Errorf("%s is no flag of any command", word)
		}
	}
}
