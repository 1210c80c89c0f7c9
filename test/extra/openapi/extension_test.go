// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/gen/openapi"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// buildExtension builds testdata/extension, whose only knowledge of the hooks is what oapi-codegen makes of the
// document.
func buildExtension(t *testing.T) string {
	t.Helper()
	generator := process.Program(t, "HOOKGATE_OAPI_CODEGEN")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "extension"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hooks.openapi.json"), []byte(openapi.Document), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		append([]string{generator}, guideArguments(t)...),
		{"go", "build", "-o", "extension", "."},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args[1:], " "), err, out)
		}
	}
	return filepath.Join(dir, "extension")
}

// TestGeneratorTakesEveryDocument builds what oapi-codegen makes of the document of infrastructure.
func TestGeneratorTakesEveryDocument(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "extension"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hooks.openapi.json"), []byte(openapi.Infrastructure), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		append([]string{process.Program(t, "HOOKGATE_OAPI_CODEGEN")}, guideArguments(t)...),
		{"go", "vet", "./hooks"},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args[1:], " "), err, out)
		}
	}
	made, err := os.ReadFile(filepath.Join(dir, "hooks", "hooks.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"V1alpha1ReconcileMachineHandler(ctx context.Context,", "InfrastructureV1alpha1Phase = \"Ready\"",
		"V1alpha1DiscoverInfrastructureHandler(ctx context.Context,",
	} {
		if !strings.Contains(string(made), want) {
			t.Errorf("the generated code has no %s", want)
		}
	}
}

// guide is the path of the guide to writing such an extension.
func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "openapi.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// guideArguments returns what the guide gives to oapi-codegen.
func guideArguments(t *testing.T) []string {
	t.Helper()
	for line := range strings.Lines(guide(t)) {
		if arguments, ok := strings.CutPrefix(line, "oapi-codegen "); ok {
			return strings.Fields(arguments)
		}
	}
	t.Fatal("the guide has no line that begins with oapi-codegen")
	return nil
}

// TestGuideShowsTheExtension compares the code of the guide with the extension that the tests build.
func TestGuideShowsTheExtension(t *testing.T) {
	_, rest, found := strings.Cut(guide(t), "```go\n")
	shown, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("the guide shows no Go code")
	}
	text, err := os.ReadFile(filepath.Join("testdata", "extension", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), shown) {
		t.Errorf("the guide shows code that is not that of testdata/extension/main.go:\n%s", shown)
	}
}

// startBuilt runs the extension and returns its URL.
func startBuilt(t *testing.T, pair *devcert.Pair, binary string) string {
	t.Helper()
	certs := t.TempDir()
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key"))
	return "https://" + process.Run(t, "extension", cmd).Expect(t, `listening on (.*)\n`)[1]
}

// TestExtensionWrittenByTheDocument has the gateway discover such an extension and call each hook that it implements,
// with the golden requests, and sees what it made of them.
func TestExtensionWrittenByTheDocument(t *testing.T) {
	pair := certificates.New(t)
	g := startGateway(t, pair, map[string]string{"acme": startBuilt(t, pair, buildExtension(t))})
	call := func(name, handler string, edits map[string]any) map[string]any {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "proto", "testdata", hook.Version,
			strings.ToLower(name)+".request.json"))
		if err != nil {
			t.Fatal(err)
		}
		request := decode(t, text)
		for path, to := range edits {
			edit(t, request, path, to)
		}
		body, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		code, answer := g.post(t, hook.GroupVersionHook{Group: hook.Group, Version: hook.Version,
			Hook: name}.Path(handler), body)
		if code != 200 {
			t.Fatalf("%s: status %d: %s", name, code, answer)
		}
		return decode(t, answer)
	}
	expect := func(what string, got, want any) {
		t.Helper()
		if difference := cmp.Diff(want, got); difference != "" {
			t.Errorf("%s (-want +got):\n%s", what, difference)
		}
	}

	var handlers []string
	for _, h := range call("Discovery", "", nil)["handlers"].([]any) {
		if name := h.(map[string]any)["name"].(string); strings.HasSuffix(name, "--acme") {
			handlers = append(handlers, name)
		}
	}
	expect("handlers that are not lifecycle hooks", handlers,
		[]string{"image-repository--acme", "image-repository-variables--acme", "patch-in-place--acme"})

	held := call("BeforeClusterUpgrade", "approve-upgrade.acme", nil)
	expect("BeforeClusterUpgrade without approval", held, map[string]any{
		"apiVersion": hook.APIVersion, "kind": "BeforeClusterUpgradeResponse", "status": "Success",
		"message": "approve-upgrade waits for the approval of v1.33.4", "retryAfterSeconds": json.Number("30"),
	})
	expect("BeforeClusterUpgrade of all handlers", call("BeforeClusterUpgrade", "", nil)["retryAfterSeconds"],
		any(json.Number("30")))
	approved := call("BeforeClusterUpgrade", "approve-upgrade.acme", map[string]any{
		"cluster/metadata/annotations": map[string]any{"example.com/approved-version": "v1.33.4"},
	})
	expect("BeforeClusterUpgrade with approval", approved["retryAfterSeconds"], any(json.Number("0")))

	items := call("GeneratePatches", "", nil)["items"].([]any)
	if len(items) != 8 {
		t.Fatalf("GeneratePatches: %d patches, want one of each of the 8 templates", len(items))
	}
	patch, err := base64.StdEncoding.DecodeString(items[0].(map[string]any)["patch"].(string))
	if err != nil {
		t.Fatal(err)
	}
	var labelled struct {
		Metadata struct{ Labels map[string]string }
	}
	if err := json.Unmarshal(patch, &labelled); err != nil {
		t.Fatal(err)
	}
	if labels := labelled.Metadata.Labels; labels["kind"] == "" || labels["holder"] == "" {
		t.Errorf("GeneratePatches: the patch %s has nothing of the template", patch)
	}

	expect("DiscoverVariables", call("DiscoverVariables", "", nil)["variables"], any([]any{map[string]any{
		"name": "imageRepository", "required": false,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "string", "minLength": json.Number("1")}},
	}}))

	_, offered := call("CanUpdateMachine", "", nil)["machinePatch"]
	expect("CanUpdateMachine to another minor version offers a patch", offered, false)
	inPlace := call("CanUpdateMachine", "", map[string]any{"current/machine/spec/version": "v1.33.1",
		"desired/machine/spec/version": "v1.33.4"})
	expect("CanUpdateMachine within a minor version", inPlace["machinePatch"], any(map[string]any{
		"patchType": "JSONMergePatch", "patch": base64.StdEncoding.EncodeToString([]byte(`{"spec":{"version":"v1.33.4"}}`)),
	}))
}
