// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Extension is a set of handlers. The zero value is one without handlers. Set the fields before the first handler is
// registered.
type Extension struct {
	// ClusterAPIVersion is the version of Cluster API's objects that the handlers read, "v1beta1" or "v1beta2": a gateway
	// converts objects of the other one. Empty means "v1beta2", and AsSent that objects arrive as the caller sent them.
	ClusterAPIVersion string
	// Groups names the group of hooks of each proto package, such as "dns.acme.example" of "acme.dns.v1alpha1", for hooks
	// that are not of the project's own protos. The version is the last element of the package.
	Groups map[string]string
	// Logger gets a line about each call: Debug for a successful one and for the discovery of a group that the extension
	// does not have, Info for a failed one, and Error with the stack for one whose handler panicked. It never gets
	// requests or settings. Nil means JSON on standard error, from Info on.
	Logger *slog.Logger

	services map[string]*service // by full name
	handlers []*handler          // in the order of registration
	errs     []error
}

// AsSent in place of a version of Cluster API's objects means that they arrive as the caller sent them.
const AsSent = "as-sent"

// The timeouts of handlers, as Cluster API has them.
const (
	defaultTimeout = 10 * time.Second
	maxTimeout     = 30 * time.Second
)

// handler is one handler of a hook.
type handler struct {
	name              string
	method            *method
	timeout           time.Duration
	failurePolicy     string
	clusterAPIVersion string
	run               func(ctx context.Context, in proto.Message) (proto.Message, error)
}

// Option changes what Discovery says about a handler.
type Option func(*handler)

// Timeout is how long a call of the handler may take, in whole seconds up to 30. The default is 10 s. At 0, Cluster API
// uses its own default.
func Timeout(d time.Duration) Option { return func(h *handler) { h.timeout = d } }

// FailurePolicy is "Fail", which is the default, or "Ignore": a call that could not be completed then counts as
// successful.
func FailurePolicy(policy string) Option { return func(h *handler) { h.failurePolicy = policy } }

// ClusterAPIVersion is Extension.ClusterAPIVersion for one handler.
func ClusterAPIVersion(version string) Option {
	return func(h *handler) { h.clusterAPIVersion = version }
}

// Handle registers a handler of the hook whose request is Req, a pointer to a message of the stubs. The name is a
// DNS-1123 label that no other handler of the extension has. Err returns what is wrong with a registration.
//
// The handler returns Done, Wait or Patches, or an error: that of Failf becomes the answer's message; one with a gRPC
// status, not wrapped, becomes the status of the call; of any other error, and of a panic, the caller learns only that
// there was one, and the text goes to the log.
func Handle[Req proto.Message](
	x *Extension, name string, run func(ctx context.Context, in Req) (Answer, error), options ...Option,
) {
	var in Req
	h := &handler{name: name}
	h.run = func(ctx context.Context, in proto.Message) (proto.Message, error) {
		answer, err := run(ctx, in.(Req)) //nolint:forcetypeassert // the method has this request
		if err != nil {
			return nil, err
		}
		out := h.method.response.New()
		if answer == nil {
			return nil, errNoAnswer
		}
		if err := answer.fill(h, out); err != nil {
			return nil, err
		}
		return out.Interface(), nil
	}
	x.register(h, proto.Message(in) != nil, in, nil, options)
}

// HandleResponse is like Handle, for a handler that returns the response message of the stubs: it has the signature of
// the method in the stubs' own server interface. The status is Success unless the handler sets it.
//
// HandleResponse with the request of a discovery, such as *DiscoverInfrastructureRequest, answers that one with what
// the handler returns and the list of handlers.
func HandleResponse[Req, Resp proto.Message](
	x *Extension, name string, run func(ctx context.Context, in Req) (Resp, error), options ...Option,
) {
	var in Req
	var out Resp
	h := &handler{name: name}
	h.run = func(ctx context.Context, in proto.Message) (proto.Message, error) {
		out, err := run(ctx, in.(Req)) //nolint:forcetypeassert // the method has this request
		if err != nil {
			return nil, err
		}
		m := out.ProtoReflect()
		if !m.IsValid() { // a nil pointer
			return nil, errNoAnswer
		}
		if s := statusField(m.Descriptor()); s != nil && !m.Has(s) {
			m = shallow(m)
			m.Set(s, protoreflect.ValueOfEnum(success))
		}
		return m.Interface(), nil
	}
	x.register(h, proto.Message(in) != nil && proto.Message(out) != nil, in, out, options)
}

// register adds h, a handler of the hook with this request. out is a response, or nil for that of the hook. Types that
// are not concrete are not messages of the stubs.
func (x *Extension) register(h *handler, concrete bool, in, out proto.Message, options []Option) {
	h.timeout, h.failurePolicy = defaultTimeout, policyFail
	h.clusterAPIVersion = cmp.Or(x.ClusterAPIVersion, "v1beta2")
	for _, option := range options {
		option(h)
	}
	err := h.check()
	if err == nil && !concrete {
		err = errors.New("the request and response must be pointers to messages from the generated stubs")
	}
	if err == nil {
		h.method, err = x.method(in.ProtoReflect().Type())
	}
	switch {
	case err != nil:
	case out != nil && out.ProtoReflect().Type() != h.method.response:
		err = fmt.Errorf("%s answers with %s, not with %s", h.method.hook, h.method.response.Descriptor().Name(),
			out.ProtoReflect().Descriptor().Name())
	case h.method.discovery && out == nil:
		err = fmt.Errorf("%s is a discovery hook: register its handler with HandleResponse", h.method.hook)
	case h.method.discovery && len(h.method.handlers) > 0:
		err = fmt.Errorf("%s already has the handler %q", h.method.hook, h.method.handlers[0].name)
	}
	for _, other := range x.handlers {
		if err == nil && other.name == h.name {
			err = errors.New("another handler has this name")
		}
	}
	if err != nil {
		x.errs = append(x.errs, fmt.Errorf("handler %q: %w", h.name, err))
		return
	}
	x.handlers = append(x.handlers, h)
	h.method.handlers = append(h.method.handlers, h)
}

const (
	policyFail   = "Fail"
	policyIgnore = "Ignore"
)

// label is the form of a DNS-1123 label, and maxLabel its greatest length.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

const maxLabel = 63

// check returns an error unless Discovery may say this of the handler.
func (h *handler) check() error {
	switch {
	case len(h.name) > maxLabel || !label.MatchString(h.name):
		return errors.New("the name is not a DNS-1123 label: want at most 63 characters of a-z, 0-9 and -, such as " +
			"approve-upgrade")
	case h.timeout < 0 || h.timeout > maxTimeout || h.timeout%time.Second != 0:
		return fmt.Errorf("the timeout %v is not a whole number of seconds from 0s to %v", h.timeout, maxTimeout)
	case h.failurePolicy != policyFail && h.failurePolicy != policyIgnore:
		return fmt.Errorf("the failure policy %q is neither %q nor %q", h.failurePolicy, policyFail, policyIgnore)
	case h.clusterAPIVersion != "v1beta1" && h.clusterAPIVersion != "v1beta2" && h.clusterAPIVersion != AsSent:
		return fmt.Errorf(`the version of Cluster API's objects %q is neither "v1beta1" nor "v1beta2" nor AsSent`,
			h.clusterAPIVersion)
	}
	return nil
}

// Err returns all mistakes in registrations, or nil. Serve and Register return them, too.
func (x *Extension) Err() error {
	if len(x.handlers) == 0 && len(x.errs) == 0 {
		return errors.New("the extension has no handlers: register one with Handle")
	}
	return errors.Join(x.errs...)
}

// logger returns where lines about calls go.
func (x *Extension) logger() *slog.Logger {
	if x.Logger != nil {
		return x.Logger
	}
	return standardError
}

var standardError = slog.New(slog.NewJSONHandler(os.Stderr, nil))
