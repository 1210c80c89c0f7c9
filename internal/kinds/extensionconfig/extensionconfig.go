// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// The limits of Cluster API's discovery.
const (
	defaultTimeoutSeconds = int32(limits.DefaultTimeout / time.Second)
	maxTimeoutSeconds     = int32(limits.Timeout / time.Second)
)

// HookgateGroup is the API group of ExtensionConfigs that only the gateway calls. It has Cluster API's schema.
const HookgateGroup = "runtime.hookgate.dev"

// DefaultPort is the port of a Service reference without one.
const DefaultPort int32 = 443

// Extension is an ExtensionConfig, checked and ready to be reconciled.
type Extension struct {
	// Registration lacks its handlers, which discovery finds.
	registry.Registration
	// LastKnown are the handlers that an earlier discovery left in the status. They are registered until discovery
	// succeeds.
	LastKnown []registry.Handler
	// LastClient is where LastKnown were discovered. Nil means that it is not known: they are called where the
	// ExtensionConfig says.
	LastClient *LastClient
	// Discovered reports whether LastKnown are all handlers that an earlier discovery has found, even if there are none.
	Discovered bool
	// Awaited reports whether calls to all handlers of a hook have to wait for those of the extension while they are not
	// known, unless its policy says otherwise.
	Awaited bool
	// Paused reports whether the ExtensionConfig is paused: it is not discovered, and its registration does not
	// change.
	Paused bool
}

// Equal reports whether x and o are the same to a reconciler.
func (x *Extension) Equal(o *Extension) bool {
	return SameRegistration(&x.Registration, &o.Registration) && slices.Equal(x.LastKnown, o.LastKnown) &&
		x.sameLastClient(o) && x.Discovered == o.Discovered && x.Awaited == o.Awaited && x.Paused == o.Paused
}

func (x *Extension) sameLastClient(o *Extension) bool {
	if x.LastClient == nil || o.LastClient == nil {
		return x.LastClient == o.LastClient
	}
	return *x.LastClient == *o.LastClient
}

// OnUndiscovered returns what becomes of calls to all handlers of a hook while those of x are not known, unless a
// policy decides it.
func (x *Extension) OnUndiscovered() hook.FailurePolicy {
	if x.Awaited {
		return hook.Fail
	}
	return hook.Ignore
}

// SameRegistration reports whether a and b have the same content.
func SameRegistration(a, b *registry.Registration) bool {
	return a.Name == b.Name && SameClient(a.ClientConfig, b.ClientConfig) &&
		selectorString(a) == selectorString(b) && reflect.DeepEqual(a.Settings, b.Settings) &&
		slices.Equal(a.Handlers, b.Handlers) && samePending(a.Pending, b.Pending)
}

func samePending(a, b *registry.Pending) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func selectorString(r *registry.Registration) string {
	if r.NamespaceSelector == nil {
		return ""
	}
	return r.NamespaceSelector.String()
}

// SameClient reports whether a and b call the same extension in the same way.
func SameClient(a, b registry.ClientConfig) bool {
	return a.Owner == b.Owner && a.Protocol == b.Protocol && a.URL == b.URL && a.InCluster == b.InCluster &&
		string(a.CABundle) == string(b.CABundle)
}

// Convert returns the Extension of an ExtensionConfig, with the defaults and by the rules of Cluster API's webhook
// and schema. It does not read the status; see LastKnownHandlers. It does not change config.
func Convert(config *runtimev1.ExtensionConfig) (Extension, field.ErrorList) {
	return convertWith(config, convertClientConfig)
}

// ConvertLocal is Convert for manifests, whose URLs may have the schemes of gRPC, too.
func ConvertLocal(config *runtimev1.ExtensionConfig) (Extension, field.ErrorList) {
	return convertWith(config, convertLocalClientConfig)
}

func convertWith(
	config *runtimev1.ExtensionConfig,
	convertClient func(*runtimev1.ClientConfig, *field.Path) (registry.ClientConfig, field.ErrorList),
) (
	Extension, field.ErrorList,
) {
	errs := kinds.ValidateName(config.Name)
	spec := field.NewPath("spec")
	client, clientErrs := convertClient(&config.Spec.ClientConfig, spec.Child("clientConfig"))
	errs = append(errs, clientErrs...)
	client.Owner = config.Name

	x := Extension{Registration: registry.Registration{
		Name: config.Name, ClientConfig: client, Settings: config.Spec.Settings,
	}}
	if s := config.Spec.NamespaceSelector; s != nil {
		path := spec.Child("namespaceSelector")
		selectorErrs := metav1validation.ValidateLabelSelector(s,
			metav1validation.LabelSelectorValidationOptions{}, path)
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil && len(selectorErrs) == 0 {
			selectorErrs = append(selectorErrs, field.Invalid(path, metav1.FormatLabelSelector(s), err.Error()))
		}
		errs = append(errs, selectorErrs...)
		if err == nil && !selector.Empty() {
			x.NamespaceSelector = selector
		}
	}
	_, x.Paused = config.Annotations[clusterv1.PausedAnnotation]
	return x, errs
}

func convertClientConfig(c *runtimev1.ClientConfig, path *field.Path) (registry.ClientConfig, field.ErrorList) {
	client := registry.ClientConfig{CABundle: c.CABundle}
	var errs field.ErrorList
	switch {
	case c.URL != "" && c.Service.IsDefined():
		errs = append(errs, field.Forbidden(path, "must have url or service, not both"))
	case c.URL != "":
		errs = validateURL(c.URL, path.Child("url"))
		client.URL = c.URL
	case c.Service.IsDefined():
		errs = validateService(&c.Service, path.Child("service"))
		client.URL, client.InCluster = serviceURL(&c.Service), true
	default:
		errs = append(errs, field.Required(path, "must have url or service"))
	}
	return client, append(errs, validateCABundle(c.CABundle, path.Child("caBundle"))...)
}

func validateCABundle(ca []byte, path *field.Path) field.ErrorList {
	switch {
	case base64.StdEncoding.EncodedLen(len(ca)) > limits.CABundleBytes:
		return field.ErrorList{field.TooLong(path, "", limits.CABundleBytes)}
	case len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca):
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"must be base64 of at least one certificate in PEM")}
	}
	return nil
}

// convertLocalClientConfig takes the protocol from the scheme of the URL.
func convertLocalClientConfig(c *runtimev1.ClientConfig, path *field.Path) (registry.ClientConfig, field.ErrorList) {
	if c.Service.IsDefined() || registry.ProtocolOf(c.URL) != registry.GRPC {
		return convertClientConfig(c, path)
	}
	client := registry.ClientConfig{Protocol: registry.GRPC, URL: c.URL, CABundle: c.CABundle}
	errs := validateURLOf(&client, path.Child("url"))
	if scheme, _, _ := strings.Cut(c.URL, "://"); !strings.EqualFold(scheme, registry.SchemeGRPCS) && len(c.CABundle) > 0 {
		errs = append(errs, field.Forbidden(path.Child("caBundle"), "there is no TLS with "+scheme+"://"))
		return client, errs
	}
	return client, append(errs, validateCABundle(c.CABundle, path.Child("caBundle"))...)
}

func validateURL(raw string, path *field.Path) field.ErrorList {
	return validateURLOf(&registry.ClientConfig{URL: raw}, path)
}

func validateURLOf(c *registry.ClientConfig, path *field.Path) field.ErrorList {
	raw := c.URL
	if len(raw) > limits.URLBytes {
		return field.ErrorList{field.TooLong(path, "", limits.URLBytes)}
	}
	err := c.CheckURL()
	if err == nil {
		return nil
	}
	u, parseErr := url.Parse(raw)
	if parseErr != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return field.ErrorList{field.Invalid(path, u.Redacted(), err.Error())}
}

func validateService(s *runtimev1.ServiceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name := path.Child("name"); s.Name == "" {
		errs = append(errs, field.Required(name, "must be the name of a Service"))
	} else {
		for _, msg := range validation.IsDNS1035Label(s.Name) {
			errs = append(errs, field.Invalid(name, s.Name, msg))
		}
	}
	if namespace := path.Child("namespace"); s.Namespace == "" {
		errs = append(errs, field.Required(namespace, "must be the namespace of the Service"))
	} else {
		for _, msg := range validation.IsDNS1123Label(s.Namespace) {
			errs = append(errs, field.Invalid(namespace, s.Namespace, msg))
		}
	}
	if p := path.Child("path"); len(s.Path) > limits.URLBytes {
		errs = append(errs, field.TooLong(p, "", limits.URLBytes))
	} else if s.Path != "" {
		if !strings.HasPrefix(s.Path, "/") {
			errs = append(errs, field.Invalid(p, s.Path, "must begin with /"))
		} else if _, err := url.ParseRequestURI(s.Path); err != nil {
			errs = append(errs, field.Invalid(p, s.Path, "must be the path of a URL, for example /hooks"))
		}
	}
	if s.Port != nil {
		for _, msg := range validation.IsValidPortNum(int(*s.Port)) {
			errs = append(errs, field.Invalid(path.Child("port"), *s.Port, msg))
		}
	}
	return errs
}

func serviceURL(s *runtimev1.ServiceReference) string {
	port := DefaultPort
	if s.Port != nil {
		port = *s.Port
	}
	host := net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(port)))
	return (&url.URL{Scheme: "https", Host: host, Path: s.Path}).String()
}

// LastKnownHandlers returns the handlers in the status of an ExtensionConfig by the rules of discovery, sorted by name,
// and the handlers left out because the contract lacks their hook. With errors it returns no handlers. The versions of
// objects that handlers understand, and the gateways before them, come from the annotations that StatedVersions and
// Gateways read; invalid entries are left out and are no error.
func LastKnownHandlers(config *runtimev1.ExtensionConfig, hooks *catalog.Catalog) (
	handlers []registry.Handler, skipped []extension.Skipped, errs field.ErrorList,
) {
	path := field.NewPath("status", "handlers")
	if n := len(config.Status.Handlers); n > limits.Handlers {
		return nil, nil, field.ErrorList{field.TooMany(path, n, limits.Handlers)}
	}
	stated, _ := StatedVersions(config)
	gateways, _ := Gateways(config)
	names := map[string]bool{}
	for i := range config.Status.Handlers {
		status := &config.Status.Handlers[i]
		handler, handlerErrs := lastKnownHandler(config.Name, status, path.Index(i))
		if names[status.Name] {
			handlerErrs = append(handlerErrs, field.Duplicate(path.Index(i).Child("name"), status.Name))
		}
		names[status.Name] = true
		errs = append(errs, handlerErrs...)
		if h, ok := hooks.Lookup(handler.Hook); len(handlerErrs) == 0 && (!ok || h.Singleton()) {
			skipped = append(skipped, extension.Skipped{
				Name: status.Name, Reason: fmt.Sprintf("there is no hook %s that can have handlers", handler.Hook),
			})
			continue
		}
		handler.ClusterAPIVersion, handler.Gateways = stated[handler.Name], gateways[handler.Name]
		handlers = append(handlers, handler)
	}
	if len(errs) > 0 {
		return nil, nil, errs
	}
	slices.SortFunc(handlers, func(a, b registry.Handler) int { return strings.Compare(a.Name, b.Name) })
	return handlers, skipped, nil
}

// StatusHandlers returns handlers as the status of an ExtensionConfig has them, sorted by registered name.
func StatusHandlers(config string, found []registry.Handler) []runtimev1.ExtensionHandler {
	var handlers []runtimev1.ExtensionHandler
	for _, h := range found {
		handlers = append(handlers, runtimev1.ExtensionHandler{
			Name:           h.Name + "." + config,
			RequestHook:    runtimev1.GroupVersionHook{APIVersion: h.Hook.APIVersion(), Hook: h.Hook.Hook},
			TimeoutSeconds: int32(h.Timeout / time.Second),
			FailurePolicy:  runtimev1.FailurePolicy(h.FailurePolicy),
		})
	}
	slices.SortFunc(handlers, func(a, b runtimev1.ExtensionHandler) int { return strings.Compare(a.Name, b.Name) })
	return handlers
}

func lastKnownHandler(
	config string, status *runtimev1.ExtensionHandler, path *field.Path,
) (registry.Handler, field.ErrorList) {
	var errs field.ErrorList
	name, ok := strings.CutSuffix(status.Name, "."+config)
	if !ok {
		errs = append(errs, field.Invalid(path.Child("name"), status.Name, "must end with ."+config))
	} else if err := registry.CheckName(name); err != nil {
		errs = append(errs, field.Invalid(path.Child("name"), status.Name, err.Error()))
	}
	gvh, err := hook.Parse(status.RequestHook.APIVersion, status.RequestHook.Hook)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("requestHook"), status.RequestHook.Hook, err.Error()))
	}
	seconds := status.TimeoutSeconds
	if seconds == 0 {
		seconds = defaultTimeoutSeconds
	}
	if seconds < 0 || seconds > maxTimeoutSeconds {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), seconds,
			fmt.Sprintf("must be between 0 and %d", maxTimeoutSeconds)))
	}
	policy := hook.FailurePolicy(status.FailurePolicy)
	switch policy {
	case "":
		policy = hook.Fail
	case hook.Fail, hook.Ignore:
	default:
		errs = append(errs, field.NotSupported(path.Child("failurePolicy"), policy,
			[]hook.FailurePolicy{hook.Fail, hook.Ignore}))
	}
	return registry.Handler{
		Name: name, Hook: gvh, Timeout: time.Duration(seconds) * time.Second, FailurePolicy: policy,
	}, errs
}
