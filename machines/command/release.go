// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/machines"
)

const (
	// scaleDownPatience is how long a gateway may take to stop, or its Lease to end.
	scaleDownPatience = 3 * time.Minute
	// ownNamespaceFile is where a Pod finds the name of its namespace.
	ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// defaultGatewayNamespace is where the manifests install the gateway.
	defaultGatewayNamespace = "hookgate-system"
)

// releaseOptions are the flags of hookgate machines release.
type releaseOptions struct {
	target.KubeOptions
	namespace        string
	gatewayNamespace string
	scaleDown        string
	holdOff, resume  bool
}

// NewRelease returns hookgate machines release.
func NewRelease() *cobra.Command {
	var o releaseOptions
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Remove the gateway's annotations from Machines",
		Long: "Remove from Machines the annotations that make Cluster API wait for the gateway, so that no Machine\n" +
			"waits for a gateway that is gone. Run the command before you remove the gateway, and before clusterctl moves\n" +
			"Clusters to a management cluster without a gateway.\n\n" +
			"A running gateway would annotate the Machines again. To prevent this, stop the gateway with --scale-down, or\n" +
			"use --hold-off. --hold-off adds an annotation to the Clusters, so that gateways do not annotate the\n" +
			"Machines of these Clusters until you run the command with --resume.",
		Example: "  hookgate machines release --scale-down hookgate\n" +
			"  hookgate machines release -n production --hold-off",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	o.AddFlags(f)
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the Machines; default: all namespaces")
	f.StringVar(&o.gatewayNamespace, "gateway-namespace", "",
		"namespace of the gateway; default: in a Pod without --kubeconfig, the Pod's namespace; otherwise, "+
			defaultGatewayNamespace)
	f.StringVar(&o.scaleDown, "scale-down", "", "Deployment of the gateway, which is scaled to 0 first")
	f.BoolVar(&o.holdOff, "hold-off", false,
		"annotate the Clusters, too, so that gateways hold none of their Machines until you run the command "+
			"with --resume")
	f.BoolVar(&o.resume, "resume", false, "only remove from the Clusters the annotation that --hold-off "+
		"added")
	cmdline.WrapHelp(cmd, nil) // it has no groups
	return cmd
}

func (o *releaseOptions) run(ctx context.Context, out io.Writer) error {
	if o.resume && (o.holdOff || o.scaleDown != "") {
		return cmdline.Usagef("--resume undoes --hold-off: leave out --hold-off and --scale-down")
	}
	config, err := o.Load()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		machines.AddToScheme, coordinationv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme,
		metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	if o.resume {
		n, err := machines.Resume(ctx, c, o.namespace)
		_, _ = fmt.Fprintf(out, "%s resumed.\n", text.Plural(n, "Cluster"))
		return err
	}
	if err := o.stopGateway(ctx, c, out); err != nil {
		return err
	}
	done, err := machines.Release(ctx, c, o.namespace, o.holdOff)
	if o.holdOff {
		_, _ = fmt.Fprintf(out, "%s marked with the annotation %s. To remove the annotation: hookgate machines release "+
			"--resume\n",
			text.Plural(done.Clusters, "Cluster"), machines.ReleasedAnnotation)
	}
	_, _ = fmt.Fprintf(out, "%s released.\n", text.Plural(done.Machines, "Machine"))
	return err
}

// stopGateway stops the gateway if that is asked for, and returns an error if one works that would undo the release.
func (o *releaseOptions) stopGateway(ctx context.Context, c client.Client, out io.Writer) error {
	if o.holdOff && o.scaleDown == "" {
		return nil
	}
	namespace := o.gatewayNamespace
	if namespace == "" {
		namespace = defaultGatewayNamespace
		if own, err := os.ReadFile(ownNamespaceFile); err == nil && o.Kubeconfig == "" {
			namespace = strings.TrimSpace(string(own))
		}
	}
	lease, holder, err := machines.Holder(ctx, c, namespace, time.Now())
	if err != nil {
		return err
	}
	if o.scaleDown == "" {
		if holder != "" {
			return fmt.Errorf("%s is running, and would annotate the Machines again (it holds the Lease %s/%s): stop it with "+
				"--scale-down, or keep the annotations off with --hold-off", holder, namespace, lease)
		}
		return nil
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.scaleDown}}
	zero := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	body := &client.SubResourcePatchOptions{SubResourceBody: &autoscalingv1.Scale{}}
	if err := c.SubResource("scale").Patch(ctx, d, zero, body); err != nil {
		return fmt.Errorf("scale Deployment %s/%s to 0: %w", namespace, o.scaleDown, err)
	}
	_, _ = fmt.Fprintf(out, "Deployment %s/%s is scaled to 0.\n", namespace, o.scaleDown)
	ctx, cancel := context.WithTimeout(ctx, scaleDownPatience)
	defer cancel()
	for holder != "" {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still running after %s (it holds the Lease %s/%s): find out why it does not stop", holder,
				scaleDownPatience, namespace, lease)
		case <-time.After(time.Second):
		}
		if lease, holder, err = machines.Holder(ctx, c, namespace, time.Now()); err != nil {
			return err
		}
	}
	return nil
}
