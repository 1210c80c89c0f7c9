// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
)

const (
	// callerSecret is the Secret with the certificate for Cluster API, in the namespace of the gateway, as deploy/ makes
	// it, and managerSecret its copy in the namespaces of Cluster API's managers, and the name of the volume there.
	callerSecret  = "hookgate-cluster-api-client"
	managerSecret = "hookgate-client"
	managerPath   = "/etc/" + managerSecret
	// core and controlPlane are the providers whose managers call hooks, by the label of their Deployments. The flags of
	// controlPlane exist since hooksOfControlPlane.
	core         = "cluster-api"
	controlPlane = "control-plane-kubeadm"
)

var hooksOfControlPlane = semver.MustParse("1.12.0-0")

// clusterCallersOptions are the flags of hookgate callers.
type clusterCallersOptions struct {
	kube      target.KubeOptions
	namespace string
	dryRun    bool
}

// NewCallersCommand returns the command hookgate callers.
func NewCallersCommand() *cobra.Command {
	o := clusterCallersOptions{}
	cmd := &cobra.Command{
		Use:   "callers [--context CONTEXT] [--dry-run]",
		Short: "Install the client certificate that lets Cluster API call the gateway",
		Long: "Give two managers of Cluster API (core and kubeadm control plane) a client certificate that\n" +
			"the gateway accepts: copy the Secret with the certificate into their namespaces, and add a\n" +
			"volume and the flags --runtime-extension-client-cert-file and\n" +
			"--runtime-extension-client-key-file to their Deployments. The command prints what it changes;\n" +
			"a second run makes no further changes. Run the command again after the certificate has been\n" +
			"replaced, and after each upgrade of Cluster API, because an upgrade replaces the Deployments.",
		Example: "  hookgate callers --context management --dry-run\n  hookgate callers --context management",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), time.Minute, errors.New("not done within a minute"))
			defer cancel()
			return o.run(ctx, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.namespace, "namespace", target.DefaultGateway, "namespace of the gateway")
	f.BoolVar(&o.dryRun, "dry-run", false, "only print the changes; the API server validates them without storing them")
	o.kube.AddFlags(f)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&o.kube)})
	return cmd
}

func (o *clusterCallersOptions) run(ctx context.Context, out io.Writer) error {
	config, err := o.kube.Load()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if o.dryRun {
		c = client.NewDryRunClient(c)
	}
	certificate := &corev1.Secret{}
	key := client.ObjectKey{Namespace: o.namespace, Name: callerSecret}
	switch err := c.Get(ctx, key, certificate); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no Secret %s: cert-manager, or the gateway itself, makes it in the "+
			"gateway's namespace; if the gateway is in another namespace, use --namespace", key)
	case err != nil:
		return fmt.Errorf("get Secret %s: %w", key, err)
	case len(certificate.Data[corev1.TLSCertKey]) == 0 || len(certificate.Data[corev1.TLSPrivateKeyKey]) == 0:
		return fmt.Errorf("get Secret %s: it has no %s or no %s", key, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	managers, err := managersOf(ctx, c)
	if err != nil {
		return err
	}
	for i := range managers {
		if err := o.give(ctx, c, certificate, &managers[i], out); err != nil {
			return err
		}
	}
	return nil
}

// managersOf returns the Deployments of Cluster API's managers that call hooks, one of which is core's.
func managersOf(ctx context.Context, c client.Client) ([]appsv1.Deployment, error) {
	requirement, err := labels.NewRequirement(clusterv1.ProviderNameLabel, selection.In, []string{core, controlPlane})
	if err != nil {
		return nil, err
	}
	list := &appsv1.DeploymentList{}
	selector := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*requirement)}
	if err := c.List(ctx, list, selector); err != nil {
		return nil, fmt.Errorf("list Deployments of Cluster API: %w", err)
	}
	isCore := func(d appsv1.Deployment) bool { return d.Labels[clusterv1.ProviderNameLabel] == core }
	if !slices.ContainsFunc(list.Items, isCore) {
		return nil, fmt.Errorf("no Deployment has the label %s=%s: is Cluster API installed in this cluster?",
			clusterv1.ProviderNameLabel, core)
	}
	return list.Items, nil
}

// give gives a manager the certificate, and says what that changes.
func (o *clusterCallersOptions) give(
	ctx context.Context, c client.Client, certificate *corev1.Secret, manager *appsv1.Deployment, out io.Writer,
) error {
	name := client.ObjectKeyFromObject(manager)
	say := func(kind string, key client.ObjectKey, what string) {
		if o.dryRun {
			what += " (dry run)"
		}
		_, _ = fmt.Fprintf(out, "%s %s: %s\n", kind, key, what)
	}
	before := manager.DeepCopy()
	container := managerOf(&manager.Spec.Template.Spec)
	switch {
	case container == nil:
		return fmt.Errorf("patch Deployment %s: it has no container", name)
	case manager.Labels[clusterv1.ProviderNameLabel] == controlPlane && isOlder(container.Image, hooksOfControlPlane):
		say("Deployment", name, "left alone: before v1.12, it calls no hooks")
		return nil
	}
	added, err := addCertificate(&manager.Spec.Template.Spec, container)
	if err != nil {
		return fmt.Errorf("patch Deployment %s: %w", name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: manager.Namespace, Name: managerSecret}}
	key := client.ObjectKeyFromObject(secret)
	result, err := controllerutil.CreateOrUpdate(ctx, c, secret, func() error {
		if secret.ResourceVersion == "" {
			secret.Type = corev1.SecretTypeTLS
		}
		secret.Data = map[string][]byte{
			corev1.TLSCertKey:       certificate.Data[corev1.TLSCertKey],
			corev1.TLSPrivateKeyKey: certificate.Data[corev1.TLSPrivateKeyKey],
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", key, err)
	}
	say("Secret", key, string(result))
	if len(added) == 0 {
		say("Deployment", name, string(controllerutil.OperationResultNone))
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, manager, patch); err != nil {
		return fmt.Errorf("patch Deployment %s: %w", name, err)
	}
	say("Deployment", name, "added "+strings.Join(added, ", "))
	return nil
}

// managerOf returns the container of a manager, or nil if the Pod has none.
func managerOf(pod *corev1.PodSpec) *corev1.Container {
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "manager" })
	if len(pod.Containers) == 0 {
		return nil
	}
	return &pod.Containers[max(i, 0)]
}

// addCertificate adds what is missing for the certificate, and returns what that is. An error says that the manager has
// another certificate, which may be for other extensions.
func addCertificate(pod *corev1.PodSpec, container *corev1.Container) (added []string, err error) {
	for flag, file := range map[string]string{"cert": corev1.TLSCertKey, "key": corev1.TLSPrivateKeyKey} {
		name, value := "--runtime-extension-client-"+flag+"-file", managerPath+"/"+file
		i := slices.IndexFunc(container.Args, func(arg string) bool {
			return arg == name || strings.HasPrefix(arg, name+"=")
		})
		switch {
		case i >= 0 && container.Args[i] != name+"="+value:
			return nil, fmt.Errorf("it already has %s: either add the CA of that client certificate to the gateway's CAs "+
				"of callers, or remove the flag and try again", container.Args[i])
		case i < 0:
			added = append(added, name+"="+value)
		}
	}
	slices.Sort(added)
	container.Args = append(container.Args, added...)
	mounted := func(m corev1.VolumeMount) bool { return m.MountPath == managerPath }
	if !slices.ContainsFunc(container.VolumeMounts, mounted) {
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: managerSecret, MountPath: managerPath, ReadOnly: true})
		added = append(added, "the mount "+managerPath)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == managerSecret }) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: managerSecret, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: managerSecret},
		}})
		added = append(added, "the volume "+managerSecret)
	}
	return added, nil
}

// isOlder reports whether the tag of an image is a release before least. A tag that is no whole version, such as 1, may
// be any.
func isOlder(image string, least semver.Version) bool {
	image, _, _ = strings.Cut(image, "@")
	tag := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ = strings.Cut(tag, ":")
	version, err := semver.Parse(strings.TrimPrefix(tag, "v"))
	return err == nil && version.LT(least)
}
