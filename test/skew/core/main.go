// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command core writes the request of a hook as the core of Cluster API v1.12 sends it. It reads the same request as
// v1.14 sends it from standard input, which stands for the state of the cluster, takes the objects in it as v1.12 knows
// them, and goes on as v1.12 does before it calls a hook: its own conversion, its own clean-up, its own types.
//
//	core --hook BeforeClusterCreate --crds crds.yaml < request.json
//
// It is a separate module, because it is built with v1.12. What it writes is what the gateway's suite expects
// an extension built for v1.12 to get, and what it sends in the place of a v1.12.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/controllers/external"
	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	"sigs.k8s.io/cluster-api/util/conversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func main() {
	hook := flag.String("hook", "", "name of the hook")
	keepStatus := flag.Bool("keep-status", false, "leave the status of a Cluster in, as other callers than Cluster API may")
	crds := flag.String("crds", "", "file with the CustomResourceDefinitions of the kinds that are referred to")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *hook, *crds, *keepStatus); err != nil {
		fmt.Fprintf(os.Stderr, "core: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, hook, crds string, keepStatus bool) error {
	body, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if err := resolveReferences(crds); err != nil {
		return fmt.Errorf("%s: %w", crds, err)
	}
	request, err := send(hook, body, keepStatus)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(request)
}

// send returns the request of a hook as v1.12 builds it, given how v1.14 builds it.
func send(hook string, body []byte, keepStatus bool) (runtime.Object, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, err
	}
	gvh := runtimecatalog.GroupVersionHook{Group: runtimehooksv1.GroupVersion.Group,
		Version: runtimehooksv1.GroupVersion.Version, Hook: hook}
	request, err := catalog.NewRequest(gvh)
	if err != nil {
		return nil, err
	}
	gvk, err := catalog.Request(gvh)
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	cluster := members["cluster"]
	field, lifecycle := reflect.ValueOf(request).Elem().FieldByName("Cluster"), false
	if field.IsValid() {
		_, lifecycle = reflect.TypeAssert[clusterv1beta1.Cluster](field)
	}
	if lifecycle {
		delete(members, "cluster")
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	// What is v1beta2 in v1.12 too is taken as it is, by v1.12's types.
	if err := json.Unmarshal(rest, request); err != nil {
		return nil, err
	}
	if lifecycle {
		converted, err := convert(cluster, keepStatus)
		if err != nil {
			return nil, err
		}
		field.Set(reflect.ValueOf(*converted))
	}
	request.GetObjectKind().SetGroupVersionKind(gvk) // as its client does
	return request, nil
}

// convert does what v1.12's topology controller does to the Cluster of a lifecycle hook: a new v1beta1 Cluster is
// filled by the conversion, which leaves apiVersion and kind empty, and what is not to be sent is removed
// (exp/topology/desiredstate/lifecycle_hooks.go and desired_state.go, cleanupV1Beta1Cluster).
func convert(raw []byte, keepStatus bool) (*clusterv1beta1.Cluster, error) {
	cluster, converted := &clusterv1.Cluster{}, &clusterv1beta1.Cluster{}
	if err := json.Unmarshal(raw, cluster); err != nil {
		return nil, fmt.Errorf("decode Cluster: %w", err)
	}
	if err := converted.ConvertFrom(cluster.DeepCopy()); err != nil {
		return nil, fmt.Errorf("convert Cluster: %w", err)
	}
	converted.SetManagedFields(nil)
	if converted.Annotations != nil {
		annotations := maps.Clone(converted.Annotations)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		delete(annotations, conversion.DataAnnotation)
		converted.Annotations = annotations
	}
	if !keepStatus {
		converted.Status = clusterv1beta1.ClusterStatus{}
	}
	return converted, nil
}

// resolveReferences makes v1.12 read the versions of references from CustomResourceDefinitions. How it decides is not
// exported, but what comes of it is: the object that it would get for a reference. So there is one of each version.
func resolveReferences(file string) error {
	open, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }()
	var objects []client.Object
	decoder := yaml.NewYAMLOrJSONDecoder(open, 4096)
	for {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := decoder.Decode(crd)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if crd.Name == "" {
			continue
		}
		objects = append(objects, crd)
		for _, v := range crd.Spec.Versions {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name,
				Kind: crd.Spec.Names.Kind})
			o.SetNamespace("any")
			o.SetName("any")
			objects = append(objects, o)
		}
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	clusterv1beta1.SetAPIVersionGetter(func(gk schema.GroupKind) (string, error) {
		ref := clusterv1.ContractVersionedObjectReference{APIGroup: gk.Group, Kind: gk.Kind, Name: "any"}
		o, err := external.GetObjectFromContractVersionedRef(context.Background(), reader, ref, "any")
		if err != nil {
			return "", err
		}
		return o.GetAPIVersion(), nil
	})
	return nil
}
