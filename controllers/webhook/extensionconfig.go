// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/controllers"
)

// extensionConfigs has the defaults and the rules of ExtensionConfigs: Cluster API's, and that none calls this gateway.
type extensionConfigs struct {
	group string
	own   controllers.Addresses
}

var (
	_ admission.Defaulter[*runtimev1.ExtensionConfig] = extensionConfigs{}
	_ admission.Validator[*runtimev1.ExtensionConfig] = extensionConfigs{}
)

// Default sets what is meant where nothing is said: every namespace, and port 443 of a Service.
func (extensionConfigs) Default(_ context.Context, config *runtimev1.ExtensionConfig) error {
	if config.Spec.NamespaceSelector == nil {
		config.Spec.NamespaceSelector = &metav1.LabelSelector{}
	}
	if service := &config.Spec.ClientConfig.Service; service.IsDefined() && service.Port == nil {
		service.Port = new(controllers.DefaultPort)
	}
	return nil
}

// ValidateCreate checks a new ExtensionConfig.
func (w extensionConfigs) ValidateCreate(_ context.Context, config *runtimev1.ExtensionConfig) (admission.Warnings, error) {
	warnings := warningsOf(config)
	if _, paused := config.Annotations[clusterv1.PausedAnnotation]; paused {
		warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: the extension is not discovered, and not called, before the annotation is gone", clusterv1.PausedAnnotation))
	}
	return warnings, w.validate(config)
}

// ValidateUpdate checks what an ExtensionConfig is changed to. One that is being deleted, and one whose spec stays, passes: it
// may have been stored before there was a rule.
func (w extensionConfigs) ValidateUpdate(_ context.Context, before, config *runtimev1.ExtensionConfig) (admission.Warnings, error) {
	if !config.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	if equality.Semantic.DeepEqual(before.Spec, config.Spec) {
		return nil, nil
	}
	return warningsOf(config), w.validate(config)
}

// ValidateDelete allows every deletion.
func (extensionConfigs) ValidateDelete(context.Context, *runtimev1.ExtensionConfig) (admission.Warnings, error) {
	return nil, nil
}

func (w extensionConfigs) validate(config *runtimev1.ExtensionConfig) error {
	x, errs := controllers.Convert(config)
	if len(errs) == 0 {
		if err := w.own.Check(x.ClientConfig.URL); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "clientConfig"), err.Error()))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: w.group, Kind: "ExtensionConfig"}, config.Name, errs)
}

// warningsOf says what is legal but seldom meant.
func warningsOf(config *runtimev1.ExtensionConfig) admission.Warnings {
	var warnings admission.Warnings
	client := &config.Spec.ClientConfig
	reference, injected := config.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	if namespace, name, ok := strings.Cut(reference, "/"); injected && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		warnings = append(warnings, fmt.Sprintf("metadata.annotations[%s]: %q is not of the form <namespace>/<name>, so no CA is injected", runtimev1.InjectCAFromSecretAnnotation, reference))
	}
	if client.Service.IsDefined() && len(client.CABundle) == 0 && !injected {
		warnings = append(warnings, fmt.Sprintf("spec.clientConfig.caBundle: certificates of Services are seldom signed by a public authority; set it, or the annotation %s",
			runtimev1.InjectCAFromSecretAnnotation))
	}
	if u, err := url.Parse(client.URL); err == nil && client.URL != "" {
		if text := warningOfHost(u.Hostname()); text != "" {
			warnings = append(warnings, "spec.clientConfig.url: "+text)
		}
	}
	return warnings
}

// warningOfHost says what is unwise about the host of an extension's URL.
func warningOfHost(host string) string {
	ip := net.ParseIP(host)
	switch {
	case host == "localhost", ip != nil && ip.IsLoopback():
		return host + " is the gateway's own Pod, not the extension's, unless it runs beside the gateway"
	case ip != nil && (ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified()):
		return host + " is an address that the gateway never calls"
	case strings.HasSuffix(host, ".svc"), strings.HasSuffix(host, ".svc.cluster.local"):
		return host + " is a Service of the cluster: name it in spec.clientConfig.service, so that changes of its endpoints are followed and no proxy is used"
	}
	return ""
}
