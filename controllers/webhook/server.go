// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/policy"
)

// maxReview bounds a request for conversion, in bytes. The API server asks for all objects of a list at once.
const maxReview = 64 << 20

// ConversionPath is where the API server asks for conversions. The other paths follow from group, version and kind, as
// those of Cluster API do.
const ConversionPath = "/convert"

// Config is what a Server needs.
type Config struct {
	// Group is the API group of the ExtensionConfigs.
	Group string
	// Own are the addresses of this gateway, which no ExtensionConfig may call.
	Own controllers.Addresses

	// Port is where it listens, on all addresses.
	Port int
	// CertDir, CertName and KeyName are where its certificate and key are, which are followed.
	CertDir, CertName, KeyName string
	// TLS may change how it serves.
	TLS func(*tls.Config)
}

// Server answers the API server over HTTPS.
type Server struct{ server ctrlwebhook.Server }

// New returns a Server. It does not listen yet.
func New(c Config) (*Server, error) {
	compiler, err := policy.NewCompiler()
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	scheme := newScheme(c.Group)
	converters := conversion.NewRegistry()
	converter, err := newConverter()(scheme)
	if err == nil {
		err = converters.RegisterConverter(schema.GroupKind{Group: c.Group, Kind: "ExtensionConfig"}, converter)
	}
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}

	options := ctrlwebhook.Options{Port: c.Port, CertDir: c.CertDir, CertName: c.CertName, KeyName: c.KeyName}
	if c.TLS != nil {
		options.TLSOpts = append(options.TLSOpts, c.TLS)
	}
	s := ctrlwebhook.NewServer(options)
	configs := extensionConfigs{group: c.Group, own: c.Own}
	s.Register(Path("mutate", c.Group, "v1beta2", "extensionconfig"),
		admission.WithDefaulter[*runtimev1.ExtensionConfig](scheme, configs).WithRecoverPanic(true))
	s.Register(Path("validate", c.Group, "v1beta2", "extensionconfig"),
		admission.WithValidator[*runtimev1.ExtensionConfig](scheme, configs).WithRecoverPanic(true))
	s.Register(Path("validate", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "extensionpolicy"),
		admission.WithValidator[*v1alpha1.ExtensionPolicy](scheme, extensionPolicies{compiler: compiler}).WithRecoverPanic(true))
	s.Register(ConversionPath, http.MaxBytesHandler(conversion.NewWebhookHandler(scheme, converters), maxReview))
	return &Server{server: s}, nil
}

// Path returns where the API server asks to mutate or validate objects of a kind.
func Path(verb, group, version, kind string) string {
	return "/" + verb + "-" + strings.ReplaceAll(group, ".", "-") + "-" + version + "-" + kind
}

// Run answers until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	if err := s.server.Start(ctx); err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	return nil
}

// newScheme returns a scheme with Cluster API's Go types of ExtensionConfig in that group, and ExtensionPolicy.
func newScheme(group string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	hub := schema.GroupVersion{Group: group, Version: runtimev1.GroupVersion.Version}
	scheme.AddKnownTypes(hub, &runtimev1.ExtensionConfig{}, &runtimev1.ExtensionConfigList{})
	metav1.AddToGroupVersion(scheme, hub)
	spoke := schema.GroupVersion{Group: group, Version: runtimev1alpha1.GroupVersion.Version}
	scheme.AddKnownTypes(spoke, &runtimev1alpha1.ExtensionConfig{}, &runtimev1alpha1.ExtensionConfigList{})
	metav1.AddToGroupVersion(scheme, spoke)
	scheme.AddKnownTypes(v1alpha1.GroupVersion, &v1alpha1.ExtensionPolicy{}, &v1alpha1.ExtensionPolicyList{})
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	return scheme
}
