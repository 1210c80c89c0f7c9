// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	golden "github.com/hookgate/hookgate/proto"
	"github.com/hookgate/hookgate/test/samples"
)

func TestEveryHookHasASample(t *testing.T) {
	known := map[string]bool{}
	for _, name := range samples.Hooks() {
		known[name] = true
	}
	for _, h := range catalog.New().Hooks() {
		if h.Singleton() {
			continue
		}
		if !known[h.Hook] {
			t.Errorf("hook %s has no sample", h.Hook)
			continue
		}
		if got := samples.Lifecycle(h.Hook); got != h.Mergeable {
			t.Errorf("Lifecycle(%q) = %v, the catalog says %v", h.Hook, got, h.Mergeable)
		}
	}
}

// TestEveryHookHasItsFiles names what the recipe for a hook in CONTRIBUTING.md wants besides the code.
func TestEveryHookHasItsFiles(t *testing.T) {
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{hook.InfrastructureGroup: "infrastructure.md", hook.MachinesGroup: "machines.md"}
	words := regexp.MustCompile("([a-z])([A-Z])")
	for _, h := range hooks.Hubs() {
		want := map[string]string{ // with what is to be done
			filepath.Join("../../proto/testdata", golden.Directory(h.GroupVersionHook), strings.ToLower(h.Hook)+".request.json"): "run make generate",
		}
		name := strings.ToLower(words.ReplaceAllString(h.Hook, "$1-$2")) + ".yaml"
		want[filepath.Join("../../examples/requests", name)] = "write a request that hookgate call sends"
		if page, own := pages[h.Group]; own && !h.Singleton() {
			want[filepath.Join("../../docs", page)] = "describe the hook"
		}
		for name, todo := range want {
			text, err := os.ReadFile(name)
			if err != nil || !bytes.Contains(text, []byte(h.Hook)) {
				t.Errorf("hook %s: %s does not name it: %s (error: %v)", h.Hook, name, todo, err)
			}
		}
	}
}

// A body is what Cluster API would write only if its own types read it without losing a member.
func TestBodiesAreExact(t *testing.T) {
	for _, hook := range samples.Hooks() {
		t.Run(hook, func(t *testing.T) {
			body := samples.Body(hook)
			out := reflect.New(reflect.TypeOf(samples.Request(hook)).Elem()).Interface()
			decoder := json.NewDecoder(bytes.NewReader(body))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(out); err != nil {
				t.Fatalf("decode: %v", err)
			}
			if diff := cmp.Diff(string(body), string(samples.Marshal(out))); diff != "" {
				t.Errorf("a round trip through upstream's type changes the body (-want +got):\n%s", diff)
			}
			if !bytes.Equal(body, samples.Body(hook)) {
				t.Error("the body is not the same every time")
			}
			if !strings.HasPrefix(string(body), `{"kind":"`+hook+`Request","apiVersion":"`+runtimehooksv1.GroupVersion.String()+`"`) {
				t.Errorf("body starts with %.80s", body)
			}
		})
	}
}

func TestUnusualContentIsThere(t *testing.T) {
	body := string(samples.Body("CanUpdateMachine")) + string(samples.Body("GeneratePatches"))
	for _, want := range []string{
		"9007199254740993", "18014398509481985", "-9223372036854775808", "12345678901234567890123", "1.50", "1E3", "1.0e-2",
		`\/`, `\ud83d\ude80`, `\u0000`, `\u2028`, `"":""`, "ü",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in the bodies", want)
		}
	}
}

func TestSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		body     []byte
		min, max int
	}{
		"S": {samples.S(), 3_500, 5_500},
		"M": {samples.M(), 225_000, 275_000},
		"L": {samples.L(), 4_500_000, 5_500_000},
	} {
		if n := len(tc.body); n < tc.min || n > tc.max {
			t.Errorf("%s has %d bytes, want %d to %d", name, n, tc.min, tc.max)
		}
	}
	if n := len(samples.GeneratePatches(2000).Items); n != 2000 {
		t.Errorf("GeneratePatches(2000) has %d items", n)
	}
}
