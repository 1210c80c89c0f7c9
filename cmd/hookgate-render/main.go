// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hookgate-render shows what Cluster API makes of a Cluster, with the patches of its extensions, and what a
// change of either would do. "hookgate render" runs it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/renderflags"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// version is the version of the release. The build sets it.
var version string

// ownVersion returns the version that the build has set or, in a program that go install has made, that of the module.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		return cmp.Or(info.Main.Version, "unknown")
	}
	return cmp.Or(version, "unknown")
}

// exitDifferent and exitUnknown are the exit statuses of a comparison that finds a difference, and of one that fails.
// All others are those of hookgate.
const (
	exitDifferent = 1
	exitUnknown   = 2
)

// errDifferent says that a render differs from what it was compared with.
var errDifferent = errors.New("the objects differ")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
	stop()
	os.Exit(code)
}

// run runs the program.
func run(
	ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, lookupEnv func(string) (string, bool),
) int {
	ctrl.SetLogger(logr.Discard()) // errors say what happened
	klog.SetLogger(logr.Discard())
	o, started := &options{}, false
	cmd := newCommand(o, func(cmd *cobra.Command) error {
		started = true
		return cmdline.FlagsFromEnvironment(cmd.Flags(), lookupEnv)
	})
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return cmdline.ExitDone
	case errors.Is(err, errDifferent):
		return exitDifferent
	}
	message := text.PrintableLines(redact.Bounded(err.Error(), limits.MergedMessageBytes))
	_, _ = fmt.Fprintf(errOut, "hookgate: %s\n", message)
	if usage := (cmdline.UsageError{}); errors.As(err, &usage) || !started {
		_, _ = fmt.Fprintf(errOut, "Run %q for help.\n", cmd.CommandPath()+" --help")
		return cmdline.ExitUsage
	}
	if o.diff != "" {
		return exitUnknown
	}
	return cmdline.ExitFailed
}

// newCommand returns the command, which calls before first.
func newCommand(o *options, before func(*cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "hookgate-render [cluster/NAME]",
		Version:           ownVersion(),
		Short:             "Show the objects that Cluster API generates from a Cluster, with the patches of its extensions",
		Long:              renderflags.Long,
		Example:           renderflags.Example,
		Args:              atMostOne,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return before(cmd) },
		RunE:              o.run,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "hookgate render"},
	}
	o.addFlags(cmd.Flags())
	cmd.SetFlagErrorFunc(cmdline.FlagError)
	cmdline.WrapHelp(cmd, nil)
	return cmd
}

// atMostOne refuses more than one argument.
func atMostOne(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cmdline.Usagef("want one cluster/NAME at most, got %d names", len(args))
	}
	return nil
}
