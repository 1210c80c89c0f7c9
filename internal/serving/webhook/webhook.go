// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// ConvertPath is the path at which the API server converts ExtensionConfigs.
const ConvertPath = "/convert"

// MutatePath returns the path of the defaulting webhook for ExtensionConfigs of a group.
func MutatePath(group string) string {
	return Path("mutate", group, runtimev1.GroupVersion.Version, "extensionconfig")
}

// ValidatePath returns the path of the validating webhook for ExtensionConfigs of a group.
func ValidatePath(group string) string {
	return Path("validate", group, runtimev1.GroupVersion.Version, "extensionconfig")
}

// Path returns the path of a webhook for a kind as controller-runtime has it.
func Path(verb, group, version, kind string) string {
	return "/" + strings.Join([]string{verb, strings.ReplaceAll(group, ".", "-"), version, kind}, "-")
}

// Config configures the webhooks.
type Config struct {
	// Group is the API group of the ExtensionConfigs.
	Group string
	// Own are the addresses of this gateway, which no ExtensionConfig may call.
	Own    extensionconfig.Addresses
	Logger *slog.Logger
	// Catalog holds the hooks of the gateway.
	Catalog *catalog.Catalog
	// HookJobs is what HookJobs may do.
	HookJobs hookjob.Allowed
	// Registry has what is registered, for names that would collide. It may be nil.
	Registry registry.Snapshots
	// Rollouts knows which Clusters have moved to another version of an extension. It may be nil.
	Rollouts rollout.Moves
}

// New returns the handler of all webhooks.
func New(c Config) (http.Handler, error) {
	compiler, err := policy.NewCompiler()
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	types, err := policy.NewTypes(c.Catalog)
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	scheme := newScheme(c.Group)
	convert, err := newConverter(scheme, c.Group)
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	registered := func() *registry.Snapshot { return nil }
	if c.Registry != nil {
		registered = c.Registry.Snapshot
	}
	configs := extensionConfigs{group: c.Group, own: c.Own, hooks: c.Catalog, registered: registered}
	handlers := map[string]http.Handler{
		MutatePath(c.Group):   newCreation(scheme, configs),
		ValidatePath(c.Group): admission.WithValidator[*runtimev1.ExtensionConfig](scheme, configs),
	}
	rules := allkinds.Rules(allkinds.Config{
		Hooks: c.Catalog, Conditions: compiler, Types: types, Registered: registered, Moves: c.Rollouts,
		Rules: hookrule.NewCompiler(c.Catalog, compiler, types, time.Now),
		Jobs:  hookjob.NewCompiler(c.Catalog, compiler, types, &c.HookJobs, nil),
	})
	for _, of := range rules {
		handlers[OwnPath(of.Name)] = newOwn(scheme, of)
	}
	mux := Admissions(handlers, c.Logger)
	mux.Handle("POST "+ConvertPath, recovered(conversionBounds().around(convert), c.Logger))
	return mux, nil
}

// Admissions returns a handler of requests for admission, by path. It bounds their size, and how many are read and
// answered at the same time.
func Admissions(handlers map[string]http.Handler, logger *slog.Logger) *http.ServeMux {
	mux, bounded := http.NewServeMux(), admissionBounds()
	for path, h := range handlers {
		mux.Handle("POST "+path, recovered(bounded.around(h), logger))
	}
	return mux
}

// newScheme returns a scheme with both versions of ExtensionConfig in one group, and Hookgate's own kinds.
func newScheme(group string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for version, object := range map[string]runtime.Object{
		runtimev1alpha1.GroupVersion.Version: &runtimev1alpha1.ExtensionConfig{},
		runtimev1.GroupVersion.Version:       &runtimev1.ExtensionConfig{},
	} {
		gv := schema.GroupVersion{Group: group, Version: version}
		scheme.AddKnownTypes(gv, object)
		metav1.AddToGroupVersion(scheme, gv)
	}
	utilruntime.Must(v1alpha1.AddToScheme(scheme)) // fails for types that conflict, which would be a defect
	return scheme
}

// recovered answers 500 where next panics. Admission and conversion recover by themselves, but not while they decode.
func recovered(next http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				logger.Error("webhook panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				http.Error(w, "internal error", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
