// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/network/selfcert"
)

// The values of --self-certificates.
const (
	selfServers = "servers"
	selfCallers = "callers"
)

// checkSelfCertificates returns an error of usage unless --self-certificates fits the other flags.
func (o *serveOptions) checkSelfCertificates() error {
	wants := func(what string) bool { return slices.Contains(o.selfCertificates, what) }
	for _, what := range o.selfCertificates {
		if what != selfServers && what != selfCallers {
			return cmdline.Usagef("--self-certificates: want %s or %s, got %q", selfServers, selfCallers, what)
		}
	}
	switch {
	case len(o.selfCertificates) == 0:
		return nil
	case !wants(selfServers):
		return cmdline.Usagef("--self-certificates=%s is not enough: the CA of callers is stored with the gateway's "+
			"own certificate; use --self-certificates=%s,%s", selfCallers, selfServers, selfCallers)
	case o.dev.enabled:
		return cmdline.Usagef("--dev and --self-certificates: --dev makes certificates without a cluster, and " +
			"--self-certificates makes them in a cluster; give only one of these flags")
	case o.cluster.kubeconfig == "" && !target.InCluster():
		return cmdline.Usagef("--self-certificates: the certificates are in Secrets of a cluster; give --kubeconfig")
	}
	return nil
}

// startSelfCertificates makes the certificates that --self-certificates asks for, and returns what renews them, or nil.
func (o *serveOptions) startSelfCertificates(ctx context.Context, logger *slog.Logger) (*selfcert.Issuer, error) {
	if len(o.selfCertificates) == 0 {
		return nil, nil
	}
	rest, namespace, err := loadKubeconfig(o.cluster.kubeconfig)
	if err != nil {
		return nil, err
	}
	rest.QPS, rest.Burst = o.cluster.qps, o.cluster.burst
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("--self-certificates: %w", err)
	}
	config := selfcert.Config{
		Client: c, Namespace: namespace, Logger: logger,
		Serving: selfcert.Files{Dir: o.certDir, Cert: certs.CertFile, Key: certs.KeyFile},
	}
	switch {
	case o.callers.anonymous:
		config.Callers = selfcert.AnyCallers
	case !slices.Contains(o.selfCertificates, selfCallers):
		config.Callers = selfcert.OwnCallers
	}
	if o.webhooks.port != 0 {
		config.Webhook = selfcert.Files{Dir: o.webhooks.dir, Cert: o.webhooks.certName, Key: o.webhooks.keyName}
		config.Webhooks = webhooksOf(o.cluster.group)
	}
	issuer := selfcert.New(config)
	if err := issuer.Start(ctx); err != nil {
		return nil, fmt.Errorf("--self-certificates: %w", err)
	}
	return issuer, nil
}

// webhooksOf returns what has a caBundle for the webhooks of a gateway that watches ExtensionConfigs of a group, by the
// names of deploy/webhook.
func webhooksOf(group string) []client.Object {
	const prefix = "hookgate-"
	configs := "extensionconfigs." + group
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	objects := []client.Object{
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: named(configs)},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named(prefix + configs)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named(prefix + configs)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named(selfcert.InfrastructureWebhooks)},
	}
	for _, kind := range allkinds.Own() {
		plural, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion.WithKind(kind.Name))
		objects = append(objects, &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: named(prefix + plural.GroupResource().String()),
		})
	}
	return objects
}
