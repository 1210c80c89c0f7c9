// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// chainTestFile writes a test of the chain platform, with a request in a file of its own, and returns its path.
func chainTestFile(t *testing.T, proxy string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"request.yaml": commandtest.PatchesRequest,
		"platform.test.yaml": `apiVersion: hookgate.dev/v1alpha1
kind: HandlerChainTest
metadata: {name: platform}
spec:
  hook: GeneratePatches
  chain: platform
  cases:
  - name: both patches
    given: {requestFile: request.yaml}
    want:
      objects: [{uid: "1", object: {apiVersion: x/v1, kind: X, spec: {image: a, proxy: ` + proxy + `}}}]
  - name: no item
    given: {request: {items: [{uid: "2", object: {kind: X}}]}}
    want:
      error: 'handler "image.acme": items[0] is for a uid that the request does not have'
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "platform.test.yaml")
}

// The cases run in the same way through a gateway and in process.
func TestChainTest(t *testing.T) {
	manifests := commandtest.NewPatcher(t, commandtest.PatchReply(`{"spec":{"image":"a"}}`), commandtest.PatchReply(`{"spec":{"proxy":"b"}}`))
	g := commandtest.NewClusterGateway(t, manifests)
	good, bad := chainTestFile(t, "b"), chainTestFile(t, "c")
	for name, server := range map[string][]string{
		"Local": {"--extension-configs", commandtest.ManifestDir(t, manifests)}, "Gateway": {"--kubeconfig", g.Kubeconfig, "--ca", g.CA},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"chain", "test", good}, server...)...)
			if got.Code != cmdline.ExitDone {
				t.Errorf("exit status %d: %s\n%s", got.Code, got.ErrOut, got.Out)
			}
			got = commandtest.Hookgate(t, "", append([]string{"chain", "test", filepath.Dir(good), "-o", "json"}, server...)...)
			if got.Code != cmdline.ExitDone || strings.Count(got.Out, `"passed": true`) != 2 {
				t.Errorf("exit status %d: %s\n%s", got.Code, got.ErrOut, got.Out)
			}
			got = commandtest.Hookgate(t, "", append([]string{"chain", "test", good, bad}, server...)...)
			if got.Code != cmdline.ExitFailed || !strings.HasSuffix(got.ErrOut, "hookgate: chain test: 1 of 4 cases failed\n") {
				t.Errorf("exit status %d: %s", got.Code, got.ErrOut)
			}
			commandtest.Golden(t, "chain/test.table", strings.ReplaceAll(got.Out, filepath.Dir(bad)+string(filepath.Separator), ""))
		})
	}
}

func TestChainTestUsage(t *testing.T) {
	good := chainTestFile(t, "b")
	misspelt := filepath.Dir(commandtest.WriteFile(t, "m.yaml",
		"apiVersion: hookgate.dev/v1alpha1\nkind: HandlerchainTests\nmetadata: {name: t}\n"))
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Nothing":  {[]string{"chain"}, cmdline.ExitUsage, "say what to do with chains: test"},
		"NoFile":   {[]string{"chain", "test"}, cmdline.ExitUsage, "want files with HandlerChainTests"},
		"Absent":   {[]string{"chain", "test", "none.yaml"}, cmdline.ExitFailed, "hookgate: chain test: open none.yaml"},
		"Folder":   {[]string{"chain", "test", "testdata"}, cmdline.ExitFailed, "hookgate: chain test: testdata has no HandlerChainTest\n"},
		"Both":     {[]string{"chain", "test", good, "--extension-configs", ".", "--server", "https://127.0.0.1:1"}, cmdline.ExitUsage, "--extension-configs reads a directory, and --server asks a gateway: leave out one of the two flags"},
		"Mistaken": {[]string{"chain", "test", commandtest.WriteFile(t, "t.yaml", commandtest.AcmeManifest)}, cmdline.ExitFailed, "t.yaml:2: ExtensionConfig \"acme\": kind: want HandlerChainTest, got ExtensionConfig"},
		"Misspelt": {[]string{"chain", "test", misspelt}, cmdline.ExitFailed, "m.yaml:2: HandlerchainTests \"t\": kind: want HandlerChainTest, got HandlerchainTests"},
	} {
		got := commandtest.Hookgate(t, "", tt.args...)
		if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
			t.Errorf("%s: exit status %d, want %d: %q, want %q", name, got.Code, tt.code, got.ErrOut, tt.want)
		}
	}
}
