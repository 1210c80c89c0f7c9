// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/randfill"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

const group = "runtime.hookgate.dev"

func handler(t testing.TB) http.Handler {
	t.Helper()
	return handlerBeside(t, nil)
}

// handlerBeside returns the webhooks of a gateway that has something registered.
func handlerBeside(t testing.TB, registered registry.Snapshots) http.Handler {
	t.Helper()
	own, err := extensionconfig.ParseAddresses([]string{"gateway.system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{Group: group, Own: own, Catalog: catalog.New(), Logger: slog.New(slog.DiscardHandler), Registry: registered})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// convert sends objects through the webhook as the API server does.
func convert(t testing.TB, h http.Handler, version string, objects ...any) *apiextensionsv1.ConversionResponse {
	t.Helper()
	review := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{UID: "u", DesiredAPIVersion: group + "/" + version},
	}
	for _, o := range objects {
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: encode(t, o)})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, ConvertPath, bytes.NewReader(encode(t, review))))
	answer := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil || answer.Response == nil || answer.Response.UID != "u" {
		t.Fatalf("answer %d %s: %v", w.Code, w.Body, err)
	}
	return answer.Response
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// through converts an object to another version and back.
func through[T any](t *testing.T, h http.Handler, other, own string, object *T) *T {
	t.Helper()
	there := convert(t, h, other, object)
	if len(there.ConvertedObjects) != 1 {
		t.Fatalf("to %s: %s", other, there.Result.Message)
	}
	back := convert(t, h, own, json.RawMessage(there.ConvertedObjects[0].Raw))
	if len(back.ConvertedObjects) != 1 {
		t.Fatalf("back to %s: %s", own, back.Result.Message)
	}
	result := new(T)
	if err := json.Unmarshal(back.ConvertedObjects[0].Raw, result); err != nil {
		t.Fatal(err)
	}
	return result
}

// filler makes random objects with every field set. It avoids pointers to zero values, empty structs and empty lists:
// they mean the same as absent ones, and the schemas do not allow most of them.
func filler(seed int64) *randfill.Filler {
	custom := func(serializer.CodecFactory) []any {
		return []any{
			func(r *runtime.RawExtension, c randfill.Continue) {},
			func(s *runtimev1alpha1.ExtensionConfigStatus, c randfill.Continue) {
				c.FillNoCustom(s)
				if s.V1Beta2 != nil && len(s.V1Beta2.Conditions) == 0 {
					s.V1Beta2 = nil
				}
			},
			func(s *runtimev1alpha1.ClientConfig, c randfill.Continue) {
				c.FillNoCustom(s)
				s.URL = nilIfZero(s.URL)
				s.Service = nilIfZero(s.Service)
			},
			func(s *runtimev1alpha1.ServiceReference, c randfill.Continue) {
				c.FillNoCustom(s)
				s.Path = nilIfZero(s.Path)
			},
			func(h *runtimev1alpha1.ExtensionHandler, c randfill.Continue) {
				c.FillNoCustom(h)
				h.TimeoutSeconds, h.FailurePolicy = nilIfZero(h.TimeoutSeconds), nilIfZero(h.FailurePolicy)
			},
			func(s *runtimev1.ExtensionConfigStatus, c randfill.Continue) {
				c.FillNoCustom(s)
				if d := s.Deprecated; d != nil && (d.V1Beta1 == nil || len(d.V1Beta1.Conditions) == 0) {
					s.Deprecated = nil
				}
			},
		}
	}
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, custom), rand.NewSource(seed), serializer.NewCodecFactory(runtime.NewScheme()))
}

const rounds = 200

func TestConversionLosesNothing(t *testing.T) {
	h := handler(t)
	fill := filler(1)
	t.Run("v1beta2", func(t *testing.T) {
		filled := map[string]bool{}
		for range rounds {
			want := &runtimev1.ExtensionConfig{}
			fill.Fill(want)
			want.APIVersion, want.Kind = group+"/v1beta2", "ExtensionConfig"
			note(filled, reflect.ValueOf(want.Spec))
			note(filled, reflect.ValueOf(want.Status))
			got := through(t, h, "v1alpha1", "v1beta2", wire(t, want))
			if diff := cmp.Diff(wire(t, want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("through v1alpha1 (-want +got):\n%s", diff)
			}
		}
		allFilled(t, filled, reflect.TypeFor[runtimev1.ExtensionConfigSpec](), reflect.TypeFor[runtimev1.ExtensionConfigStatus]())
	})
	t.Run("v1alpha1", func(t *testing.T) {
		filled := map[string]bool{}
		for range rounds {
			want := &runtimev1alpha1.ExtensionConfig{}
			fill.Fill(want)
			want.APIVersion, want.Kind = group+"/v1alpha1", "ExtensionConfig"
			note(filled, reflect.ValueOf(want.Spec))
			note(filled, reflect.ValueOf(want.Status))
			got := through(t, h, "v1beta2", "v1alpha1", wire(t, want))
			if diff := cmp.Diff(wire(t, want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("through v1beta2 (-want +got):\n%s", diff)
			}
		}
		allFilled(t, filled, reflect.TypeFor[runtimev1alpha1.ExtensionConfigSpec](), reflect.TypeFor[runtimev1alpha1.ExtensionConfigStatus]())
	})
}

// wire returns an object as it is after JSON.
func wire[T any](t *testing.T, object *T) *T {
	t.Helper()
	result := new(T)
	if err := json.Unmarshal(encode(t, object), result); err != nil {
		t.Fatal(err)
	}
	return result
}

// note remembers which fields have a value, by name of type and field.
func note(filled map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(filled, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			note(filled, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() && v.Type().Field(i).IsExported() {
				filled[v.Type().String()+"."+v.Type().Field(i).Name] = true
				note(filled, v.Field(i))
			}
		}
	}
}

// allFilled checks that the objects had every field of Cluster API's types, including types of a later version.
func allFilled(t *testing.T, filled map[string]bool, types ...reflect.Type) {
	t.Helper()
	for _, typ := range types {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || !strings.HasPrefix(typ.PkgPath(), "sigs.k8s.io/cluster-api/") {
			continue
		}
		for field := range typ.Fields() {
			if name := typ.String() + "." + field.Name; !filled[name] {
				t.Errorf("no object had %s: the test says nothing about it", name)
			}
			allFilled(t, filled, field.Type)
		}
	}
}

func TestConversionDropsWhatSaysNothing(t *testing.T) {
	got := convert(t, handler(t), "v1alpha1", json.RawMessage(`{"apiVersion":"`+group+`/v1beta2","kind":"ExtensionConfig","metadata":{"name":"a"},
		"spec":{"clientConfig":{"service":{"namespace":"n","name":"s"}}},"status":{"handlers":[{"name":"h.a","requestHook":{"apiVersion":"v","hook":"H"}}]}}`))
	want := `{"kind":"ExtensionConfig","apiVersion":"` + group + `/v1alpha1","metadata":{"name":"a"},` +
		`"spec":{"clientConfig":{"service":{"namespace":"n","name":"s"}}},"status":{"handlers":[{"name":"h.a","requestHook":{"apiVersion":"v","hook":"H"}}]}}`
	if len(got.ConvertedObjects) != 1 || string(got.ConvertedObjects[0].Raw) != want {
		t.Errorf("got %s %s, want %s", got.ConvertedObjects[0].Raw, got.Result.Message, want)
	}
}

func TestConversionOfManyKeepsTheirOrder(t *testing.T) {
	var objects []any
	for _, name := range []string{"c", "a", "b"} {
		objects = append(objects, map[string]any{"apiVersion": group + "/v1alpha1", "kind": "ExtensionConfig", "metadata": map[string]string{"name": name}})
	}
	var got []string
	for _, raw := range convert(t, handler(t), "v1beta2", objects...).ConvertedObjects {
		o := &runtimev1.ExtensionConfig{}
		if err := json.Unmarshal(raw.Raw, o); err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Name)
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestConversionRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ reason, object string }{
		"group":   {"another group is not this gateway's", `{"apiVersion":"runtime.cluster.x-k8s.io/v1alpha1","kind":"ExtensionConfig"}`},
		"version": {"it is unknown", `{"apiVersion":"` + group + `/v1","kind":"ExtensionConfig"}`},
		"kind":    {"policies have one version", `{"apiVersion":"hookgate.dev/v1alpha1","kind":"ExtensionPolicy"}`},
		"type":    {"a number is no name", `{"apiVersion":"` + group + `/v1alpha1","kind":"ExtensionConfig","metadata":{"name":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := convert(t, handler(t), "v1beta2", json.RawMessage(tc.object))
			if got.Result.Status != metav1.StatusFailure || got.Result.Message == "" || len(got.ConvertedObjects) > 0 {
				t.Errorf("got %+v although %s", got, tc.reason)
			}
		})
	}
}
