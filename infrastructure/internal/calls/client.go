// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/caller"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Observer observes calls. The outcome is "Success", a reason of Synced, or a kind of error of the gateway.
type Observer interface {
	Call(hook, outcome string, took time.Duration)
}

// Config configures a Client. Gateway is required.
type Config struct {
	// Gateway is a *caller.Client, or returns errors as one does.
	Gateway grpc.ClientConnInterface
	// Calls and CallsPerClass bound the calls in flight. Zero means the defaults.
	Calls, CallsPerClass int
	// Observer may be nil.
	Observer Observer
}

// Client calls the hooks of infrastructure.
type Client struct {
	gateway  grpc.ClientConnInterface
	inFlight *inFlight
	observer Observer
}

// Target is the handler that a call is for.
type Target struct {
	// Class is the InfrastructureClass whose share of calls the call takes.
	Class string
	// Handler is the name of the handler with the name of the ExtensionConfig.
	Handler string
	// ProviderIDPrefix is what new provider IDs begin with.
	ProviderIDPrefix string
}

// New returns a Client, or an error if c lacks something.
func New(c Config) (*Client, error) {
	if c.Gateway == nil {
		return nil, errors.New("calls: Gateway is required")
	}
	return &Client{
		gateway: c.Gateway, observer: c.Observer,
		inFlight: newInFlight(
			cmp.Or(c.Calls, limits.DefaultInfrastructureCalls), cmp.Or(c.CallsPerClass, limits.DefaultClassCalls),
		),
	}, nil
}

// Discover returns what the extension of an ExtensionConfig announces. Its handlers and schemas are not checked here.
func (c *Client) Discover(
	ctx context.Context, class, extensionConfig string,
) (*hooksv1alpha1.DiscoverInfrastructureResponse, error) {
	return call(ctx, c, hooksv1alpha1.DiscoveryService_DiscoverInfrastructure_FullMethodName,
		Target{Class: class, Handler: extensionConfig}, nil, &hooksv1alpha1.DiscoverInfrastructureRequest{},
		func(r *hooksv1alpha1.DiscoverInfrastructureResponse) error {
			return checkPrefix(r.GetProviderIdPrefix())
		})
}

// ReconcileCluster calls the hook of this name.
func (c *Client) ReconcileCluster(
	ctx context.Context, t Target, req *hooksv1alpha1.ReconcileClusterRequest,
) (*hooksv1alpha1.ReconcileClusterResponse, error) {
	return call(ctx, c, hooksv1alpha1.ClusterHooksService_ReconcileCluster_FullMethodName, t,
		req.GetSubject(), req, checkCluster)
}

// DeleteCluster calls the hook of this name.
func (c *Client) DeleteCluster(
	ctx context.Context, t Target, req *hooksv1alpha1.DeleteClusterRequest,
) (*hooksv1alpha1.DeleteClusterResponse, error) {
	return call(ctx, c, hooksv1alpha1.ClusterHooksService_DeleteCluster_FullMethodName, t,
		req.GetSubject(), req, checkDeletion[*hooksv1alpha1.DeleteClusterResponse])
}

// ReconcileMachine calls the hook of this name. An answer with the provider ID of the request is accepted whatever
// prefix it has.
func (c *Client) ReconcileMachine(
	ctx context.Context, t Target, req *hooksv1alpha1.ReconcileMachineRequest,
) (*hooksv1alpha1.ReconcileMachineResponse, error) {
	return call(ctx, c, hooksv1alpha1.MachineHooksService_ReconcileMachine_FullMethodName, t, req.GetSubject(), req,
		func(r *hooksv1alpha1.ReconcileMachineResponse) error {
			return checkMachine(r, t.ProviderIDPrefix, req.GetProviderId())
		})
}

// DeleteMachine calls the hook of this name.
func (c *Client) DeleteMachine(
	ctx context.Context, t Target, req *hooksv1alpha1.DeleteMachineRequest,
) (*hooksv1alpha1.DeleteMachineResponse, error) {
	return call(ctx, c, hooksv1alpha1.MachineHooksService_DeleteMachine_FullMethodName, t,
		req.GetSubject(), req, checkDeletion[*hooksv1alpha1.DeleteMachineResponse])
}

// ReconcileMachinePool calls the hook of this name. Provider IDs that known has are accepted whatever prefix they have.
func (c *Client) ReconcileMachinePool(
	ctx context.Context, t Target, req *hooksv1alpha1.ReconcileMachinePoolRequest, known map[string]bool,
) (*hooksv1alpha1.ReconcileMachinePoolResponse, error) {
	return call(ctx, c, hooksv1alpha1.MachinePoolHooksService_ReconcileMachinePool_FullMethodName, t,
		req.GetSubject(), req, func(r *hooksv1alpha1.ReconcileMachinePoolResponse) error {
			return checkPool(r, t.ProviderIDPrefix, known)
		})
}

// DeleteMachinePool calls the hook of this name.
func (c *Client) DeleteMachinePool(
	ctx context.Context, t Target, req *hooksv1alpha1.DeleteMachinePoolRequest,
) (*hooksv1alpha1.DeleteMachinePoolResponse, error) {
	return call(ctx, c, hooksv1alpha1.MachinePoolHooksService_DeleteMachinePool_FullMethodName, t, req.GetSubject(), req,
		checkDeletion[*hooksv1alpha1.DeleteMachinePoolResponse])
}

// answer is what all answers of the group have.
type answer interface {
	proto.Message
	GetMessage() string
}

// call makes a call, and returns an answer that check accepts. The error is an *Error, ErrBusy, or that of ctx.
func call[R answer](
	ctx context.Context, c *Client, method string, t Target, subject *hooksv1alpha1.Subject, req proto.Message,
	check func(R) error,
) (R, error) {
	var none R
	release, err := c.inFlight.acquire(ctx, t.Class)
	if err != nil {
		return none, err
	}
	defer release()
	calling, cancel := context.WithTimeout(ctx, limits.InfrastructureTimeout)
	defer cancel()
	name := path.Base(method)
	out := none.ProtoReflect().New().Interface().(R)
	began := time.Now()
	err = c.gateway.Invoke(calling, method, catalog.WithHandler(req, t.Handler), out)
	err = accept(err, out, newScrubber(subject), check)
	if ctx.Err() != nil {
		return none, ctx.Err() // the controllers stop
	}
	if c.observer != nil {
		c.observer.Call(name, outcomeOf(err), time.Since(began))
	}
	if e, ok := errors.AsType[*Error](err); ok {
		of := name
		if t.Handler != "" {
			of = fmt.Sprintf("%s of handler %q", name, t.Handler)
		}
		e.Message = of + ": " + e.Message
		return none, e
	}
	if err != nil {
		return none, err
	}
	return out, nil
}

func outcomeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Outcome
	}
	return "Success"
}

// accept returns an error unless the answer to a call that ended with err is one that check accepts.
func accept[R answer](err error, a R, s *scrubber, check func(R) error) error {
	failure, failed := errors.AsType[*caller.Failure](err)
	if err != nil && !failed {
		return ofGateway(err, s)
	}
	s.scrub(a.ProtoReflect())
	if failed {
		return &Error{
			Reason: infrav1.CallFailedReason, Outcome: "Failure", RetryAfter: RetryAfter(a), cause: failure,
			Message: "the extension answers Failure: " + cmp.Or(s.clean(a.GetMessage()), "it does not say why"),
		}
	}
	return check(a)
}

// ofGateway returns the error of a call without an answer. Its text is the same for the same failure.
func ofGateway(err error, s *scrubber) *Error {
	e := &Error{Reason: infrav1.CallFailedReason, Outcome: "Other", Message: s.clean(err.Error()), cause: err}
	failed, ok := errors.AsType[*hook.Error](err)
	if !ok {
		return e
	}
	switch cause := failed.Cause.(type) { //nolint:errorlint // those that caller sets; they wrap others
	case *caller.NoAnswer:
		e.Outcome, e.Message = failed.Kind.String(), "the gateway cannot be called: "+s.clean(cause.Error())
		return e
	case *caller.InvalidAnswer:
		return bad("%s", s.clean(cause.Error()))
	case interface{ GRPCStatus() *status.Status }: // of a server that is no gateway
		of := cause.GRPCStatus()
		e.Message = cmp.Or(s.clean(of.Message()), "gRPC "+of.Code().String())
		return e
	}
	e.Outcome, e.Message, e.RetryAfter = failed.Kind.String(), s.clean(failed.Message), bounded(failed.RetryAfter)
	switch failed.Kind {
	case hook.UnknownHandler:
		e.Reason = infrav1.MissingHandlerReason
	case hook.BadResponse:
		e.Reason = infrav1.BadAnswerReason
	}
	return e
}

// RetryAfter returns when an extension wants to be called again, within bounds. Zero leaves it to the caller.
func RetryAfter(a proto.Message) time.Duration {
	r, ok := a.(interface{ GetRetryAfterSeconds() int32 })
	if !ok {
		return 0
	}
	return bounded(time.Duration(r.GetRetryAfterSeconds()) * time.Second)
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), limits.LongestRecall) }

// scrubber removes the values of credentials from texts of the extension, which may repeat what it was sent.
type scrubber struct{ values *strings.Replacer }

// least and leastLine are the lengths of the shortest value, and line of one, that are removed: shorter ones occur in
// other words, and in other texts.
const (
	least     = 6
	leastLine = 16
)

func newScrubber(subject *hooksv1alpha1.Subject) *scrubber {
	forms := map[string]bool{}
	for _, value := range subject.GetCredentials() {
		if value = strings.TrimSpace(value); len(value) < least {
			continue
		}
		forms[value] = true
		if quoted, err := json.Marshal(value); err == nil {
			forms[string(quoted[1:len(quoted)-1])] = true
		}
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= leastLine {
				forms[line] = true
			}
		}
	}
	// A value that begins with another one must go first, or what follows the shorter one stays.
	ordered := slices.SortedFunc(maps.Keys(forms), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	var pairs []string
	for _, form := range ordered {
		pairs = append(pairs, form, "***")
	}
	return &scrubber{values: strings.NewReplacer(pairs...)}
}

// clean returns a text for a condition.
func (s *scrubber) clean(message string) string {
	return redact.Bounded(text.Printable(s.values.Replace(message)), limits.ConditionMessageBytes/2)
}
