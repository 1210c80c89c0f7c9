// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

// newCluster is a Cluster as a Cluster API after v1.14 may send it: with two unknown members, of which one is in an
// object that v1beta1 does not have.
const newCluster = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"n"},"spec":{` +
	`"controlPlaneRef":{"apiGroup":"controlplane.cluster.x-k8s.io","kind":"KubeadmControlPlane","name":"c-x7k2p"},` +
	`"topology":{"classRef":{"name":"production","shard":7},"version":"v1.33.4","controlPlane":{"deletion":{"nodeDrainTimeoutSeconds":60}},"from":{"tomorrow":9007199254740993}}}}`

// seenOf returns what a converted Cluster is judged by.
func seenOf(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var c struct {
		APIVersion string
		Spec       struct {
			ControlPlaneRef struct{ APIVersion, Namespace string }
			Topology        struct {
				Class        string
				ClassRef     struct{ Name string }
				ControlPlane struct{ NodeDrainTimeout string }
				From         json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatalf("the handler got %q: %v", raw, err)
	}
	return map[string]any{
		"apiVersion": c.APIVersion, "reference": c.Spec.ControlPlaneRef.APIVersion, "namespace": c.Spec.ControlPlaneRef.Namespace,
		"class": c.Spec.Topology.Class, "classRef": c.Spec.Topology.ClassRef.Name, "drain": c.Spec.Topology.ControlPlane.NodeDrainTimeout,
		"unknown": string(c.Spec.Topology.From),
	}
}

// A handler that understands v1beta1 gets it, in any protocol of either side, and losses are reported.
func TestObjectsAreConverted(t *testing.T) {
	want := map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta1", "reference": "controlplane.cluster.x-k8s.io/v1beta2", "namespace": "n",
		"class": "production", "classRef": "", "drain": "1m0s", "unknown": `{"tomorrow":9007199254740993}`,
	}
	request := `{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","settings":{"a":"b"},"cluster":` + newCluster + `,"newMember":[1, 2]}`
	callers := map[string]func(*testing.T, *fixture){
		"REST": func(t *testing.T, f *fixture) {
			if resp := f.post(t, createPath+"/v.acme", request); resp.code != http.StatusOK || !strings.Contains(string(resp.body), `"message":"hold"`) {
				t.Errorf("the caller got %d: %s", resp.code, resp.body)
			}
		},
		"gRPC": func(t *testing.T, f *fixture) {
			resp, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{
				Handler: "v.acme", Settings: map[string]string{"a": "b"}, Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(newCluster)},
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"newMember": {Raw: []byte(`[1, 2]`)}},
			})
			if err != nil || resp.GetMessage() != "hold" {
				t.Errorf("the caller got %v, %v", resp, err)
			}
		},
	}
	for caller, call := range callers {
		for _, speaks := range []string{"REST", "gRPC"} {
			t.Run(caller+" to "+speaks, func(t *testing.T) {
				f := newFixture(t, nil)
				f.understands = convert.V1Beta1
				var cluster, other, settings string
				if speaks == "REST" {
					f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
						var body struct{ Cluster, NewMember, Settings json.RawMessage }
						if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
							t.Error(err)
						}
						cluster, other, settings = string(body.Cluster), string(body.NewMember), string(body.Settings)
						_, _ = io.WriteString(w, `{"status":"Success","message":"hold","retryAfterSeconds":5}`)
					})
				} else {
					f.registerStubs(t, hook.Fail, 30*time.Second, stubs{create: func(_ context.Context, in *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
						cluster, other = string(in.GetCluster().GetRaw()), string(in.GetUnknownMembers()["newMember"].GetRaw())
						settings = `{"a":"` + in.GetSettings()["a"] + `"}`
						return &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "hold", RetryAfterSeconds: 5}, nil
					}})
				}
				call(t, f)
				call(t, f)
				if diff := cmp.Diff(want, seenOf(t, []byte(cluster))); diff != "" {
					t.Errorf("the Cluster that the handler got (-want +got):\n%s\n%s", diff, cluster)
				}
				if other != `[1, 2]` || settings != `{"a":"b"}` {
					t.Errorf("beside the Cluster, the handler got %s and %s", other, settings)
				}
				if n := strings.Count(f.log.String(), "conversion loses a member"); n != 1 || !strings.Contains(f.log.String(), "path=cluster.spec.topology.classRef.shard") {
					t.Errorf("of two calls that lose the same, the log has %d lines, want one that names the member:\n%s", n, f.log)
				}
				lost := `
# HELP hookgate_conversion_lost_members_total Total number of members that were lost when a request was converted for a handler, or when the handler's answer was converted for the caller. Each path of a lost member counts once for each call. The log lists these paths.
# TYPE hookgate_conversion_lost_members_total counter
hookgate_conversion_lost_members_total{handler="v.acme",hook="BeforeClusterCreate"} 2
`
				if err := testutil.GatherAndCompare(f.metrics, strings.NewReader(lost), "hookgate_conversion_lost_members_total"); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A call that needs no conversion goes on byte for byte, also when it is known what the handler understands.
func TestObjectsThatNeedNoConversionStayAsTheyAre(t *testing.T) {
	// Not as the codec would write it.
	const begin = `{ "apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest",  "cluster":`
	for understands, cluster := range map[string]string{
		"":              newCluster,
		convert.V1Beta2: newCluster,
		convert.V1Beta1: `{"metadata": {"name":"c"},"spec":{"topology":{"class":"production"}}}`, // as Cluster API v1.12 sends it
	} {
		request := begin + cluster + `}`
		f := newFixture(t, nil)
		f.understands = understands
		var sent []byte
		f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
			sent, _ = io.ReadAll(r.Body)
			_, _ = io.WriteString(w, `{"status":"Success","retryAfterSeconds":0}`)
		})
		if resp := f.post(t, createPath+"/v.acme", request); resp.code != http.StatusOK {
			t.Fatalf("%s: %s", resp.status, resp.body)
		}
		if string(sent) != request {
			t.Errorf("with %q the extension got\n%s\nwant what the caller sent\n%s", understands, sent, request)
		}
	}
}

// Handlers of both ages answer one call.
func TestEachHandlerGetsWhatItUnderstands(t *testing.T) {
	f := newFixture(t, nil)
	for name, version := range map[string]string{"old": convert.V1Beta1, "new": convert.V1Beta2, "silent": ""} {
		f.understands = version
		f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"status":"Success","message":` + quoted(apiVersionIn(body)) + `,"retryAfterSeconds":0}`))
		})
		reg, _ := f.registry.Snapshot().Handler("v.acme")
		moved := *reg.Registration
		moved.Name = name
		if err := f.registry.Apply(moved); err != nil {
			t.Fatal(err)
		}
		f.registry.Remove("acme")
	}
	resp := f.post(t, createPath, strings.Replace(createBody, createCluster, newCluster, 1))
	var answer struct{ Message string }
	if err := json.Unmarshal(resp.body, &answer); err != nil {
		t.Fatal(err)
	}
	// Messages are joined by name: new, old, silent.
	if want := "cluster.x-k8s.io/v1beta2, cluster.x-k8s.io/v1beta1, cluster.x-k8s.io/v1beta2"; answer.Message != want {
		t.Errorf("the handlers saw %q, want %q", answer.Message, want)
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // strings always encode
	return string(b)
}

func apiVersionIn(body []byte) string {
	var request struct{ Cluster struct{ APIVersion string } }
	_ = json.Unmarshal(body, &request) // an empty text is what the test refuses
	return request.Cluster.APIVersion
}

// An object that cannot be converted is an error under any failure policy, and the handler is not called.
func TestObjectsThatCannotBeConverted(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster string
		kind    hook.Kind
		part    string
	}{
		"Version":    {`{"apiVersion":"cluster.x-k8s.io/v1alpha4","kind":"Cluster","metadata":{"name":"c"}}`, hook.Conversion, "v1alpha4"},
		"Kind":       {`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"c"}}`, hook.InvalidRequest, "Machine"},
		"NotOne":     {`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c"},"spec":{"paused":"yes"}}`, hook.InvalidRequest, "spec.paused"},
		"NoVersion":  {`{"kind":"Cluster","metadata":{"name":"c"}}`, hook.InvalidRequest, "apiVersion"}, // one that says nothing at all is Cluster API v1.12's
		"OtherGroup": {`{"apiVersion":"example.com/v1beta2","kind":"Cluster","metadata":{"name":"c"}}`, hook.InvalidRequest, "example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.understands = convert.V1Beta1
			f.register(t, "BeforeClusterCreate", hook.Ignore, 30*time.Second, func(http.ResponseWriter, *http.Request) {
				t.Error("the handler was called")
			})
			body := strings.Replace(createBody, createCluster, tc.cluster, 1)
			resp, again := f.post(t, createPath+"/v.acme", body), f.post(t, createPath+"/v.acme", body)
			if kind := resp.header.Get(ErrorKindHeader); kind != tc.kind.String() || !strings.Contains(string(resp.body), tc.part) || !strings.Contains(string(resp.body), `handler \"v.acme\"`) {
				t.Errorf("got %s %s, want %s that names %q and the handler", kind, resp.body, tc.kind, tc.part)
			}
			if string(resp.body) != string(again.body) {
				t.Errorf("the same call was answered in two ways:\n%s\n%s", resp.body, again.body)
			}
		})
	}
}
