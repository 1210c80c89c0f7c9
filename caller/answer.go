// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/internal/network/via"
)

// Failure is the error of a hook that answered Failure: a problem that a person must solve. The message is the
// extension's, as the gateway gives it. It may be written into a condition.
type Failure struct {
	Hook    string
	Message string
	CallID  string // under which the log of the gateway has the call; empty if the answer does not say
}

// Error returns the hook and the message.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s answered Failure: %s", f.Hook, cmp.Or(f.Message, "it does not say why"))
}

// NoAnswer is the cause of the error of a call that nothing answered. Its text names neither the hook nor the gateway.
type NoAnswer struct{ Err error }

// Error returns the text.
func (n *NoAnswer) Error() string { return n.Err.Error() }

// Unwrap returns the cause.
func (n *NoAnswer) Unwrap() error { return n.Err }

// InvalidAnswer is the cause of the error of a call whose answer is none of its hook. Its text names neither the hook
// nor the gateway.
type InvalidAnswer struct {
	Text string
	Err  error // for a log; may be nil
}

// Error returns the text, and why.
func (i *InvalidAnswer) Error() string {
	if i.Err == nil {
		return i.Text
	}
	return i.Text + ": " + i.Err.Error()
}

// Unwrap returns the cause.
func (i *InvalidAnswer) Unwrap() error { return i.Err }

// Hold reports whether an answer holds the caller, for how long, and why: call the hook again after that time.
func Hold(answer interface {
	GetRetryAfterSeconds() int32
	GetMessage() string
}) (wait time.Duration, why string, held bool) {
	wait = time.Duration(answer.GetRetryAfterSeconds()) * time.Second
	return max(wait, 0), answer.GetMessage(), wait > 0
}

// Object returns a Kubernetes object for a request, as Cluster API sends it: without its status and managed fields, and
// without the annotation of kubectl apply. It must state its apiVersion and kind, which typed objects that were read by
// a client do not: set its TypeMeta.
func Object(object any) (*hooksv1alpha1.RawExtension, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("object %T: %w", object, err)
	}
	var members map[string]json.RawMessage
	var apiVersion, kind string
	if err := json.Unmarshal(encoded, &members); err != nil {
		return nil, fmt.Errorf("object %T is not a JSON object: %w", object, err)
	}
	_, _ = json.Unmarshal(members["apiVersion"], &apiVersion), json.Unmarshal(members["kind"], &kind)
	if apiVersion == "" || kind == "" {
		return nil, fmt.Errorf("object %T must have apiVersion and kind: set both, or the TypeMeta of a typed object", object)
	}
	delete(members, "status")
	if members["metadata"], err = withoutBookkeeping(members["metadata"]); err != nil {
		return nil, fmt.Errorf("object %T: %w", object, err)
	}
	raw, err := json.Marshal(members)
	return &hooksv1alpha1.RawExtension{Raw: raw}, err
}

// lastApplied is the annotation of kubectl apply, which has the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func withoutBookkeeping(text json.RawMessage) (json.RawMessage, error) {
	var metadata, annotations map[string]json.RawMessage
	if err := json.Unmarshal(text, &metadata); err != nil || metadata == nil {
		return nil, errors.New("it has no metadata")
	}
	delete(metadata, "managedFields")
	if json.Unmarshal(metadata["annotations"], &annotations) == nil && annotations[lastApplied] != nil {
		delete(annotations, lastApplied)
		var err error
		if metadata["annotations"], err = json.Marshal(annotations); err != nil {
			return nil, err
		}
	}
	return json.Marshal(metadata)
}

// accept returns the answer in a response, and an error unless its status is Success.
func (c *Client) accept(h *catalog.Hook, r *client.Response) (proto.Message, error) {
	switch {
	case r.Failure != nil:
		return nil, hook.Errorf(r.Failure.Kind, "call %s of gateway %s: %s%s", h.Hook, c.name, r.Failure.Text,
			c.instead(r.Failure.Reason)).WithCause(&NoAnswer{r.Failure})
	case r.IsGRPC():
		why := &InvalidAnswer{Text: "the server speaks gRPC"}
		return nil, hook.Errorf(hook.BadResponse, "call %s of gateway %s: %s; use %s://%s", h.Hook, c.name, why.Text,
			endpoint.GRPCS, c.server.Authority).WithCause(why)
	case !r.OK():
		return nil, c.refusal(h, r)
	case r.Invalid != nil:
		return nil, c.invalid(h, &InvalidAnswer{"the answer is invalid", r.Invalid})
	}
	switch status, _ := catalog.StatusOf(r.Message); status {
	case catalog.Success:
		return r.Message, nil
	case catalog.Failure:
		return r.Message, &Failure{
			Hook: h.Hook, Message: text.Printable(catalog.MessageOf(r.Message)), CallID: r.Header.Get(callIDHeader),
		}
	}
	return nil, c.invalid(h, &InvalidAnswer{Text: "the answer has no status"})
}

// instead returns which URL to use instead, for a server that speaks another protocol, or "".
func (c *Client) instead(r connect.Reason) string {
	to := func(scheme string) string { return "; use " + scheme + "://" + c.server.Authority }
	switch {
	case c.server.Network != "tcp":
	case r == connect.NoPlaintext:
		return to(endpoint.GRPCS)
	case r == connect.NoTLS && c.server.IsLocal():
		return to(endpoint.GRPC)
	case (r == connect.NoHTTP2 || r == connect.NotGRPC) && c.server.HasTLS():
		return to(endpoint.HTTPS)
	}
	return ""
}

func (c *Client) invalid(h *catalog.Hook, why *InvalidAnswer) *hook.Error {
	return hook.Errorf(hook.BadResponse, "call %s of gateway %s: %s", h.Hook, c.name, why.Text).WithCause(why)
}

// refusal returns the error that a gateway answered with. Its message is the gateway's, and the same for the same
// failure. An error of another server is a BadResponse.
func (c *Client) refusal(h *catalog.Hook, r *client.Response) *hook.Error {
	kind, message, after := r.Header.Get(via.ErrorKindHeader), "", time.Duration(0)
	if r.GRPC != nil {
		message = r.GRPC.Message()
		for _, detail := range r.GRPC.Details() {
			switch d := detail.(type) {
			case *errdetails.ErrorInfo:
				kind = d.GetReason()
			case *errdetails.RetryInfo:
				after = d.GetRetryDelay().AsDuration()
			}
		}
	} else {
		after = retryAfter(r.Header)
		var body struct{ Message string }
		if json.Unmarshal(r.Body, &body) == nil {
			message = body.Message
		}
	}
	for _, k := range hook.Kinds() {
		if k.String() == kind {
			return hook.Errorf(k, "%s", text.Printable(cmp.Or(message, r.Status))).WithRetryAfter(max(after, 0)).
				WithCause(fmt.Errorf("%s, call id %q", r.Status, r.Header.Get(callIDHeader)))
		}
	}
	if r.GRPC.Code() == codes.DeadlineExceeded { // the server has noticed it first
		return hook.Errorf(hook.Timeout, "call %s of gateway %s: no answer in time", h.Hook, c.name).WithCause(r.GRPC.Err())
	}
	return hook.Errorf(hook.BadResponse, "call %s: %s answers %s, which is not a gateway's answer: check that "+
		"the URL is right and that the gateway was built with this hook", h.Hook, c.name, r.Status).WithCause(r.GRPC.Err())
}

// callIDHeader carries the id under which the log of the gateway has the call.
const callIDHeader = "Hookgate-Call-Id"

// retryAfter returns the seconds of the header Retry-After.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
