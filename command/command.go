// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of hookgate: flags and wiring only. Programs with further groups of hooks call
// Main with them, and have every command of hookgate for these hooks, too.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/command/internal/ask"
	"github.com/hookgate/hookgate/command/internal/author"
	"github.com/hookgate/hookgate/command/internal/operate"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// version and commit are set by the linker, as the Makefile does: -ldflags "-X
// github.com/hookgate/hookgate/command.version=v1.2.3".
var version, commit string

// Main runs hookgate with the arguments of the process, and ends the process. All commands know Cluster API's hooks,
// Hookgate's own, and those of the groups.
func Main(groups ...gateway.Group) {
	cmdline.Stamp(version, commit)
	os.Exit(Run(untilSignal(), os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv, groups...))
}

// signalEcho is how long a signal may be the first one again: timeout(1) and others send it to the process, and to its
// group.
const signalEcho = time.Second / 4

// untilSignal returns a context that ends at SIGTERM or SIGINT. The second of them ends the program at once, also as
// the first process of a container, to which the kernel does not apply the default action.
func untilSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		first := time.Now()
		stop()
		second := <-signals
		for time.Since(first) < signalEcho {
			second = <-signals
		}
		time.AfterFunc(time.Second, func() { os.Exit(cmdline.ExitFailed) }) // nothing may read what is printed
		_, _ = fmt.Fprintf(os.Stderr, "hookgate: stopped at once by a second signal (%s)\n", second)
		os.Exit(cmdline.ExitFailed)
	}()
	return ctx
}

// Run runs hookgate in the process, and returns its exit status. Under the name kubectl-hookgate, it is the plug-in of
// kubectl. Unlike Main, it leaves signals, and the end of the process, to its caller.
func Run(
	ctx context.Context, program string, args []string, in io.Reader, out, errOut io.Writer,
	lookupEnv func(string) (string, bool), groups ...gateway.Group,
) int {
	started := false
	root, err := newRootCommand(func(cmd *cobra.Command) error {
		started = true
		return cmdline.FlagsFromEnvironment(cmd.Flags(), lookupEnv)
	}, groups...)
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "hookgate: the groups of hooks that this program was built with: %s\n", err)
		return cmdline.ExitFailed
	}
	if isPlugin(program) {
		asPlugin(root)
	} else {
		root.Annotations = map[string]string{cmdline.ProgramAnnotation: program}
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return cmdline.ExitDone
	}
	if exit, ok := errors.AsType[cmdline.ExitError](err); ok {
		return int(exit)
	}
	if !started {
		err = cmdline.UnknownCommand(root, err)
	}
	// A server may have sent parts of it, such as the reason of a status.
	shown := redact.Bounded(err.Error(), limits.MergedMessageBytes)
	_, _ = fmt.Fprintf(errOut, "hookgate: %s\n", text.PrintableLines(shown))
	var usage cmdline.UsageError
	if errors.As(err, &usage) || !started { // cobra itself finds unknown commands and flags, before anything starts
		_, _ = fmt.Fprintf(errOut, "Run %q for help.\n", cmd.CommandPath()+" --help")
		return cmdline.ExitUsage
	}
	if incomplete := (cmdline.IncompleteError{}); errors.As(err, &incomplete) {
		return cmdline.ExitUsage
	}
	return cmdline.ExitFailed
}

// newRootCommand returns the command with all others. The error is a mistake in the groups.
func newRootCommand(before func(*cobra.Command) error, more ...gateway.Group) (*cobra.Command, error) {
	groups := append([]gateway.Group{gateway.Infrastructure(), gateway.Machines()}, more...)
	hooks, versions, err := gateway.Hooks(groups...) // the only ones of the process
	if err != nil {
		return nil, err
	}
	root := &cobra.Command{
		Use:   "hookgate",
		Short: "The gateway between the Cluster API runtime and its Runtime Extensions",
		Long: "Hookgate calls Runtime Extensions on behalf of Cluster API, and of any other client that speaks\n" +
			"HTTPS JSON or gRPC. Every flag can also be set by an environment variable, for example\n" +
			"HOOKGATE_HTTP_ADDRESS for --http-address.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return before(cmd) },
	}
	root.SetFlagErrorFunc(cmdline.FlagError)
	root.DisableSuggestions = true // cmdline.UnknownCommand has its own
	cmdline.WrapHelp(root, nil)
	root.Version = cmdline.CurrentBuild().Version
	root.SetVersionTemplate("hookgate {{.Version}}\n")
	root.AddCommand(
		newServeCommand(hooks, versions), newMachinesCommand(hooks, versions),
		ask.NewCallCommand(hooks), ask.NewExplainCommand(hooks, versions),
		author.NewChainCommand(hooks, versions), author.NewRuleCommand(hooks, versions), operate.NewJobCommand(),
		operate.NewRolloutCommand(), operate.NewLiftCommand(hooks),
		ask.NewGetCommand(hooks), ask.NewDescribeCommand(),
		ask.NewDashboardCommand(hooks, operate.Actions(hooks)), ask.NewBugReportCommand(),
		ask.NewRecordCommand(), ask.NewReplayCommand(hooks),
		author.NewRenderCommand(),
		author.NewCheckCommand(hooks), author.NewPreflightCommand(hooks, versions),
		author.NewLintCommand(hooks), author.NewInitCommand(), operate.NewCallersCommand(),
		newInfrastructureCommand(hooks), newVersionCommand(),
	)
	return root, nil
}
