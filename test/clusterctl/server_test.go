// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/test/process"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// server is an API server in the role of a management cluster.
type server struct {
	client.Client
	kubeconfig string
}

// startServers concurrently starts API servers that have only Kubernetes' own kinds.
func startServers(t testing.TB, n int) []*server {
	t.Helper()
	assets := program(t, assetsVariable)
	environments := make([]*envtest.Environment, n)
	errs := make([]error, n)
	var starting sync.WaitGroup
	for i := range n {
		environments[i] = &envtest.Environment{BinaryAssetsDirectory: assets,
			ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience}
		starting.Go(func() { _, errs[i] = environments[i].Start() })
	}
	starting.Wait()
	t.Cleanup(func() {
		for _, e := range environments {
			if err := e.Stop(); err != nil {
				t.Errorf("stop API server: %v", err)
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("start API server: %v", err)
	}
	servers := make([]*server, n)
	for i, e := range environments {
		s := &server{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
		if err := os.WriteFile(s.kubeconfig, e.KubeConfig, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(e.Config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Client = c
		servers[i] = s
	}
	return servers
}

// find returns an object, or nil if it does not exist.
func (s *server) find(t testing.TB, kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		t.Fatalf("get %s %s/%s: %v", kind.Kind, namespace, name, err)
	}
	return o
}

// apply applies an object, server-side.
func (s *server) apply(t testing.TB, object map[string]any) {
	t.Helper()
	o := &unstructured.Unstructured{Object: object}
	if err := s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership); err != nil {
		t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// status changes the status of a cluster-scoped object by a merge patch.
func (s *server) status(t testing.TB, kind schema.GroupVersionKind, name, patch string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetName(name)
	if err := s.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patch the status of %s %s: %v", kind.Kind, name, err)
	}
}

// resource returns the name by which kubectl knows a kind.
func (s *server) resource(t testing.TB, kind schema.GroupVersionKind) string {
	t.Helper()
	mapping, err := s.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	return mapping.Resource.GroupResource().String()
}

// removeWebhooks removes the configurations of all webhooks, which would refuse everything, since no Pod serves them.
func (s *server) removeWebhooks(t testing.TB) {
	t.Helper()
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		if err := s.DeleteAllOf(t.Context(), o); err != nil {
			t.Fatalf("delete every %s: %v", kind, err)
		}
	}
}

// gone waits until a cluster-scoped object does not exist or, for a Namespace, is marked as deleted: its controller,
// which empties it, does not run here.
func (s *server) gone(t testing.TB, kind schema.GroupVersionKind, name string) {
	t.Helper()
	for end := time.Now().Add(process.Patience); ; time.Sleep(50 * time.Millisecond) {
		o := s.find(t, kind, "", name)
		if o == nil || kind.Kind == "Namespace" && o.GetDeletionTimestamp() != nil {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%s %s is still there", kind.Kind, name)
			return
		}
	}
}
