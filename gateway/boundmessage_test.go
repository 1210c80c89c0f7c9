// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/registry"
)

// A message of an extension reaches the caller and the log cut, over both transports and on both fronts, and without
// passwords; unknown members pass as they are.
func TestLongMessagesAreCut(t *testing.T) {
	const mark = " … (cut)"
	atLimit := "password=hunter2 " + strings.Repeat("x", limits.MessageBytes-17)
	for name, message := range map[string]string{"AtLimit": atLimit, "Beyond": atLimit + strings.Repeat("x", 1<<20)} {
		want := strings.Replace(atLimit, "hunter2", "***", 1)
		if name == "Beyond" {
			want = strings.Replace(message, "hunter2", "***", 1)[:limits.MessageBytes-len(mark)] + mark
		}
		for _, state := range []hooksv1alpha1.ResponseStatus{success, failure} {
			answer := &hooksv1alpha1.BeforeClusterCreateResponse{
				Status: state, Message: message,
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"more": {Raw: []byte(`"` + message + `"`)}},
			}
			for protocol := range protocols {
				f := newFixture(t, nil)
				if protocol == "GRPC" {
					f.registerStubs(t, hook.Fail, 30*time.Second, stubs{create: func(
						context.Context, *hooksv1alpha1.BeforeClusterCreateRequest,
					) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
						return answer, nil
					}})
				} else {
					f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, _ *http.Request) {
						body, err := mandated.Append(nil, answer)
						if err != nil {
							t.Error(err)
						}
						_, _ = w.Write(body)
					})
				}
				if got := f.throughREST(t); got.message != want {
					t.Errorf("%s %s %s: over REST, the caller got %d bytes: %.100s", name, state, protocol, len(got.message), got.message)
				}
				got, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(),
					&hooksv1alpha1.BeforeClusterCreateRequest{Handler: "v.acme", Cluster: clusterIn("n")})
				if err != nil {
					t.Fatal(err)
				}
				if got.GetMessage() != want {
					t.Errorf("%s %s %s: over gRPC, the caller got %d bytes", name, state, protocol, len(got.GetMessage()))
				}
				if more := got.GetUnknownMembers()["more"].GetRaw(); len(more) != len(message)+2 {
					t.Errorf("%s %s %s: an unknown member has %d bytes, want %d", name, state, protocol, len(more), len(message)+2)
				}
				f.rest.Close()
				f.stop()
				if f.log.Len() > 4*limits.MessageBytes || strings.Contains(f.log.String(), "hunter2") {
					t.Errorf("%s %s %s: the log has %d bytes: %.200s", name, state, protocol, f.log.Len(), f.log)
				}
			}
		}
	}
}

// The messages of several handlers are bounded together, and each keeps its handler's name.
func TestMergedMessagesAreBounded(t *testing.T) {
	for reason, state := range map[string]hooksv1alpha1.ResponseStatus{"Success": success, "Failure": failure} {
		var registrations []registry.Registration
		says := answers{}
		const n = 20
		for i := range n {
			name := fmt.Sprintf("x%02d", i)
			registrations = append(registrations, registrationOf(name, handlerOf("v", "BeforeClusterCreate", hook.Fail)))
			says["v."+name] = func(context.Context, extension.Call) (proto.Message, error) {
				return &hooksv1alpha1.BeforeClusterCreateResponse{Status: state, Message: name + strings.Repeat("x", 1<<20)}, nil
			}
		}
		d := newDispatcher(filled(t, registrations...), fixedNamespaces{}, says)
		var first string
		for range 3 {
			m, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "",
				&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
			if err != nil {
				t.Fatal(err)
			}
			got := m.(outcome.Response).GetMessage()
			if len(got) > limits.MergedMessageBytes {
				t.Errorf("%s: %d messages have %d bytes together", reason, n, len(got))
			}
			for i := range n {
				if !strings.Contains(got, fmt.Sprintf("x%02dx", i)) {
					t.Errorf("%s: the message of extension %d is missing", reason, i)
				}
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%s: the same answers make different messages", reason)
			}
		}
	}
}

// A name of 19 MiB makes neither a text nor a log line of its size.
func TestLongNamesAreCut(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(),
		&hooksv1alpha1.BeforeClusterCreateRequest{Handler: strings.Repeat("x", 19<<20), Cluster: clusterIn("n")})
	st := status.Convert(err)
	if st.Code() != hook.UnknownHandler.GRPCCode() || !strings.HasSuffix(st.Message(), "…\": names have at most 512 bytes") {
		t.Errorf("got %s: %.1000s", st.Code(), st.Message())
	}
	for _, path := range []string{"/" + strings.Repeat("x", 30<<10), createPath + strings.Repeat("x", 30<<10), createPath + "/" + strings.Repeat("y", 30<<10)} {
		resp := f.post(t, path, createBody)
		if resp.code != http.StatusNotFound || len(resp.body) > 2*limits.QuotedBytes {
			t.Errorf("%.60s…: got %s with %d bytes", path, resp.status, len(resp.body))
		}
	}
	f.rest.Close()
	f.stop()
	for line := range strings.Lines(f.log.String()) {
		if len(line) > 4*limits.QuotedBytes {
			t.Errorf("a line of the log has %d bytes: %.200s", len(line), line)
		}
	}
}
