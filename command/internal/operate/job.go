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
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
)

// NewJobCommand returns the command hookgate job.
func NewJobCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Rerun Jobs that answer hooks, or delete the records of their runs",
		RunE:  cmdline.Choose("do with Jobs", "rerun or forget"),

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(newJobRerunCommand(), newJobForgetCommand())
	return cmd
}

func newJobRerunCommand() *cobra.Command {
	return (&clusterJobOptions{run: rerunJobs}).command(&cobra.Command{
		Use:   "rerun NAME --cluster NAMESPACE/NAME",
		Short: "Run a HookJob again for a Cluster",
		Long: "Delete the finished Jobs of a HookJob for a Cluster, and forget their successes: the next call of the\n" +
			"hook makes the Job again. Use the command for a Job that has failed, or that has to run once\n" +
			"more. Jobs that have not finished keep running.",
		Example: "  hookgate job rerun etcd-backup --cluster team-a/prod --context management",
	})
}

func newJobForgetCommand() *cobra.Command {
	return (&clusterJobOptions{run: forgetJobs}).command(&cobra.Command{
		Use:   "forget NAME --cluster NAMESPACE/NAME",
		Short: "Forget that a HookJob has succeeded for a Cluster",
		Long: "Remove the recorded successes of a HookJob for a Cluster without touching the Jobs: a Job that still\n" +
			"exists answers as before; if the Job is missing, the next call of the hook creates it again.",
		Example: "  hookgate job forget etcd-backup --cluster team-a/prod --context management",
	})
}

// clusterJobOptions are the flags of commands about the Jobs of a HookJob for one Cluster.
type clusterJobOptions struct {
	kube      target.KubeOptions
	namespace string
	cluster   string
	run       func(ctx context.Context, jobs *hookjob.Cluster, name, cluster string, out io.Writer) error
}

// command adds the arguments, the flags and the work to cmd.
func (o *clusterJobOptions) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cmdline.Usagef("want the name of one HookJob, see \"hookgate get jobs\"; got %d names", len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := target.ParseCluster(o.cluster); err != nil {
			return err
		}
		config, err := o.kube.Load()
		if err != nil {
			return err
		}
		scheme := runtime.NewScheme()
		err = errors.Join(batchv1.AddToScheme(scheme), corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
		if err != nil {
			return err
		}
		c, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), time.Minute, errors.New("not done within a minute"))
		defer cancel()
		return o.run(ctx, &hookjob.Cluster{Jobs: c, API: c, Namespace: o.namespace}, args[0], o.cluster, cmd.OutOrStdout())
	}
	f := cmd.Flags()
	f.StringVar(&o.cluster, "cluster", "", "the Cluster, as NAMESPACE/NAME")
	f.StringVar(&o.namespace, "namespace", target.DefaultGateway, "namespace of the gateway, where successes are recorded")
	o.kube.AddFlags(f)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&o.kube)})
	return cmd
}

func rerunJobs(ctx context.Context, jobs *hookjob.Cluster, name, cluster string, out io.Writer) error {
	deleted, left, n, err := jobs.Rerun(ctx, name, cluster)
	for _, job := range deleted {
		_, _ = fmt.Fprintf(out, "Job %s is deleted\n", job)
	}
	for _, job := range left {
		_, _ = fmt.Fprintf(out, "Job %s has not finished, and keeps running\n", job)
	}
	switch {
	case err != nil:
		return fmt.Errorf("HookJob %q: %w", name, target.NotServed("ClusterRecord", err))
	case len(deleted)+len(left)+n == 0:
		return nothingOf(name, cluster)
	}
	return sayRemoved(out, n, cluster)
}

func forgetJobs(ctx context.Context, jobs *hookjob.Cluster, name, cluster string, out io.Writer) error {
	n, err := jobs.Forget(ctx, name, cluster)
	switch {
	case err != nil:
		return fmt.Errorf("HookJob %q: %w", name, target.NotServed("ClusterRecord", err))
	case n == 0:
		return nothingOf(name, cluster)
	}
	return sayRemoved(out, n, cluster)
}

func nothingOf(name, cluster string) error {
	return fmt.Errorf("HookJob %q has no Jobs and no records for Cluster %s: see hookgate get jobs for the "+
		"names of HookJobs, and set --namespace to the namespace of the gateway", name, cluster)
}

func sayRemoved(out io.Writer, n int, cluster string) error {
	_, err := fmt.Fprintf(out, "%s of Cluster %s removed\n", text.Plural(n, "record"), cluster)
	return err
}
