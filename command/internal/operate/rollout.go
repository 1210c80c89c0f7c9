// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// NewRolloutCommand returns the command hookgate rollout.
func NewRolloutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Move Clusters to another version of an extension, or back",
		RunE: func(*cobra.Command, []string) error {
			return cmdline.Usagef("say what to do with rollouts: adopt, approve, promote, abort, resume or undo")
		},
	}
	cmd.AddCommand(newRolloutAdoptCommand(), newRolloutApproveCommand(), newRolloutPromoteCommand(),
		newRolloutAbortCommand(), newRolloutResumeCommand(), newRolloutUndoCommand())
	return cmd
}

// rolloutOptions are the flags of all commands about an ExtensionRollout in a cluster.
type rolloutOptions struct {
	kube target.KubeOptions
	yes  bool
}

// command adds the argument, the flags and the work to cmd.
func (o *rolloutOptions) command(
	cmd *cobra.Command, work func(ctx context.Context, r *clusterRollout) error,
) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cmdline.Usagef("want the name of one ExtensionRollout, see \"hookgate get rollouts\"; got %d "+
				"names", len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		config, err := o.kube.Load()
		if err != nil {
			return err
		}
		c, err := newClient(config)
		if err != nil {
			return err
		}
		return work(cmd.Context(), &clusterRollout{
			Client: c, name: args[0], in: cmd.InOrStdin(), out: cmd.OutOrStdout(), yes: o.yes,
		})
	}
	o.kube.AddFlags(cmd.Flags())
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&o.kube)})
	return cmd
}

// addYes adds the flag of a command that asks.
func (o *rolloutOptions) addYes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	return cmd
}

// clusterRollout is an ExtensionRollout in a cluster, and who is asked about it.
type clusterRollout struct {
	client.Client
	name string
	in   io.Reader
	out  io.Writer
	yes  bool
}

// rolloutPatience is how long one request to the API server may take.
const rolloutPatience = time.Minute

// within calls f with a deadline.
func within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rolloutPatience, fmt.Errorf("not done within %s", rolloutPatience))
	defer cancel()
	return f(ctx)
}

func (r *clusterRollout) sayf(format string, args ...any) {
	_, _ = fmt.Fprintln(r.out, text.PrintableLines(fmt.Sprintf(format, args...))) // who reads has left
}

// get returns the ExtensionRollout.
func (r *clusterRollout) get(ctx context.Context) (*v1alpha1.ExtensionRollout, error) {
	of := &v1alpha1.ExtensionRollout{}
	err := within(ctx, func(ctx context.Context) error { return r.Get(ctx, client.ObjectKey{Name: r.name}, of) })
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s %q: kubectl get extensionrollouts lists them, and hookgate rollout adopt "+
			"makes one of an ExtensionConfig in use", rollout.Kind, r.name)
	}
	return of, r.failed("get", err)
}

// getWithCandidate is get for commands about the Clusters of a candidate.
func (r *clusterRollout) getWithCandidate(ctx context.Context) (*v1alpha1.ExtensionRollout, error) {
	of, err := r.get(ctx)
	if err == nil && of.Spec.Candidate == "" {
		err = fmt.Errorf("%s %q has no candidate: name one in spec.candidate", rollout.Kind, r.name)
	}
	return of, err
}

func (r *clusterRollout) failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", verb, rollout.Kind, r.name, err)
}

// change changes the spec, again if the object was changed meanwhile, but not if it is about other
// versions than those that were shown.
func (r *clusterRollout) change(
	ctx context.Context, shown *v1alpha1.ExtensionRollout, f func(spec *v1alpha1.ExtensionRolloutSpec) error,
) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		of, err := r.get(ctx)
		if err != nil {
			return err
		}
		if of.UID != shown.UID || of.Spec.Stable != shown.Spec.Stable || of.Spec.Candidate != shown.Spec.Candidate {
			return fmt.Errorf("%s %q was changed meanwhile, to stable %q and candidate %q: nothing was done; look again",
				rollout.Kind, r.name, of.Spec.Stable, of.Spec.Candidate)
		}
		if err := f(&of.Spec); err != nil {
			return err
		}
		err = within(ctx, func(ctx context.Context) error { return r.Update(ctx, of) })
		if apierrors.IsConflict(err) {
			return err
		}
		return r.failed("update", err)
	})
}

// errNotConfirmed is the error of who does not say yes.
var errNotConfirmed = errors.New("not confirmed: nothing was changed; --yes skips the confirmation")

// confirm asks for a yes.
func (r *clusterRollout) confirm(question string) error {
	if r.yes {
		return nil
	}
	_, _ = fmt.Fprint(r.out, question+" [y/N] ")
	answer, err := bufio.NewReader(io.LimitReader(r.in, limits.QuotedBytes)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}
