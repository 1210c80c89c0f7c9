// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/protect"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// BenchmarkDispatch is what the dispatcher does for a call besides calling: of one handler by name, and of ten
// handlers.
func BenchmarkDispatch(b *testing.B) {
	var registrations []registry.Registration
	for i := range 10 {
		registrations = append(registrations, registrationOf(fmt.Sprintf("e%d", i), handlerOf("v", "BeforeClusterDelete", hook.Fail)))
	}
	answer := &hooksv1alpha1.BeforeClusterDeleteResponse{Status: success}
	caller := callerFunc(func(context.Context, extension.Call) (proto.Message, error) { return answer, nil })
	req := &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")}
	h := hookOf(b, "BeforeClusterDelete")
	for _, handler := range []string{"v.e5", ""} {
		b.Run("handler="+handler, func(b *testing.B) {
			d := newDispatcher(filled(b, registrations...), fixedNamespaces{}, caller)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.dispatch(b.Context(), h, handler, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkExtensionLinks is what the circuit and the admission of an extension cost each call.
func BenchmarkExtensionLinks(b *testing.B) {
	r := filled(b, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
	extensions := extensionstate.New(r)
	caller := protect.Circuits(extensions, (*observe.Observer)(nil))(protect.Admission(extensions)(func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{}, nil
	}))
	c := callTo(b, "BeforeClusterCreate")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := caller(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
