// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

const (
	patchSucceeded = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	untyped        = hooksv1alpha1.PatchType_PATCH_TYPE_UNSPECIFIED
	jsonPatch      = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	mergePatch     = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
)

// TestPatches holds that a patch is refused if and only if the library that Cluster API uses can apply it to no object.
func TestPatches(t *testing.T) {
	for _, tt := range []struct {
		kind hooksv1alpha1.PatchType
		text string
		want string // of the error; empty for none
	}{
		{jsonPatch, `[]`, ""},
		{jsonPatch, ` null `, ""},
		{jsonPatch, `[{"op":"add","path":"/a","value":{"path":1}}]`, ""},
		{jsonPatch, `[{"value":1,"path":"/a","\u006fp":"\u0061dd"}]`, ""},
		{jsonPatch, `[{"op":"test","path":"/a"}]`, ""},
		{jsonPatch, `[{"op":"add","path":"/a"}]`, "it has no value"},
		{jsonPatch, `[{"op":"add","path":"/a","value":null},{"op":"replace","path":"/a"}]`, "it has no value"},
		{jsonPatch, `[{"op":"add","path":"/a","value":1},{"op":"copy","from":"/a","path":"/b"},{"op":"move","from":"/a","path":"/c"}]`, ""},
		{jsonPatch, `[{"op":"add","path":"/a","value":1},{"op":"test","path":"/a","value":1},{"op":"replace","path":"/a","value":2},{"op":"remove","path":"/a"}]`, ""},
		{jsonPatch, ``, `not a JSONPatch: it is empty: if nothing changes, leave out the patch and its type, or write [] ("W10=" in JSON)`},
		{jsonPatch, " \n", "not a JSONPatch: it is empty"},
		{jsonPatch, `nil`, "not a JSONPatch"},
		{jsonPatch, `[]]`, "not a JSONPatch"},
		{jsonPatch, `{"spec":{}}`, "not a JSONPatch: want a list of operations"},
		{jsonPatch, `[{"op":`, "not a JSONPatch: operation 0"},
		{jsonPatch, `[null]`, "not a JSONPatch: operation 0: want an object"},
		{jsonPatch, `[{"op":"add","path":"/a","value":1},{}]`, "not a JSONPatch: operation 1: it is not an operation of RFC 6902"},
		{jsonPatch, `[{"op":"Add","path":"/a","value":1}]`, "it is not an operation of RFC 6902"},
		{jsonPatch, `[{"op":1,"path":"/a","value":1}]`, "it is not an operation of RFC 6902"},
		{jsonPatch, `[{"op":"add","value":1}]`, "it has no path"},
		{jsonPatch, `[{"op":"add","path":["a"],"value":1}]`, "it has no path"},
		{jsonPatch, `[{"op":"move","path":"/a"}]`, "it has no from"},
		{jsonPatch, `[{"op":"copy","from":null,"path":"/a"}]`, "it has no from"},
		{mergePatch, `{}`, ""},
		{mergePatch, ` {"a":null} `, ""},
		{mergePatch, `null`, "not a JSONMergePatch: want a JSON object"},
		{mergePatch, `[{"op":"add"}]`, "not a JSONMergePatch: want a JSON object"},
		{mergePatch, `{"a":}`, "not a JSONMergePatch"},
		{mergePatch, `{} {}`, "not a JSONMergePatch"},
		{untyped, `{}`, "patchType: want"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			err := checkPatch(tt.kind, []byte(tt.text), nil)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			var applied []byte
			var theirs error
			switch tt.kind {
			case jsonPatch:
				var p jsonpatch.Patch
				if p, theirs = jsonpatch.DecodePatch([]byte(tt.text)); theirs == nil {
					applied, theirs = p.Apply([]byte(`{}`))
				}
			case mergePatch:
				applied, theirs = jsonpatch.MergePatch([]byte(`{}`), []byte(tt.text))
			default:
				return
			}
			isObject := theirs == nil && strings.HasPrefix(strings.TrimSpace(string(applied)), "{")
			if isObject != (tt.want == "") {
				t.Errorf("Cluster API's library makes %s of it, %v", applied, theirs)
			}
		})
	}
}

func TestOnlyPatchesOfASuccessAreChecked(t *testing.T) {
	wrong := &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`{}`)}
	for name, tt := range map[string]struct {
		answer proto.Message
		want   string
	}{
		"items": {&hooksv1alpha1.GeneratePatchesResponse{Status: patchSucceeded, Items: []*hooksv1alpha1.GeneratePatchesResponseItem{
			{Uid: "first", PatchType: mergePatch}, {Uid: "second", PatchType: jsonPatch, Patch: []byte(`{}`)},
		}}, `items[1], of uid "second": patch is not a JSONPatch: want a list`},
		"a Failure": {&hooksv1alpha1.GeneratePatchesResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Items: []*hooksv1alpha1.GeneratePatchesResponseItem{{Uid: "first"}},
		}, ""},
		"a Machine": {&hooksv1alpha1.CanUpdateMachineResponse{Status: patchSucceeded, BootstrapConfigPatch: wrong}, "bootstrapConfigPatch: patch is no"},
		"a MachineSet": {&hooksv1alpha1.CanUpdateMachineSetResponse{
			Status: patchSucceeded, MachineSetPatch: &hooksv1alpha1.Patch{}, InfrastructureMachineTemplatePatch: wrong,
		}, "infrastructureMachineTemplatePatch: patch is no"},
		"only a type":    {&hooksv1alpha1.CanUpdateMachineResponse{Status: patchSucceeded, MachinePatch: &hooksv1alpha1.Patch{PatchType: jsonPatch}}, "machinePatch: patch is not a JSONPatch: it is empty: "},
		"empty":          {&hooksv1alpha1.CanUpdateMachineResponse{Status: patchSucceeded, MachinePatch: &hooksv1alpha1.Patch{}}, ""},
		"without a type": {&hooksv1alpha1.CanUpdateMachineResponse{Status: patchSucceeded, MachinePatch: &hooksv1alpha1.Patch{Patch: []byte(`{}`)}}, "machinePatch: patchType"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkPatches(tt.answer, nil)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// patcher answers GeneratePatches.
type patcher struct {
	hooksv1alpha1.UnimplementedTopologyMutationHooksServiceServer
	answer *hooksv1alpha1.GeneratePatchesResponse
}

func (p patcher) GeneratePatches(context.Context, *hooksv1alpha1.GeneratePatchesRequest) (*hooksv1alpha1.GeneratePatchesResponse, error) {
	return p.answer, nil
}

// TestPatchesAreCheckedOverBothProtocols also holds that misspelt members are found in answers that are refused.
func TestPatchesAreCheckedOverBothProtocols(t *testing.T) {
	ca := newAuthority(t)
	over := map[string]func(answer *hooksv1alpha1.GeneratePatchesResponse) (Result, error){
		"REST": func(m *hooksv1alpha1.GeneratePatchesResponse) (Result, error) {
			text, err := codec.New(catalog.New()).Append(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			c := newCall(newServer(t, ca, answer(string(text)), nil).cc)
			return newREST(t, Config{}).Call(t.Context(), patchCall(c))
		},
		"gRPC": func(m *hooksv1alpha1.GeneratePatchesResponse) (Result, error) {
			cc := newAuthor(t, ca, &author{}, func(s *grpc.Server) {
				hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(s, patcher{answer: m})
			})
			return newGRPC(t, Config{}).Call(t.Context(), patchCall(newCall(cc)))
		},
	}
	for protocol, call := range over {
		for _, large := range []int{0, 400 << 10} { // which is checked in steps
			patch := `[{"op":"add","path":"/a","value":"` + strings.Repeat("x", large) + `"}` // without its end
			m := &hooksv1alpha1.GeneratePatchesResponse{Status: patchSucceeded, Items: []*hooksv1alpha1.GeneratePatchesResponseItem{{
				Uid: "u", PatchType: jsonPatch, Patch: []byte(patch),
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"patch_type": {Raw: []byte("1")}},
			}}}
			result, err := call(m)
			want := `handler "v.acme": call extension: answer: items[0], of uid "u": patch is not a JSONPatch: `
			if hook.KindOf(err) != hook.BadResponse || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s, %d bytes: got %v, want BadResponse and %s", protocol, len(patch), err, want)
			}
			if got := strings.Join(result.Misspelt, ";"); got != "GeneratePatchesResponseItem has no member patch_type: did you mean patchType?" {
				t.Errorf("%s: misspelt: %s", protocol, got)
			}
			m.Items[0].Patch = append(m.GetItems()[0].GetPatch(), ']')
			if _, err := call(m); err != nil {
				t.Errorf("%s, %d bytes: %v", protocol, len(patch), err)
			}
		}
	}
}

func patchCall(c Call) Call {
	c.Hook, _ = catalog.New().ByName("GeneratePatches")
	c.Request = &hooksv1alpha1.GeneratePatchesRequest{}
	return c
}

func TestMisspeltMembersAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,"%sretry_after_seconds%s":1`, strings.Repeat("_", i), strings.Repeat("-", i%2))
	}
	text := strings.Replace(success, `"retryAfterSeconds"`, `"x"`, 1)
	srv := newServer(t, newAuthority(t), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text[:len(text)-1]+b.String()+"}")
	}, nil)
	result, err := newREST(t, Config{}).Call(t.Context(), newCall(srv.cc))
	if err != nil || len(result.Misspelt) != maxMisspelt {
		t.Errorf("got %d, %v", len(result.Misspelt), err)
	}
}

// BenchmarkPatches is what checking the patches of an answer costs, beside decoding it.
func BenchmarkPatches(b *testing.B) {
	for name, items := range map[string]int{"M": 100, "L": 2000} {
		patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/spec/template/spec/files","value":` +
			`[{"path":"/etc/kubernetes/audit.yaml","owner":"root:root","content":"` + strings.Repeat("apiVersion: audit.k8s.io/v1\\n", 60) + `"}]}]`))
		var body strings.Builder
		body.WriteString(`{"kind":"GeneratePatchesResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success","items":[`)
		for i := range items {
			if i > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"uid":"5f2c6a0e-%04d","patchType":"JSONPatch","patch":%q}`, i, patch)
		}
		body.WriteString("]}")
		text := []byte(body.String())
		c := codec.New(catalog.New())
		decode := func(b *testing.B) *hooksv1alpha1.GeneratePatchesResponse {
			m := &hooksv1alpha1.GeneratePatchesResponse{}
			if err := c.Decode(text, m); err != nil {
				b.Fatal(err)
			}
			return m
		}
		b.Run(name+"/Decode", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				decode(b)
			}
		})
		b.Run(name+"/Check", func(b *testing.B) {
			m := decode(b)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := checkPatches(m, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
