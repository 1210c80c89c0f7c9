// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// protoc, a language's plugin and the folder proto/ suffice to generate stubs, even without the well-known types. Rust
// is missing because its build compiles the same files itself.
func TestPlainProtoc(t *testing.T) {
	gatewayPath(t)
	protoc := os.Getenv("HOOKGATE_PROTOC")
	if protoc == "" {
		t.Fatal("HOOKGATE_PROTOC does not name a program: run `make test-examples`, which gets it")
	}
	protos, err := filepath.Abs("../../proto")
	if err != nil {
		t.Fatal(err)
	}
	files := protoFiles(t, protos)

	for name, tc := range map[string]struct {
		flag   string
		plugin string
		want   []string // files for discovery.proto of Cluster API's hooks, which has messages and a service
	}{
		"Python":           {"--python_out", "", []string{"hookgate/hooks/v1alpha1/discovery_pb2.py"}},
		"Java":             {"--java_out", "", []string{"dev/hookgate/hooks/v1alpha1/DiscoveryRequest.java"}},
		"Kotlin":           {"--kotlin_out", "", []string{"dev/hookgate/hooks/v1alpha1/DiscoveryKt.proto.kt"}},
		"C++":              {"--cpp_out", "", []string{"hookgate/hooks/v1alpha1/discovery.pb.cc", "hookgate/hooks/v1alpha1/discovery.pb.h"}},
		"C#":               {"--csharp_out", "", []string{"Discovery.cs"}},
		"Ruby":             {"--ruby_out", "", []string{"hookgate/hooks/v1alpha1/discovery_pb.rb"}},
		"PHP":              {"--php_out", "", []string{"Hookgate/Hooks/V1alpha1/DiscoveryRequest.php"}},
		"Go":               {"--go_out=paths=source_relative", goPlugin(t, "google.golang.org/protobuf/cmd/protoc-gen-go"), []string{"hookgate/hooks/v1alpha1/discovery.pb.go"}},
		"Go services":      {"--go-grpc_out=paths=source_relative", goPlugin(t, "google.golang.org/grpc/cmd/protoc-gen-go-grpc"), []string{"hookgate/hooks/v1alpha1/discovery_grpc.pb.go"}},
		"TypeScript":       {"--es_out=target=ts", "../../sdk/typescript/node_modules/.bin/protoc-gen-es", []string{"hookgate/hooks/v1alpha1/discovery_pb.ts"}},
		"a descriptor set": {"--descriptor_set_out", "", []string{"discovery.binpb"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range files {
				out := t.TempDir()
				into := out
				if tc.flag == "--descriptor_set_out" {
					into = filepath.Join(out, strings.TrimSuffix(filepath.Base(file), ".proto")+".binpb")
				}
				separator := "="
				if strings.Contains(tc.flag, "=") {
					separator = ":"
				}
				args := []string{"-I", protos, tc.flag + separator + into, file}
				if tc.plugin != "" {
					plugin, err := filepath.Abs(tc.plugin)
					if err != nil {
						t.Fatal(err)
					}
					args = append(args, "--plugin="+strings.TrimSuffix(filepath.Base(plugin), ".exe")+"="+plugin)
				}
				if text, err := exec.CommandContext(t.Context(), protoc, args...).CombinedOutput(); err != nil ||
					len(text) > 0 {
					t.Errorf("%s: %v\n%s", file, err, text)
					continue
				}
				if filepath.ToSlash(file) != "hookgate/hooks/v1alpha1/discovery.proto" {
					continue
				}
				for _, want := range tc.want {
					if info, err := os.Stat(filepath.Join(out, want)); err != nil || info.Size() == 0 {
						t.Errorf("%s: no file %s: %v", file, want, err)
					}
				}
			}
		})
	}
}

// protoFiles returns every file of the contract, relative to its root.
func protoFiles(t *testing.T, root string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "hookgate", "*", "*", "*.proto"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files of the contract: %v", err)
	}
	for i, path := range paths {
		if paths[i], err = filepath.Rel(root, path); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// goPlugin builds a protoc plugin that tools/go.mod pins.
func goPlugin(t *testing.T, module string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(module))
	build := exec.CommandContext(t.Context(), "go", "-C", "../../tools", "build", "-o", path, module)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", module, err, text)
	}
	return path
}
