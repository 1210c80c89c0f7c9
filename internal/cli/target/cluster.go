// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// ParseCluster returns the Cluster that the flag --cluster names. It is an error of usage if the value is not
// NAMESPACE/NAME.
func ParseCluster(value string) (client.ObjectKey, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return client.ObjectKey{}, cmdline.Usagef("--cluster: want NAMESPACE/NAME, got %q",
			text.Cut(value, limits.QuotedBytes))
	}
	return client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// ServedClusters calls f with a kind of Cluster API, in the versions that a management cluster may serve, newest first,
// until the API server knows the version. It returns the last error of f.
func ServedClusters(kind string, f func(schema.GroupVersionKind) error) error {
	var err error
	for _, version := range []string{"v1beta2", "v1beta1"} {
		err = f(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: version, Kind: kind})
		if !meta.IsNoMatchError(err) {
			break
		}
	}
	return err
}

// NotServed returns the error of a request for a kind that the API server may not know: it then says so in few words.
func NotServed(kind string, err error) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	return fmt.Errorf("the cluster has no kind %s: install its CRD, or choose another cluster with --context", kind)
}

// GetCluster returns a Cluster in the newest version that the API server serves.
func GetCluster(ctx context.Context, c client.Reader, key client.ObjectKey) (*unstructured.Unstructured, error) {
	cluster := &unstructured.Unstructured{}
	err := ServedClusters("Cluster", func(kind schema.GroupVersionKind) error {
		cluster.SetGroupVersionKind(kind)
		return c.Get(ctx, key, cluster)
	})
	if err != nil {
		return nil, fmt.Errorf("get Cluster %s: %w", key, NotServed("Cluster", err))
	}
	return cluster, nil
}
