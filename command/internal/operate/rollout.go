// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// NewRolloutCommand returns the command hookgate rollout.
func NewRolloutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Move Clusters to another version of an extension, or back",
		RunE:  cmdline.Choose("do with rollouts", "adopt, approve, promote, pause, resume or undo"),

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(newRolloutAdoptCommand(), newRolloutApproveCommand(), newRolloutPromoteCommand(),
		newRolloutPauseCommand(), newRolloutAbortCommand(), newRolloutResumeCommand(), newRolloutUndoCommand())
	return cmd
}

// rolloutOptions are the flags of all commands about an ExtensionRollout.
type rolloutOptions struct {
	kube   target.KubeOptions
	yes    bool
	dir    string // of manifests, in place of a cluster
	state  string
	dryRun bool
}

// command adds the argument, the flags and the work to cmd.
func (o *rolloutOptions) command(
	cmd *cobra.Command, work func(ctx context.Context, r *rolloutWork) error,
) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cmdline.Usagef("want the name of one ExtensionRollout, see \"hookgate get rollouts\"; got %d "+
				"names", len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.dir != "" || o.state != "" || o.dryRun && cmd.Flags().Lookup("extension-configs") != nil {
			return o.inDirectory(cmd, args[0], work)
		}
		config, err := o.kube.Load()
		if err != nil {
			return err
		}
		c, err := newClient(config)
		if err != nil {
			return err
		}
		return work(cmd.Context(), &rolloutWork{
			Client: c, objects: clusterRollouts{c}, name: args[0], dialog: dialog{cmd.InOrStdin(), cmd.OutOrStdout(), o.yes},
		})
	}
	o.kube.AddFlags(cmd.Flags())
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&o.kube)})
	return cmd
}

// newClient returns a client of the API server for Hookgate's kinds.
func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// inDirectory does the work in a directory of manifests.
func (o *rolloutOptions) inDirectory(
	cmd *cobra.Command, name string, work func(ctx context.Context, r *rolloutWork) error,
) error {
	switch {
	case cmd.Flags().Changed("kubeconfig") || cmd.Flags().Changed("context"):
		return cmdline.Usagef("--extension-configs cannot be used with --kubeconfig or --context: the " +
			"ExtensionRollout is either in a directory or in a cluster")
	case o.dir == "" && o.dryRun:
		return cmdline.Usagef("--dry-run is for --extension-configs: in a cluster, the command shows the changes, " +
			"and asks for confirmation")
	case o.dir == "" || o.state == "":
		return cmdline.Usagef("--extension-configs and --state-dir belong together: give the directories that \"hookgate " +
			"serve\" uses")
	}
	err := work(cmd.Context(), &rolloutWork{
		objects: &directoryRollouts{dir: o.dir, state: o.state}, name: name, dryRun: o.dryRun,
		dialog: dialog{cmd.InOrStdin(), cmd.OutOrStdout(), o.yes},
	})
	if errors.Is(err, errDryRun) {
		return nil
	}
	return err
}

// addDirectory adds the flags of a command that can work in a directory.
func (o *rolloutOptions) addDirectory(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.StringVar(&o.dir, "extension-configs", "",
		"directory of manifests that a gateway serves: edit the ExtensionRollout there instead of in a cluster")
	f.StringVar(&o.state, "state-dir", "",
		"directory in which the gateway keeps its records; only with --extension-configs")
	f.BoolVar(&o.dryRun, "dry-run", false,
		"print the edit of the manifest without making it; only with --extension-configs")
	return cmd
}

// addYes adds the flag of a command that asks.
func (o *rolloutOptions) addYes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	return cmd
}

// rolloutObjects are the ExtensionRollouts of a cluster or of a directory, with their records.
type rolloutObjects interface {
	// get returns the ExtensionRollout of a name.
	get(ctx context.Context, name string) (*v1alpha1.ExtensionRollout, error)
	// preview writes the change of an ExtensionRollout as far as it can be shown before it is made, and which records
	// would be removed.
	preview(w io.Writer, of *v1alpha1.ExtensionRollout, f specChange, removed []*v1alpha1.ExtensionRolloutRecord) error
	// update stores an ExtensionRollout that get has returned, with a change of its spec.
	update(ctx context.Context, of *v1alpha1.ExtensionRollout, f specChange) error
	// records calls f with each record.
	records(ctx context.Context, f func(record *v1alpha1.ExtensionRolloutRecord)) error
	// remove removes a record, which may be gone, unless it has changed since it was read.
	remove(ctx context.Context, record *v1alpha1.ExtensionRolloutRecord) error
	// clusters calls f with each Cluster. The error is errNoClusters if it is not known which there are.
	clusters(ctx context.Context, f func(name string, o *unstructured.Unstructured)) error
	// recordsAt says where people find all records.
	recordsAt() string
}

// specChange changes a spec.
type specChange func(spec *v1alpha1.ExtensionRolloutSpec) error

// errNoClusters says that it is not known which Clusters there are, and cannot be.
var errNoClusters = errors.New("a directory of manifests does not list the Clusters")

// rolloutWork is what is done to an ExtensionRollout, and who is asked about it.
type rolloutWork struct {
	client.Client // nil in a directory

	objects rolloutObjects
	name    string
	dryRun  bool
	dialog
}

// rolloutPatience is how long one request to the API server may take.
const rolloutPatience = time.Minute

// within calls f with a deadline.
func within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, rolloutPatience, fmt.Errorf("not done within %s", rolloutPatience))
	defer cancel()
	return f(ctx)
}

// get returns the ExtensionRollout.
func (r *rolloutWork) get(ctx context.Context) (*v1alpha1.ExtensionRollout, error) {
	return r.objects.get(ctx, r.name)
}

// getWithCandidate is get for commands about the Clusters of a candidate.
func (r *rolloutWork) getWithCandidate(ctx context.Context) (*v1alpha1.ExtensionRollout, error) {
	of, err := r.get(ctx)
	if err == nil && of.Spec.Candidate == "" {
		err = fmt.Errorf("%s %q has no candidate: name one in spec.candidate", rollout.Kind, r.name)
	}
	return of, err
}

func (r *rolloutWork) failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", verb, rollout.Kind, r.name, err)
}

// change changes the spec, again if the object was changed meanwhile, but not if it is about other
// versions than those that were shown.
func (r *rolloutWork) change(ctx context.Context, shown *v1alpha1.ExtensionRollout, f specChange) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		of, err := r.get(ctx)
		if err != nil {
			return err
		}
		if of.UID != shown.UID || of.Spec.Stable != shown.Spec.Stable || of.Spec.Candidate != shown.Spec.Candidate {
			return fmt.Errorf("%s %q was changed meanwhile, to stable %q and candidate %q: nothing was done; run the "+
				"command again", rollout.Kind, r.name, of.Spec.Stable, of.Spec.Candidate)
		}
		err = r.objects.update(ctx, of, f)
		if apierrors.IsConflict(err) {
			return err
		}
		return r.failed("update", err)
	})
}

// preview shows a change, as far as that can be shown, before it is asked for.
func (r *rolloutWork) preview(
	of *v1alpha1.ExtensionRollout, f specChange, removed ...*v1alpha1.ExtensionRolloutRecord,
) error {
	if err := r.objects.preview(r.out, of, f, removed); err != nil {
		return r.failed("edit", err)
	}
	if r.dryRun {
		return errDryRun
	}
	return nil
}

// errDryRun ends a command that has shown what it would do.
var errDryRun = errors.New("nothing was changed, because of --dry-run")

// errNotConfirmed is the error of who does not say yes.
var errNotConfirmed = errors.New("not confirmed: nothing was changed; --yes skips the confirmation")
