package app

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"reprise/cmd/internal/version"
)

// newRoot builds the whole command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "reprise",
		Version: version.Line("reprise"),
		Short:   "Load, check, replay and verify recordings of deterministic games",
		Long: `reprise works on replays: the inputs of a deterministic game, recorded tick by
tick, with hashes of the game's state.

FILE is a replay, live, finished or torn (.rply, RPLY1 or RPLY2, or JSON lines),
also wrapped in .zst or .gz; "-" is standard input. Commands that only read
never change the file. Results go to standard output, messages to standard
error. "reprise help exit-codes" explains the exit codes.`,
		Example: `  reprise demo
  reprise info match.rply
  reprise verify replays/`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(misused)
	root.AddCommand(newInfo(), newLs(), newCat(), newCheck(), newDiff(), newToken(), newKeygen(), newPin(), newUnpin(), newPrune(), newDaemon(), newExitCodes())
	for _, cmd := range []*cobra.Command{newRepair(), newConvert(), newArchive(), newClip(), newEdit(), newMerge(), newSign(), newRedact(), newPlay(), newVerify(), newBisect(), newBench(), newRebase(), newRecord(), newDemo(), newLoad(), newShip()} {
		cmd.RunE = untilInterrupted(cmd.RunE)
		root.AddCommand(cmd)
	}
	for _, cmd := range root.Commands() {
		cmd.Args = usageArgs(cmd.Args)
	}
	root.Args = usageArgs(unknownCommand)
	root.SetHelpCommand(newHelp())
	cobra.AddTemplateFunc("plain", func(flags string) string { return strings.ReplaceAll(flags, "[=true|false]", "             ") })
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	root.SetVersionTemplate("{{.Version}}\n")
	return root
}

// usageTemplate is cobra's, in which flags are plain and "reprise" alone is
// not shown as a way to use the program.
func usageTemplate(template string) string {
	return strings.NewReplacer(".FlagUsages |", ".FlagUsages | plain |", "{{if .Runnable}}", "{{if and .Runnable .HasParent}}").Replace(template)
}

// misused is the error of a command line that cannot be understood.
func misused(cmd *cobra.Command, err error) error {
	return &exitError{exitUsage, &hintedError{err, fmt.Sprintf("see %q", cmd.CommandPath()+" --help")}}
}

// usageArgs makes the refusal of arguments a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(cmd, args); err != nil {
			return misused(cmd, err)
		}
		return nil
	}
}

// atLeastOne refuses a command line that names nothing to work on.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("name at least one %s", what)
		}
		return nil
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// newHelp is cobra's help, except that it fails for a command that is not
// there.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return misused(cmd.Root(), unknownCommand(cmd, args))
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

func newExitCodes() *cobra.Command {
	var b strings.Builder
	b.WriteString("Exit codes of reprise:\n\n")
	for code, sentence := range exitSentences {
		fmt.Fprintf(&b, "  %d  %s\n", code, sentence)
	}
	b.WriteString("\nOver several files the code of the worst one is given; --json has one for each.")
	return &cobra.Command{
		Use: "exit-codes", Short: "What the exit codes mean", Long: b.String(), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// untilInterrupted gives a command a context that ends with the first Ctrl-C
// or SIGTERM; the second one ends the process.
func untilInterrupted(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
}
