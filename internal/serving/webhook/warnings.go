// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// warnings returns a warning for each field of config that is valid but probably unintended. It skips fields that an
// update does not change; old is nil for a new ExtensionConfig. The API server itself warns of deprecated API versions.
func warnings(old, config *runtimev1.ExtensionConfig) admission.Warnings {
	list := warningsOf(config)
	if old != nil {
		known := warningsOf(old)
		list = slices.DeleteFunc(list, func(w string) bool { return slices.Contains(known, w) })
	}
	annotations := field.NewPath("metadata", "annotations")
	// After the first injection, both are there as they should be.
	if injects(config) && len(config.Spec.ClientConfig.CABundle) > 0 &&
		(old == nil || !injects(old) &&
			bytes.Equal(old.Spec.ClientConfig.CABundle, config.Spec.ClientConfig.CABundle)) {
		list = append(list, annotations.Key(runtimev1.InjectCAFromSecretAnnotation).String()+
			": spec.clientConfig.caBundle is replaced by the CA in the Secret; leave one of the two out")
	}
	return list
}

// warningsOf returns the warnings about one state of an ExtensionConfig.
func warningsOf(config *runtimev1.ExtensionConfig) admission.Warnings {
	var list admission.Warnings
	warn := func(path *field.Path, text string) { list = append(list, path.String()+": "+text) }
	annotations, path := field.NewPath("metadata", "annotations"), field.NewPath("spec", "clientConfig")
	client := &config.Spec.ClientConfig
	if reference := config.Annotations[runtimev1.InjectCAFromSecretAnnotation]; injects(config) {
		namespace, name, ok := strings.Cut(reference, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			warn(annotations.Key(runtimev1.InjectCAFromSecretAnnotation),
				strconv.Quote(text.Cut(reference, limits.QuotedBytes))+
					" is not of the form <namespace>/<name>, so no CA is injected")
		}
	} else if client.Service.IsDefined() && len(client.CABundle) == 0 {
		warn(path.Child("caBundle"),
			"is not set, and certificates of Services are seldom signed by a public authority; set it, or "+
				"the annotation "+runtimev1.InjectCAFromSecretAnnotation)
	}
	if text := warningOfHost(client.URL); text != "" {
		warn(path.Child("url"), text)
	}
	if _, ok := config.Annotations[clusterv1.PausedAnnotation]; ok {
		warn(annotations.Key(clusterv1.PausedAnnotation),
			"the extension is not discovered until the annotation is gone")
	}
	return list
}

func injects(config *runtimev1.ExtensionConfig) bool {
	_, ok := config.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	return ok
}

// warningOfHost returns why the host of a URL is hardly intended, or "".
func warningOfHost(raw string) string {
	u, err := url.Parse(raw)
	if raw == "" || err != nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, err := netip.ParseAddr(host)
	switch {
	case host == "localhost", strings.HasSuffix(host, ".localhost"), err == nil && addr.Unmap().IsLoopback():
		return host + " is the gateway's own Pod, not the extension's, unless the extension runs beside the gateway"
	case err == nil && connect.Forbidden(addr) != "":
		return host + " is " + connect.Forbidden(addr) + ", which the gateway does not call"
	case strings.HasSuffix(host, ".svc"), strings.HasSuffix(host, ".svc.cluster.local"):
		return host +
			" is a Service of a cluster: name a Service of this cluster in spec.clientConfig.service, so that the " +
			"gateway follows changes of its endpoints and uses no proxy"
	}
	return ""
}
