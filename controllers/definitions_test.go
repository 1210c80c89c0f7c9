// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/internal/contract/convert"
)

func TestKeepContracts(t *testing.T) {
	o := metadataOf(convert.CRDKind)
	o.Name, o.ResourceVersion = "as.acme.dev", "7"
	o.Labels = map[string]string{
		"cluster.x-k8s.io/v1beta1":   "v1",
		"cluster.x-k8s.io/provider":  "acme",
		"app":                        "acme",
		"x.cluster.x-k8s.io/v1beta1": "v2",
	}
	o.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 1000)}
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	want := metadataOf(convert.CRDKind)
	want.Name, want.ResourceVersion = "as.acme.dev", "7"
	want.Labels = map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/provider": "acme"}
	got, err := keepContracts(o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestThousandsOfDefinitions: platforms have thousands of CustomResourceDefinitions, each with all of its manifest in
// an annotation. What is kept of them must not show in the memory of the gateway.
func TestThousandsOfDefinitions(t *testing.T) {
	const count, size = 1000, 20 << 10
	large := strings.Repeat("x", size)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" || r.URL.Query().Get("watch") == "" ||
			!strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			http.Error(w, "not served here", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		const event = `{"type":"%s","object":{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"k%ds.acme.dev","resourceVersion":"%d",` +
			`"labels":{"cluster.x-k8s.io/v1beta2":"v1","app":"acme"},"annotations":{"%s":"%s"}}}}` + "\n"
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			for i := range count {
				_, _ = fmt.Fprintf(w, event, "ADDED", i, i+1, "all", large) // the client may have left
			}
			_, _ = fmt.Fprintf(w, event, "BOOKMARK", 0, count+1, "k8s.io/initial-events-end", "true")
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)

	references := convert.NewReferences()
	d, err := newDefinitions(&rest.Config{Host: server.URL}, references, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	if err := d.follow(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- d.cache.Start(ctx) }()
	began := time.Now()
	started := make(chan bool, 1)
	go func() { started <- d.start(ctx) }()
	select {
	case ok := <-started:
		if !ok {
			t.Fatal("it was stopped")
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("not within 2 min: the definitions are read")
	}
	took := time.Since(began)
	kept := int64(heap()) - int64(before)
	// The goroutine that has read the definitions may still refer to what it has read.
	for deadline := began.Add(2 * time.Minute); kept > count*size/10 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		kept = int64(heap()) - int64(before)
	}
	t.Logf(
		"%d definitions of %d bytes were read in %s, and %d bytes of each are kept",
		count,
		size,
		took.Round(time.Millisecond),
		kept/count,
	)
	if kept > count*size/10 {
		t.Errorf("%d bytes are kept of %d definitions", kept, count)
	}
	if got, err := references.APIVersion("acme.dev", fmt.Sprintf("K%d", count-1)); err != nil || got != "acme.dev/v1" {
		t.Errorf("the version of the last one is %q, %v", got, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
