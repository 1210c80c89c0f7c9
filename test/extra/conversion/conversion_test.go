// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/conversion"
	conversionutil "sigs.k8s.io/cluster-api/util/conversion"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/test/extra/conversion/random"
)

// objects is how many random objects of each kind and version are compared.
const objects = 1000

func TestMain(m *testing.M) {
	conversion.SetAPIVersionGetter(func(_ context.Context, gk schema.GroupKind) (string,
		error) {
		return random.APIVersion(gk)
	})
	os.Exit(m.Run())
}

// seed is one for every run of the suite, unless HOOKGATE_SEED has another.
func seed(t *testing.T) int64 {
	t.Helper()
	s := os.Getenv("HOOKGATE_SEED")
	if s == "" {
		return 1
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// upstream converts with Cluster API's own converters, and returns what it gives with the annotation that they write,
// and without it.
func upstream(t *testing.T, object []byte, kind, from, to string) (with, without []byte) {
	t.Helper()
	src, dst := random.Empty(kind, from), random.Empty(kind, to)
	if err := json.Unmarshal(object, src); err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	ctx := t.Context()
	var err error
	switch s := src.(type) {
	case *clusterv1.Cluster:
		err = conversion.ConvertClusterHubToV1Beta1(ctx, s, dst.(*clusterv1beta1.Cluster))
	case *clusterv1beta1.Cluster:
		err = conversion.ConvertClusterV1Beta1ToHub(ctx, s, dst.(*clusterv1.Cluster))
	case *clusterv1.Machine:
		err = conversion.ConvertMachineHubToV1Beta1(ctx, s, dst.(*clusterv1beta1.Machine))
	case *clusterv1beta1.Machine:
		err = conversion.ConvertMachineV1Beta1ToHub(ctx, s, dst.(*clusterv1.Machine))
	case *clusterv1.MachineSet:
		err = conversion.ConvertMachineSetHubToV1Beta1(ctx, s, dst.(*clusterv1beta1.MachineSet))
	case *clusterv1beta1.MachineSet:
		err = conversion.ConvertMachineSetV1Beta1ToHub(ctx, s, dst.(*clusterv1.MachineSet))
	case *clusterv1.MachinePool:
		err = conversion.ConvertMachinePoolHubToV1Beta1(ctx, s, dst.(*clusterv1beta1.MachinePool))
	case *clusterv1beta1.MachinePool:
		err = conversion.ConvertMachinePoolV1Beta1ToHub(ctx, s, dst.(*clusterv1.MachinePool))
	}
	if err != nil {
		t.Fatalf("Cluster API's converter: %v", err)
	}
	dst.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group,
		Version: to, Kind: kind})
	with = marshal(t, dst)
	meta := dst.(metav1.Object)
	annotations := meta.GetAnnotations()
	delete(annotations, conversionutil.DataAnnotation)
	if len(annotations) == 0 {
		meta.SetAnnotations(nil)
	}
	return with, marshal(t, dst)
}

func marshal(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	b, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// request returns a request that has the object, and how to get it out of one.
func request(kind string, object []byte) (proto.Message, func(proto.Message) []byte) {
	ext := &hooksv1alpha1.RawExtension{Raw: object}
	switch kind {
	case "Cluster":
		return &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: ext},
			func(m proto.Message) []byte { return m.(*hooksv1alpha1.BeforeClusterCreateRequest).Cluster.Raw }
	case "Machine":
		return &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: ext}},
			func(m proto.Message) []byte { return m.(*hooksv1alpha1.UpdateMachineRequest).Desired.Machine.Raw }
	case "MachinePool":
		return &infrastructurev1alpha1.DeleteMachinePoolRequest{Subject: &infrastructurev1alpha1.Subject{MachinePool: ext}},
			func(m proto.Message) []byte {
				return m.(*infrastructurev1alpha1.DeleteMachinePoolRequest).Subject.MachinePool.Raw
			}
	}
	return &hooksv1alpha1.CanUpdateMachineSetRequest{Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: ext}},
		func(m proto.Message) []byte {
			return m.(*hooksv1alpha1.CanUpdateMachineSetRequest).Current.MachineSet.Raw
		}
}

func ours(t *testing.T, o *convert.Objects, kind string, object []byte, to string) ([]byte, []string) {
	t.Helper()
	req, get := request(kind, object)
	c, err := o.Request(req, to)
	if err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	return get(c.Message), c.Losses
}

// parsed decodes JSON with its numbers as they are written. Annotations that are empty are none.
func parsed(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	if metadata, ok := v["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok && len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return v
}

// Converting there and back yields what Cluster API's own converters yield, but for the annotation that they write:
// it is not in the requests of hooks. With it, the way back yields the same, too.
func TestSameAsClusterAPI(t *testing.T) {
	o := convert.NewObjects(random.References())
	for _, kind := range random.Kinds {
		for _, d := range [][2]string{{convert.V1Beta2, convert.V1Beta1}, {convert.V1Beta1, convert.V1Beta2}} {
			from, to := d[0], d[1]
			t.Run(fmt.Sprintf("%s from %s", kind, from), func(t *testing.T) {
				t.Parallel()
				generator := random.New(seed(t))
				lossy, unlost, seen := convert.Lossy(kind, from, to), 0, map[string]bool{}
				for n := range objects {
					object := marshal(t, generator.Object(kind, from))
					got, lost := ours(t, o, kind, object, to)
					with, without := upstream(t, object, kind, from, to)
					compare(t, n, "there", object, without, got)
					for _, path := range lost {
						if seen[path] = true; !slices.Contains(lossy, path) {
							t.Errorf("object %d: loss %s is not one that Lossy lists", n, path)
						}
					}
					back, _ := ours(t, o, kind, got, from)
					_, backWithout := upstream(t, without, kind, to, from)
					compare(t, n, "back", got, backWithout, back)
					if from == convert.V1Beta2 {
						back, _ := ours(t, o, kind, with, from)
						_, backWith := upstream(t, with, kind, to, from)
						compare(t, n, "back with the annotation", with, backWith, back)
					}
					if len(lost) == 0 {
						unlost++
					}
					kept(t, n, kind, object, back, lost)
					if t.Failed() {
						t.FailNow()
					}
				}
				t.Logf("%d objects, %d of them without a loss; %d of %d possible paths of losses", objects, unlost,
					len(seen), len(lossy))
			})
		}
	}
}

func compare(t *testing.T, n int, way string, object, want, got []byte) {
	t.Helper()
	w, g := parsed(t, want), parsed(t, got)
	if !reflect.DeepEqual(w, g) {
		t.Errorf("object %d, %s (-Cluster API +convert):\n%s\nobject: %s", n, way, cmp.Diff(w, g), object)
	}
}

// kept checks that nothing is gone after the way there and back but what was declared lost.
func kept(t *testing.T, n int, kind string, was, is []byte, lost []string) {
	t.Helper()
	root := strings.ToLower(kind[:1]) + kind[1:]
	for _, path := range missing(root, parsed(t, was), parsed(t, is)) {
		if !slices.Contains(lost, path) {
			t.Errorf("object %d: %s is gone, and not among %v\nwas %s\nis  %s", n, path, lost, was, is)
		}
	}
}

// missing returns the paths of what is in was and neither zero nor empty, and not in is.
func missing(path string, was, is any) []string {
	var paths []string
	switch w := was.(type) {
	case map[string]any:
		i, _ := is.(map[string]any)
		for name, value := range w {
			paths = append(paths, missing(path+"."+name, value, i[name])...)
		}
		return paths
	case []any:
		i, _ := is.([]any)
		if path == "cluster.status.failureDomains" { // in the order of names in one, in any in the other
			byName := func(list []any) map[string]any {
				m := map[string]any{}
				for _, e := range list {
					m[fmt.Sprint(e.(map[string]any)["name"])] = e
				}
				return m
			}
			domains := byName(i)
			for name, domain := range byName(w) {
				paths = append(paths, missing(path+"[*]", domain, domains[name])...)
			}
			return paths
		}
		for n, value := range w {
			if n < len(i) {
				paths = append(paths, missing(path+"[*]", value, i[n])...)
			} else if value != nil {
				paths = append(paths, path)
			}
		}
		return paths
	}
	zero := was == nil || was == "" || was == false || was == json.Number("0") || was == "0s"
	if !zero && was != is {
		return []string{path}
	}
	return nil
}
